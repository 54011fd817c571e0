"""What the loop needs from others: somebody who builds, somebody who checks, somebody who says what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.model import (
        BuildFailure,
        BuildResult,
        Judgement,
        Proposal,
        StopReason,
        Summary,
        Trial,
    )


class Strategy(Protocol):
    """Says what to build next; None when the search is over. The same again until it is told what came of it."""

    @property
    def stop(self) -> StopReason:
        """Why the search is over, once it is."""

    def propose(self) -> Proposal | None:
        """Return what to build next."""

    def record(self, proposal: Proposal, trial: Trial) -> None:
        """Hear what came of a proposal."""


class Builder(Protocol):
    """Builds the engine of a trial, and may be asked again after a failure."""

    def start(self) -> Mapping[str, str]:
        """Get ready; say what builds (versions, host)."""

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        """Build an engine; a build that fails is a result too."""

    def close(self) -> None:
        """Give everything back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One repetition of a check: what it said (as far as it is kept), how it ended, how it is judged."""

    judgement: Judgement
    seconds: float
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""


class Checker(Protocol):
    """Judges the engine of a trial."""

    @property
    def repetitions(self) -> int:
        """How often an engine is checked."""

    def command(self, index: int) -> Sequence[str] | None:
        """What is run; None if a person is asked."""

    def check(self, index: int, repetition: int) -> CheckRun:
        """Check the engine once."""


class Observer(Protocol):
    """Is told what happens, when it happens."""

    def trial_starts(self, index: int) -> None:
        """A trial begins with its build."""

    def build_failed(self, failure: BuildFailure) -> None:
        """There is no engine."""

    def check_starts(self, command: Sequence[str] | None) -> None:
        """The engine is about to be checked."""

    def check_ended(self, run: CheckRun) -> None:
        """A repetition of the check is over."""

    def moving(self, source: str, destination: str) -> None:
        """An artifact is about to be filed."""

    def missing(self, artifact: str) -> None:
        """An artifact is not there."""

    def warn(self, text: str) -> None:
        """Something is not as it should be."""

    def trial_ended(self, trial: Trial) -> None:
        """A trial is over, its artifacts are filed."""

    def run_stopped(self, summary: Summary) -> None:
        """No trial follows."""
