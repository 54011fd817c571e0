"""Sampling: independent builds, until enough were made or the first of a kind came (`--until`)."""

from __future__ import annotations

from polygraphy_debug_ext.model import Proposal, StopReason, Verdict

#: What ends a run that waits for a verdict.
_REASONS = {Verdict.GOOD: StopReason.FIRST_GOOD, Verdict.BAD: StopReason.FIRST_BAD}


class Sampling:
    """Proposes trials until `until` of them were made (one at least, as in Polygraphy), or until the first one with that verdict.

    Args:
        until: A number of trials; or Verdict.GOOD or Verdict.BAD.
    """

    def __init__(self, until: int | Verdict) -> None:
        self._until = until
        self._done = 0
        self._stop: StopReason | None = None

    @property
    def stop(self) -> StopReason | None:
        """Why there is no further trial; None while there is one."""
        return self._stop

    def propose(self) -> Proposal | None:
        """Return the next trial, or None when the run is over."""
        return None if self._stop else Proposal()

    def record(self, proposal: Proposal, verdict: Verdict) -> None:
        """Take note of how the trial ended."""
        del proposal  # they are all alike
        self._done += 1
        if isinstance(self._until, Verdict):
            self._stop = _REASONS[verdict] if verdict is self._until else None
        elif self._done >= self._until:
            self._stop = StopReason.ITERATIONS_DONE
