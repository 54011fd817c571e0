"""What `debug build` does: builds that are free to choose their tactics, until there are enough."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs

from polygraphy_debug_ext.cli.evidence import Evidence
from polygraphy_debug_ext.cli.front_door import guarded, say
from polygraphy_debug_ext.cli.iteration_options import Confident, IterationArgs
from polygraphy_debug_ext.cli.trial_run import TrialRun
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import StopReason, Verdict
from polygraphy_debug_ext.reports.lines import Line
from polygraphy_debug_ext.reports.verdict import verdict
from polygraphy_debug_ext.search.sampling import Deciding, Sampling

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from polygraphy_debug_ext.model import Summary
    from polygraphy_debug_ext.trials.artifacts import Artifacts
    from polygraphy_debug_ext.trials.ports import Strategy

#: Trials in a row that may teach nothing before a run that waits for a good or a bad build, or for a decision, gives up.
_PATIENCE: Final = 20

#: Exit status: --max-iterations were made, some failed, and they do not decide.
STATUS_UNDECIDED: Final = 3


def run(groups: Mapping[type, Any], args: argparse.Namespace) -> int:
    """Run the trials; return the exit status."""
    return guarded(lambda: BuildRun(groups, args).run())


class BuildRun(TrialRun):
    """One call of `debug build`."""

    def __init__(self, groups: Mapping[type, Any], args: argparse.Namespace) -> None:
        self._evidence: Evidence | None = None
        super().__init__(groups, args)

    def strategy(self, artifacts: Artifacts) -> tuple[Strategy, int | None]:
        """Sample until what `--until` asks for."""
        until = self._until()
        replay = self._replay()
        confidence = {"confidence": until.confidence} if isinstance(until, Confident) else {}
        self._evidence = None if replay is None else Evidence(artifacts, replay, **confidence)
        if not isinstance(until, Confident):
            return Sampling(until), _PATIENCE if isinstance(until, Verdict) else None
        if self._evidence is None:
            raise UsageError(
                "--until confident needs the tactic replay of each build",
                "Add --save-tactics replay.json --artifacts replay.json.",
            )
        return Deciding(self._evidence.decides, until.most), _PATIENCE

    def expected_trials(self) -> int | None:
        """The number that `--until` asks for."""
        until = self._until()
        return until if isinstance(until, int) else None

    def conclude(self, summary: Summary) -> int:
        """Say which tactic is suspect, if builds failed."""
        if self._evidence is not None and summary.count(Verdict.BAD):
            if not isinstance(self._until(), Confident):
                for trial in summary.counted:
                    self._evidence.take(trial)
            answer = self._evidence.answer()
            if answer is not None:
                say([Line(f"Tactics: {verdict(answer)}")])
        if summary.stop is StopReason.MAX_ITERATIONS and summary.count(Verdict.BAD):
            return STATUS_UNDECIDED
        return 1 if summary.stop is StopReason.NOTHING_LEARNED else 0

    def _replay(self) -> str | None:
        """The name of the replay that each trial files; None if none does."""
        wanted = self.args.save_tactics
        names = self.groups[ArtifactSortArgs].artifacts
        return next(
            (name for name in names if wanted and os.path.normpath(name) == os.path.normpath(wanted)), None
        )

    def _until(self) -> int | Verdict | Confident:
        until = self.groups[IterationArgs].until
        if isinstance(until, Confident):
            return until
        # Polygraphy holds the index of the last iteration.
        return Verdict(until) if isinstance(until, str) else until + 1
