"""Sampling: independent builds, until enough were made or the first of a kind came (`--until`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Proposal, Verdict

if TYPE_CHECKING:
    from polygraphy_debug_ext.model import Trial


class Sampling:
    """Proposes trials until `until` of them were made (one at least, as in Polygraphy), or until the first one with that verdict.

    Args:
        until: A number of trials; or Verdict.GOOD or Verdict.BAD.
    """

    def __init__(self, until: int | Verdict) -> None:
        self._until = until
        self._done = 0
        self._met = False

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
