"""Sampling: independent builds, until enough were made or the first of a kind came (`--until`)."""

from __future__ import annotations

from polygraphy_debug_ext.model import Proposal, StopReason, Verdict

#: What ends a run that waits for a verdict.
_REASONS = {Verdict.GOOD: StopReason.FIRST_GOOD, Verdict.BAD: StopReason.FIRST_BAD}


class Sampling:
    """Proposes trials until `until` of them were made, or until the first one with that verdict.

    Args:
        until: A number of trials, at least 1; or Verdict.GOOD or Verdict.BAD.

    Raises:
        ValueError: if `until` can never come true.
    """

    def __init__(self, until: int | Verdict) -> None:
        if until is Verdict.UNRESOLVED or (isinstance(until, int) and until < 1):
            raise ValueError(f"until must be at least 1, good or bad, not {until}")
        self._until = until
        self._next = 0
        self._stop: StopReason | None = None

    @property
    def stop(self) -> StopReason | None:
        """Why there is no further trial; None while there is one."""
        return self._stop

    def propose(self) -> Proposal | None:
        """Return the next trial, or None when the run is over."""
        return None if self._stop else Proposal(index=self._next)

    def record(self, proposal: Proposal, verdict: Verdict) -> None:
        """Take note of how the trial ended."""
        self._next = proposal.index + 1
        if isinstance(self._until, Verdict):
            self._stop = _REASONS[verdict] if verdict is self._until else None
        elif self._next >= self._until:
            self._stop = StopReason.ITERATIONS_DONE
