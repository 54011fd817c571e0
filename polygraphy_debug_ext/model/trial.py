"""A trial is one build and its check; a run is many of them, and ends for a named reason.

- *Proposal*: what a search wants to be built next; *BuildResult*: what came of it; *Realised*: which factors it really has.
- *FaultSite*: where a build was when it failed, as far as its log tells.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from polygraphy_debug_ext.model.verdict import Judgement, Reason, Verdict


class StopReason(enum.Enum):
    """Why a run ended; the value is the sentence that people read, the name what the journal holds."""

    ITERATIONS_DONE = "all iterations that --until asked for are done"
    FIRST_GOOD = "--until good: a build passed"
    FIRST_BAD = "--until bad: a build failed"
    SEARCH_DONE = "the search is over"
    CONFIDENT = "--until confident: the builds decide"
    MAX_ITERATIONS = "--max-iterations are done, and the builds do not decide"
    NOTHING_LEARNED = "too many trials in a row taught nothing"
    INTERRUPTED = "interrupted by SIGINT"
    TERMINATED = "terminated by SIGTERM"
    ERROR = "an error ended it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What to build next.

    A search over *factors* (named things that have a good and a bad value, like the tactic of a layer) names those that are to
    have their bad value; all others have their good one. None is a build that is free to choose. `purpose` says to people what
    the build is for.
    """

    bad: frozenset[str] | None = None
    purpose: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Realised:
    """What a build really has: factors with their bad value, and factors with neither value (all others have their good one)."""

    bad: frozenset[str]
    neither: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSite:
    """Where a build was when it failed; what the log does not tell is empty."""

    layer: str = ""
    runner: str = ""
    tactic: str = ""
    error: str = ""

    def __str__(self) -> str:
        """One line, for logs."""
        named = [
            f"{word} {value}" for word, value in (("runner", self.runner), ("tactic", self.tactic)) if value
        ]
        place = ", ".join([f"layer {self.layer or '(unknown)'}", *named])
        return f"{place}: {self.error}" if self.error else place


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildFailure:
    """Why there is no engine: `reason` is one of those of a build, `text` the error in TensorRT's words or a signal."""

    reason: Reason
    text: str
    site: FaultSite | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What came of a build."""

    seconds: float
    failure: BuildFailure | None = None
    realised: Realised | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One build and its check: `index` counts from 0, `seconds` is the time of both; `realised` is None for a free build."""

    index: int
    judgement: Judgement
    seconds: float
    failure: BuildFailure | None = None
    realised: Realised | None = None

    @property
    def verdict(self) -> Verdict:
        """What the trial says about the tactics of its engine."""
        return self.judgement.verdict

    @property
    def interrupted(self) -> bool:
        """Whether it was cut short from outside: it counts as if it had not been tried."""
        return self.judgement.reason is Reason.INTERRUPTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to."""

    trials: tuple[Trial, ...]
    stop: StopReason

    @property
    def counted(self) -> tuple[Trial, ...]:
        """The trials that were not cut short."""
        return tuple(trial for trial in self.trials if not trial.interrupted)

    def count(self, verdict: Verdict) -> int:
        """How many trials ended with `verdict`."""
        return sum(trial.verdict is verdict for trial in self.counted)
