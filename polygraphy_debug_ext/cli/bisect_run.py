"""What `debug bisect-tactics` does: takes a good and a bad build, and lets the search ask for mixtures of both."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import TrtConfigArgs
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs

from polygraphy_debug_ext.cli import avoid_list
from polygraphy_debug_ext.cli.front_door import STATUS_ERROR, guarded, say, whoever_reads
from polygraphy_debug_ext.cli.in_process import in_process_builder
from polygraphy_debug_ext.cli.pair import choose
from polygraphy_debug_ext.cli.trial_run import TrialRun
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model import Assignment, Source
from polygraphy_debug_ext.model.isolation import Outcome
from polygraphy_debug_ext.reports import isolation as report
from polygraphy_debug_ext.reports.isolation_document import document
from polygraphy_debug_ext.search.belief import EXPECTED, JEFFREYS
from polygraphy_debug_ext.search.bisection import Bisection
from polygraphy_debug_ext.search.settings import Settings
from polygraphy_debug_ext.trials.forced import HybridBuilder
from polygraphy_debug_ext.trials.hybrids import Hybrids
from polygraphy_debug_ext.trials.moving import digest

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from polygraphy_debug_ext.formats.avoid import AvoidEntry
    from polygraphy_debug_ext.model import Proposal, Summary
    from polygraphy_debug_ext.trials.artifacts import Artifacts
    from polygraphy_debug_ext.trials.forced import Forcing
    from polygraphy_debug_ext.trials.ports import Builder, Strategy
    from polygraphy_debug_ext.trials.run_directory import Begun

#: What each build has is written here, and filed with its verdict.
RECORD: Final = "polygraphy_debug_replay.json"
#: Trials in a row that may teach nothing.
_PATIENCE: Final = 10
#: How builds are recorded, so that they can be compared with what they were forced to.
_TACTIC_SOURCE: Final = {
    Source.TIMING_CACHE: "cache",
    Source.SELECTOR: "selector",
    Source.REPLAY: "selector",
}


def run(groups: Mapping[type, Any], args: argparse.Namespace) -> int:
    """Search; return the exit status."""
    with whoever_reads(sys.stdout):
        return guarded(lambda: _run(groups, args))
    return STATUS_ERROR


def _run(groups: Mapping[type, Any], args: argparse.Namespace) -> int:
    _require_sense(args)
    good, bad = choose(args.dir, args.good, args.bad)
    _require_forceable(good, bad)
    hybrids = Hybrids(good, bad)
    if not hybrids.factors:
        say(report.no_difference(good.origin, bad.origin))
        return report.STATUS_NO_TACTIC
    search = Bisection(
        hybrids.factors,
        Settings(
            confidence=args.confidence,
            max_builds=args.max_builds,
            rates=JEFFREYS if args.rates_prior == "jeffreys" else EXPECTED,
            seed=args.search_seed,
        ),
    )
    found = report.Found(isolation=search.result(), layers_of=hybrids.layers_of, good=good, bad=bad)
    say(report.beginning(found, hybrids.apart))
    if args.dry_run:
        say(report.plan(search.plan()))
        return 0
    _prepare(groups, args, good)
    return BisectRun(groups, args, hybrids, search).run()


class BisectRun(TrialRun):
    """One call of `debug bisect-tactics`."""

    def __init__(
        self, groups: Mapping[type, Any], args: argparse.Namespace, hybrids: Hybrids, search: Bisection
    ) -> None:
        self._hybrids = hybrids
        self._search = search
        super().__init__(groups, args)

    def strategy(self, artifacts: Artifacts) -> tuple[Strategy, int | None]:
        """Bisect."""
        del artifacts
        return self._search, _PATIENCE

    def factors(self) -> tuple[str, ...]:
        """The layers that differ."""
        return self._hybrids.factors

    def builder(self, begun: Begun) -> Builder:
        """Force what is proposed."""
        builder: Forcing = (
            in_process_builder(self.groups, self.args, self.interruption)
            if self.in_process
            else self.worker(begun)
        )
        return HybridBuilder(
            builder,
            self._hybrids,
            Path(RECORD),
            begins=self._tell_step,
            refused=lambda layers: say(report.refused(layers)),
        )

    def _tell_step(self, proposal: Proposal) -> None:
        say(report.step(proposal, self._search.progress()))

    def settings(self) -> dict[str, Any]:
        """The replays must be the same as well."""
        return {
            **super().settings(),
            "good_digest": digest(Path(self._hybrids.good.origin)),
            "bad_digest": digest(Path(self._hybrids.bad.origin)),
        }

    def conclude(self, summary: Summary) -> int:
        """Say what was found."""
        del summary
        result, hybrids = self._search.result(), self._hybrids
        found = report.Found(
            isolation=result, layers_of=hybrids.layers_of, good=hybrids.good, bad=hybrids.bad
        )
        say(report.conclusion(found))
        if self.args.output:
            _write(Path(self.args.output), document(found))
        if self.args.save_avoid:
            avoid_list.save(Path(self.args.save_avoid), _entries(found))
        return report.status(result)


def _entries(found: report.Found) -> list[AvoidEntry]:
    """What to avoid: the confirmed culprits. Of a set, one member is enough."""
    version = str(found.bad.metadata.get("tensorrt", ""))
    return [
        avoid_list.entry(
            layer,
            found.bad.layers[layer],
            version,
            f"makes builds fail: {culprit.verdict.value}",
            {
                "bisect-tactics": {
                    "inside": str(culprit.inside),
                    "outside": str(culprit.outside),
                    "good": found.good.origin,
                    "bad": found.bad.origin,
                }
            },
        )
        for culprit in found.isolation.culprits
        if culprit.verdict in {Outcome.CONFIRMED, Outcome.SUFFICIENT_ONLY}
        for factor in culprit.members[0]
        for layer in found.layers_of[factor]
    ]


def _write(path: Path, text: str) -> None:
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise UsageError(f"{path} cannot be written ({error.strerror})", "Name another file.") from error
    G_LOGGER.info(f"Wrote {path}")


def _require_sense(args: argparse.Namespace) -> None:
    if not 0.5 < args.confidence < 1:  # noqa: PLR2004 - at one half, guessing is as good
        raise UsageError(
            f"--confidence {args.confidence:g} is not between 0.5 and 1", "Give 0.99, for example."
        )
    if args.max_builds < 1:
        raise UsageError(f"--max-builds {args.max_builds} would never build", "Give 1 or more.")
    if args.load_tactics:
        raise UsageError("--load-tactics: the search says which tactics are forced", "Leave it out.")
    for option, value in (("--avoid-tactics", args.avoid_tactics), ("--explore", args.explore)):
        if value:
            raise UsageError(f"{option}: the search says which tactics are forced", "Leave it out.")
    if args.save_tactics:
        raise UsageError(
            f"--save-tactics: what each build has is recorded in {RECORD}, and filed", "Leave it out."
        )


def _require_forceable(good: Assignment, bad: Assignment) -> None:
    for side in (good, bad):
        if side.source not in _TACTIC_SOURCE:
            raise UsageError(
                f"{side.origin} was read from the {side.source.value}: its tactics cannot be forced",
                "Record good and bad builds with `polygraphy debug build --save-tactics` on the TensorRT that builds them.",
            )
    if _TACTIC_SOURCE[good.source] != _TACTIC_SOURCE[bad.source]:
        raise UsageError(
            f"{good.origin} was recorded from the {good.source.value}, {bad.origin} from the {bad.source.value}",
            "Record both in the same way (--tactic-source).",
        )


def _prepare(groups: Mapping[type, Any], args: argparse.Namespace, good: Assignment) -> None:
    """Have each build recorded, in the way in which the replays were."""
    args.tactic_source = _TACTIC_SOURCE[good.source]
    args.save_tactics = groups[TrtConfigArgs].save_tactics = RECORD
    artifacts = groups[ArtifactSortArgs].artifacts
    if RECORD not in artifacts:
        artifacts.append(RECORD)
