"""Sampling: independent builds, until enough were made, the first of a kind came, or they decide (`--until`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Proposal, StopReason, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.model import Trial

_FIRST = {Verdict.GOOD: StopReason.FIRST_GOOD, Verdict.BAD: StopReason.FIRST_BAD}


class Sampling:
    """Proposes trials until `until` of them were made (one at least, as in Polygraphy), or until the first one with that verdict.

    Args:
        until: A number of trials; or Verdict.GOOD or Verdict.BAD.
    """

    def __init__(self, until: int | Verdict) -> None:
        self._until = until
        self._done = 0
        self._met = False

    @property
    def stop(self) -> StopReason:
        """Why it is over."""
        return _FIRST[self._until] if isinstance(self._until, Verdict) else StopReason.ITERATIONS_DONE

    def propose(self) -> Proposal | None:
        """Return the next trial, or None when the run is over."""
        if isinstance(self._until, Verdict):
            return None if self._met else Proposal()
        return Proposal() if self._done < max(self._until, 1) else None

    def record(self, proposal: Proposal, trial: Trial) -> None:
        """Take note of how the trial ended."""
        del proposal  # they are all alike
        self._done += 1
        self._met = self._met or trial.verdict is self._until


class Deciding:
    """Proposes trials until they decide.

    Args:
        decides: Called with each trial, when all that it left is in its place; says whether all of them together decide.
        most: How many trials may be made (one at least).
    """

    def __init__(self, decides: Callable[[Trial], bool], most: int) -> None:
        self._decides = decides
        self._most = most
        self._done = 0
        self._decided = False

    @property
    def stop(self) -> StopReason:
        """Why it is over."""
        return StopReason.CONFIDENT if self._decided else StopReason.MAX_ITERATIONS

    def propose(self) -> Proposal | None:
        """Return the next trial, or None when the run is over."""
        return Proposal() if not self._decided and self._done < max(self._most, 1) else None

    def record(self, proposal: Proposal, trial: Trial) -> None:
        """Take note of a trial."""
        del proposal  # they are all alike
        self._done += 1
        self._decided = self._decides(trial)
