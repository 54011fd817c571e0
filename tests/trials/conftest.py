"""Stand-ins for those whom the loop talks to."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from polygraphy_debug_ext.model import BuildFailure, BuildResult, Judgement, Reason, Verdict
from polygraphy_debug_ext.search.sampling import Sampling
from polygraphy_debug_ext.trials.artifacts import Artifacts
from polygraphy_debug_ext.trials.bench import Bench
from polygraphy_debug_ext.trials.interruption import Interrupted, Interruption
from polygraphy_debug_ext.trials.journal import MemoryJournal
from polygraphy_debug_ext.trials.loop import Loop
from polygraphy_debug_ext.trials.ports import CheckRun
from polygraphy_debug_ext.trials.scratch import Scratch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Proposal, Summary, Trial

RUNS = {
    "g": (Verdict.GOOD, Reason.CHECK_EXIT_CODE),
    "b": (Verdict.BAD, Reason.CHECK_EXIT_CODE),
    "u": (Verdict.UNRESOLVED, Reason.CHECK_SKIP_CODE),
}


class Recorded:
    """An observer that remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.summary: Summary | None = None

    def trial_starts(self, index: int) -> None:
        self.said.append(f"trial {index}")

    def build_failed(self, failure: BuildFailure) -> None:
        self.said.append(f"failed {failure.reason.name}")

    def check_starts(self, command: Sequence[str] | None) -> None:
        del command
        self.said.append("checking")

    def check_ended(self, run: CheckRun) -> None:
        self.said.append(f"checked {run.judgement.verdict.value}")

    def moving(self, source: str, destination: str) -> None:
        self.said.append(f"moving {source} to {destination}")

    def missing(self, artifact: str) -> None:
        self.said.append(f"missing {artifact}")

    def warn(self, text: str) -> None:
        self.said.append(text)

    def trial_ended(self, trial: Trial) -> None:
        self.said.append(f"ended {trial.verdict.value}")

    def run_stopped(self, summary: Summary) -> None:
        self.summary = summary


class ScriptedBuilder:
    """Builds as it is told: `x` fails, `i` is interrupted, whatever else succeeds."""

    def __init__(self, script: str, interruption: Interruption) -> None:
        self._script = script
        self._interruption = interruption

    def start(self) -> dict[str, str]:
        return {}

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        del proposal
        if self._script[index] == "i":
            # What the handler of a signal does, and whoever waits.
            self._interruption._signal = signal.SIGINT
            raise Interrupted("SIGINT")
        failed = self._script[index] == "x"
        failure = BuildFailure(reason=Reason.BUILD_ERROR, text="no tactic") if failed else None
        return BuildResult(seconds=0.1, failure=failure)

    def close(self) -> None:
        pass


class ScriptedCheck:
    """Judges as it is told: `g`, `b` or `u` for each trial and repetition."""

    def __init__(self, *script: str) -> None:
        self._script = script
        self.repetitions = len(script[0])

    def command(self, index: int) -> list[str] | None:
        del index
        return None

    def check(self, index: int, repetition: int) -> CheckRun:
        verdict, reason = RUNS[self._script[index][repetition]]
        return CheckRun(judgement=Judgement(verdict=verdict, reason=reason), seconds=0.1)


class MakeLoop(Protocol):
    """Makes a loop of scripted builds and checks; both say what becomes of each trial, a letter for each."""

    def __call__(
        self, *checks: str, builds: str = "", until: int | Verdict | None = None, patience: int | None = None
    ) -> tuple[Loop, Recorded, MemoryJournal]: ...


@pytest.fixture
def observer() -> Recorded:
    return Recorded()


@pytest.fixture
def make_loop() -> MakeLoop:
    def make(
        *checks: str, builds: str = "", until: int | Verdict | None = None, patience: int | None = None
    ) -> tuple[Loop, Recorded, MemoryJournal]:
        observer, journal, interruption = Recorded(), MemoryJournal(), Interruption()
        bench = Bench(
            builder=ScriptedBuilder(builds or "." * len(checks), interruption),
            checker=ScriptedCheck(*checks),
            artifacts=Artifacts(root=Path("sorted"), stamp="s", names=()),
            scratch=Scratch(engine="none.engine"),
            journal=journal,
            observer=observer,
        )
        loop = Loop(
            strategy=Sampling(len(checks) if until is None else until),
            bench=bench,
            observer=observer,
            interruption=interruption,
            patience=patience,
        )
        return loop, observer, journal

    return make
