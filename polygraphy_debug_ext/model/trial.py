"""A trial is one build and its check; a run is many of them, and ends for a named reason."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.verdict import Judgement, Verdict


class StopReason(enum.Enum):
    """Why a run ended; the value is the sentence that people read."""

    ITERATIONS_DONE = "all iterations that --until asked for are done"
    FIRST_GOOD = "--until good: a build passed"
    FIRST_BAD = "--until bad: a build failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One build and its check: `index` counts from 0, `seconds` is the time of both."""

    index: int
    judgement: Judgement
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """What the trial says about the tactics of its engine."""
        return self.judgement.verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a run came to."""

    trials: tuple[Trial, ...]
    stop: StopReason

    def count(self, verdict: Verdict) -> int:
        """How many trials ended with `verdict`."""
        return sum(trial.verdict is verdict for trial in self.trials)
