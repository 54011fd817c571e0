"""Which good and which bad build are bisected: those that differ least, among those that can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.analysis.environments import DECISIVE
from polygraphy_debug_ext.analysis.pairs import closest
from polygraphy_debug_ext.analysis.table import TableBuilder
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.model import Verdict

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.pairs import Pair
    from polygraphy_debug_ext.model import Assignment

_RECORD = "Record some with `polygraphy debug build --save-tactics replay.json --artifacts replay.json`."


def choose(directory: str | None, good: str | None, bad: str | None) -> tuple[Assignment, Assignment]:
    """Return a good and a bad build from these places (see the options).

    Raises:
        UsageError: if there is no such pair.
        FormatError: if a file is damaged.
    """
    places = {
        Verdict.GOOD: _place("--good", directory, good, "good"),
        Verdict.BAD: _place("--bad", directory, bad, "bad"),
    }
    reader = Reader()
    tables: dict[tuple[object, ...], TableBuilder] = {}
    found = dict.fromkeys(places, 0)
    for verdict, place in places.items():
        for assignment in reader.records(place):
            found[verdict] += 1
            key = (assignment.source, *(assignment.metadata.get(name) for name in DECISIVE))
            tables.setdefault(key, TableBuilder()).add(assignment, verdict)
    for verdict, number in found.items():
        if not number:
            raise UsageError(f"No {verdict.value} tactic replay in {places[verdict]}", _RECORD)
    pairs = [pair for builder in tables.values() if (pair := closest(builder.table())) is not None]
    if not pairs:
        raise UsageError(
            f"No build in {places[Verdict.GOOD]} can be compared with one in {places[Verdict.BAD]}: they are of different "
            "environments (TensorRT, GPU, builder flags or model), or were recorded in different ways",
            "Record good and bad builds in one run.",
        )
    best = min(pairs, key=_rank)
    return replay.read(Path(best.good)), replay.read(Path(best.bad))


def _rank(pair: Pair) -> float:
    return pair.distance or float("inf")


def _place(option: str, directory: str | None, named: str | None, side: str) -> Path:
    if named:
        place = Path(named)
        if not place.exists():
            raise UsageError(f"{option} {place}: no such file or directory", "Check the path.")
        return place
    if not directory:
        raise UsageError(
            "Either --dir, or both --good and --bad must be specified",
            "Name the --artifacts-dir of `debug build`.",
        )
    place = Path(directory) / side
    if not place.is_dir():
        raise UsageError(f"--dir {directory}: '{side}' is not in it", _RECORD)
    return place
