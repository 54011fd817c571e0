"""What `debug build` does: builds that are free to choose their tactics, until there are enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from polygraphy_debug_ext.cli.front_door import guarded
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.trial_run import TrialRun
from polygraphy_debug_ext.model import StopReason, Verdict
from polygraphy_debug_ext.search.sampling import Sampling
from polygraphy_debug_ext.trials.loop import Limits

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from polygraphy_debug_ext.model import Summary
    from polygraphy_debug_ext.trials.ports import Strategy

#: Trials in a row that may teach nothing before a run that waits for a good or a bad build gives up.
_PATIENCE: Final = 20


def run(groups: Mapping[type, Any], args: argparse.Namespace) -> int:
    """Run the trials; return the exit status."""
    return guarded(lambda: BuildRun(groups, args).run())


class BuildRun(TrialRun):
    """One call of `debug build`."""

    def strategy(self, stamp: str) -> tuple[Strategy, Limits]:
        """Sample until what `--until` asks for."""
        del stamp
        until = self._until()
        return Sampling(until), _limits(until)

    def expected_trials(self) -> int | None:
        """The number that `--until` asks for."""
        until = self._until()
        return None if isinstance(until, Verdict) else until

    def conclude(self, summary: Summary) -> int:
        """All is said."""
        return 1 if summary.stop is StopReason.NOTHING_LEARNED else 0

    def _until(self) -> int | Verdict:
        until = self.groups[IterationArgs].until
        # Polygraphy holds the index of the last iteration.
        return Verdict(until) if isinstance(until, str) else until + 1


def _limits(until: int | Verdict) -> Limits:
    if until is Verdict.GOOD:
        return Limits(done=StopReason.FIRST_GOOD, patience=_PATIENCE)
    if until is Verdict.BAD:
        return Limits(done=StopReason.FIRST_BAD, patience=_PATIENCE)
    return Limits(done=StopReason.ITERATIONS_DONE)
