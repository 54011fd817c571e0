"""What `debug diff-tactics` does: load both sides, compare, tell."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.analysis import difference
from polygraphy_debug_ext.cli.front_door import guarded, say
from polygraphy_debug_ext.errors import FormatError, UsageError
from polygraphy_debug_ext.formats.collection import Collection, Skipped, collect
from polygraphy_debug_ext.model import Outcome, Source
from polygraphy_debug_ext.reports import difference as report
from polygraphy_debug_ext.reports.journal import journal_lines
from polygraphy_debug_ext.reports.skipped import skipped
from polygraphy_debug_ext.reports.versions import several_versions
from polygraphy_debug_ext.trials.audit import audit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Assignment

#: Exit status: bad builds were seen, but the evidence names no tactic.
STATUS_INCONCLUSIVE: Final = 3

_RECORD: Final = (
    "Record replays with `polygraphy debug build MODEL --save-tactics replay.json --artifacts replay.json "
    "--artifacts-dir DIR --until N --check COMMAND`."
)


def run(directory: str | None, good: str | None, bad: str | None) -> int:
    """Compare the replays at these places (see the options), say what was found, and return the exit status."""
    return guarded(lambda: _compare(directory, good, bad))


def _compare(directory: str | None, good: str | None, bad: str | None) -> int:
    good_path, bad_path = _places(directory, good, bad)
    good_set, bad_set = _of_one_kind(_load(good_path), _load(bad_path))
    for collection in (good_set, bad_set):
        _tell(collection)
    everything = [*good_set.assignments, *bad_set.assignments]
    _require_one_source(everything)
    say(several_versions(Counter(str(each.metadata.get("tensorrt", "")) for each in everything)))
    if directory:
        _audit(Path(directory), good_set, bad_set)
    finding = difference(good_set.assignments, bad_set.assignments)
    if finding.outcome is Outcome.NO_BUILDS:
        raise UsageError(f"No tactic replay in {good_path} or {bad_path}", _RECORD)
    if finding.outcome is Outcome.NOTHING_IN_COMMON:
        raise UsageError(
            f"The replays in {good_path} and {bad_path} have no layer in common: they are of different networks",
            "Compare replays of one network, built with the same options.",
        )
    say(report.before_the_counts(finding))
    say(report.counts(finding))
    say(report.answer(finding))
    return 0 if finding.outcome in {Outcome.SUSPECTS, Outcome.NO_BAD_BUILD} else STATUS_INCONCLUSIVE


def _places(directory: str | None, good: str | None, bad: str | None) -> tuple[Path, Path]:
    """Say where the good and the bad replays are."""
    if not directory and not (good and bad):
        raise UsageError(
            "Either --dir, or both --good and --bad must be specified",
            "Name the --artifacts-dir of `debug build`.",
        )
    root = Path(directory or "")
    if directory and not root.is_dir():
        raise UsageError(f"--dir {root}: no such directory", "Name the --artifacts-dir of `debug build`.")
    places = Path(good) if good else root / "good", Path(bad) if bad else root / "bad"
    if directory and not any(place.exists() for place in places):
        raise UsageError(
            f"--dir {root}: neither 'good' nor 'bad' is in it", f"Name them with --good and --bad. {_RECORD}"
        )
    for option, named, place in (("--good", good, places[0]), ("--bad", bad, places[1])):
        if named and not place.exists():
            raise UsageError(f"{option} {place}: no such file or directory", "Check the path.")
    return places


def _load(place: Path) -> Collection:
    """Read what is at `place`; a directory of --dir that was never made holds nothing."""
    return collect(place) if place.exists() else Collection(place=place, assignments=())


def _of_one_kind(good: Collection, bad: Collection) -> tuple[Collection, Collection]:
    """Leave layer information out where there are replays: a trial may have left both, and is one build."""
    sources = {each.source for side in (good, bad) for each in side.assignments}
    if Source.LAYER_INFORMATION not in sources or len(sources) == 1:
        return good, bad
    return _without_layer_information(good), _without_layer_information(bad)


def _without_layer_information(side: Collection) -> Collection:
    kept = tuple(each for each in side.assignments if each.source is not Source.LAYER_INFORMATION)
    left_out = tuple(
        Skipped(
            path=Path(each.origin), reason="layer information; there are tactic replays, which are compared"
        )
        for each in side.assignments
        if each.source is Source.LAYER_INFORMATION
    )
    return Collection(place=side.place, assignments=kept, skipped=(*side.skipped, *left_out))


def _require_one_source(assignments: Sequence[Assignment]) -> None:
    """Refuse replays whose tactics are named in different number spaces, or at different layers."""
    examples: dict[Source, str] = {}
    for each in assignments:
        # A replay of Polygraphy's own does not say so, but was recorded by a selector.
        source = Source.SELECTOR if each.source is Source.REPLAY else each.source
        examples.setdefault(source, each.origin)
    if len(examples) > 1:
        named = "; ".join(f"{source.value}: {origin}" for source, origin in examples.items())
        raise UsageError(
            f"The replays were recorded in different ways, which cannot be compared ({named})",
            "Compare those of one run, or record them all with the same --tactic-source.",
        )


def _audit(root: Path, *collections: Collection) -> None:
    """Say what does not fit the journal of the runs, if there is one. It is a help, not a condition."""
    used = [Path(each.origin) for collection in collections for each in collection.assignments]
    try:
        audited = audit(root, used)
    except FormatError as error:
        G_LOGGER.warning(f"The journal is not used: {error.problem}. {error.remedy}")
        return
    if audited is not None:
        say(journal_lines(str(root), audited.complaints, audited.unresolved))


def _tell(collection: Collection) -> None:
    """Say what was read (with -v), and what was left out."""
    for each in collection.assignments:
        G_LOGGER.verbose(f"{each.origin}: {_kind(each)}, {len(each.layers)} layers")
    files = [(str(each.path.relative_to(collection.place)), each.reason) for each in collection.skipped]
    say(skipped(str(collection.place), files))


def _kind(assignment: Assignment) -> str:
    if assignment.source is Source.LAYER_INFORMATION:
        return "layer information"
    return f"tactic replay (format of Polygraphy {assignment.variant})"
