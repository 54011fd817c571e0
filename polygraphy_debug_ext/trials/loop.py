"""The one loop: ask the strategy what to build, make the trial, tell the strategy the verdict.

It ends when the strategy has nothing more to propose, when somebody interrupts it, or when an error makes it pointless to go
on; the observer is told in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Proposal, StopReason, Summary, Trial, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.trials.bench import Bench
    from polygraphy_debug_ext.trials.interruption import Interruption
    from polygraphy_debug_ext.trials.ports import Observer, Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """Makes trials until there is a reason to stop. `patience` is the number of trials in a row that may teach nothing."""

    strategy: Strategy
    bench: Bench
    observer: Observer
    interruption: Interruption
    patience: int | None = None

    def run(self, before: Sequence[Trial] = ()) -> Summary:
        """Go on after the trials that were made before.

        Raises:
            StorageError: if something cannot be kept.
            UsageError: if the check cannot be started.
        """
        trials: list[Trial] = []
        stop = StopReason.ERROR
        try:
            for trial in before:
                trials.append(trial)
                self._record(trial, self.strategy.propose())
            stop = self._go_on(trials)
        finally:
            summary = Summary(trials=tuple(trials), stop=stop)
            self.observer.run_stopped(summary)
        return summary

    def _go_on(self, trials: list[Trial]) -> StopReason:
        while True:
            if self.interruption.reason is not None:
                return self.interruption.reason
            if self._learned_nothing(trials):
                return StopReason.NOTHING_LEARNED
            proposal = self.strategy.propose()
            if proposal is None:
                return self.strategy.stop
            index = trials[-1].index + 1 if trials else 0
            trial = self.bench.try_out(index, proposal)
            trials.append(trial)
            self._record(trial, proposal)

    def _record(self, trial: Trial, proposal: Proposal | None) -> None:
        if proposal is not None and not trial.interrupted:
            self.strategy.record(proposal, trial)

    def _learned_nothing(self, trials: Sequence[Trial]) -> bool:
        if self.patience is None or len(trials) < self.patience:
            return False
        return all(trial.verdict is Verdict.UNRESOLVED for trial in trials[-self.patience :])
