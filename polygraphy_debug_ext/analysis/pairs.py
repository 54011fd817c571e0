"""The good and the bad build that differ least: the fewer layers differ, the sooner the culprit among them is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.table import ABSENT

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.table import Table

#: Builds of a side that are held against the other: all pairs of thousands would take minutes, and gain nothing.
_MOST: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A good and a bad build, by their origins; `distance` is the number of layers at which they differ."""

    good: str
    bad: str
    distance: int


def closest(table: Table) -> Pair | None:
    """Return the closest pair that differs; one with distance 0 if no pair differs; None if a side is empty.

    Layers that only one of the two has are not counted. Of equally close pairs the first in the order of the builds is taken.
    """
    good, bad = (np.flatnonzero(table.bad == side)[:_MOST] for side in (False, True))
    if not len(good) or not len(bad):
        return None
    best: tuple[int, int, int] | None = None
    others = table.codes[bad]
    for build in good:
        mine = table.codes[build]
        distances = np.count_nonzero((others != mine) & (others != ABSENT) & (mine != ABSENT), axis=1)
        different = np.where(distances > 0, distances, np.iinfo(np.int64).max)
        nearest = int(different.argmin())
        if distances[nearest] > 0 and (best is None or distances[nearest] < best[0]):
            best = (int(distances[nearest]), int(build), int(bad[nearest]))
    distance, one, other = best or (0, int(good[0]), int(bad[0]))
    return Pair(good=table.origins[one], bad=table.origins[other], distance=distance)
