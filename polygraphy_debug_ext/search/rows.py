"""The builds that a search has seen: what each was asked to have, what it really has, how it ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.model.isolation import Arm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

#: A test that became another build so often is not tried again.
_IN_VAIN: Final = 2

#: Factors (by their index) that stand trial together.
Unit = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One build: factors asked for, factors it has bad and at a third value, whether it failed (None: unresolved).

    `fresh` says that it was built as the arm of a confirmation.
    """

    asked: Flags
    bad: Flags
    neither: Flags
    failed: bool | None
    fresh: bool = False

    def counts(self, innocent: Flags) -> bool:
        """Whether it tells something: it was judged, and has no third value that may be guilty."""
        return self.failed is not None and not (self.neither & ~innocent).any()


class Rows:
    """All builds of a search, in order.

    Args:
        count: The number of factors.
    """

    def __init__(self, count: int) -> None:
        self.all: list[Row] = []
        self._count = count

    def add(self, row: Row) -> None:
        """Take in a build."""
        self.all.append(row)

    def usable(self, innocent: Flags) -> tuple[Flags, Flags]:
        """Return the builds that count: builds x factors at their bad value, and which of them failed.

        A build with a third value that is not known to be innocent tells nothing.
        """
        kept = [row for row in self.all if row.counts(innocent)]
        bad = np.array([row.bad for row in kept], dtype=np.bool_).reshape(len(kept), self._count)
        return bad, np.array([bool(row.failed) for row in kept], dtype=np.bool_)

    def arm(self, asked: Flags, ignore: Flags, innocent: Flags, *, fresh: bool = False) -> Arm:
        """Count the builds that really have what is asked for, but for factors to `ignore`."""
        fails = passes = 0
        for row in self.all:
            wanted = row.counts(innocent) and (row.fresh or not fresh)
            if wanted and not ((row.bad ^ asked) & ~ignore).any():
                fails += bool(row.failed)
                passes += not row.failed
        return Arm(fails=fails, passes=passes)

    def refused(self, innocent: Flags) -> list[Flags]:
        """Return what was asked for in the builds that tell nothing."""
        return [row.asked for row in self.all if not row.counts(innocent)]

    def barred(self, ignore: Flags, innocent: Flags) -> list[Flags]:
        """Return what was asked for in vain, twice: the builds tell something, but are other ones, and not for factors to `ignore`."""
        turned = [
            row.asked for row in self.all if row.counts(innocent) and ((row.asked ^ row.bad) & ~ignore).any()
        ]
        times = Counter(asked.tobytes() for asked in turned)
        different = {asked.tobytes(): asked for asked in turned}
        return [asked for key, asked in different.items() if times[key] >= _IN_VAIN]

    def refusals(self, asked: Flags, innocent: Flags) -> int:
        """Return how often just this told nothing since it last did."""
        count = 0
        for row in self.all:
            if np.array_equal(row.asked, asked):
                count = 0 if row.counts(innocent) else count + 1
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One search for a turning unit.

    `fixed` units are bad in all its tests: the members of a failing set that are known so far. `units` are under trial, in
    their order; `removed` factors are culprits that were found before. All others are good.
    """

    units: tuple[Unit, ...]
    fixed: tuple[Unit, ...] = ()
    removed: frozenset[int] = frozenset()

    def factors(self, count: int, chosen: Sequence[bool] | Flags) -> Flags:
        """Return the flags of the factors that are bad in a test of the chosen units."""
        flags = np.zeros(count, dtype=np.bool_)
        picked = [unit for unit, taken in zip(self.units, chosen, strict=True) if taken]
        flags[[factor for unit in (*self.fixed, *picked) for factor in unit]] = True
        return flags

    def view(self, bad: Flags, ignore: Flags) -> tuple[Flags, Flags]:
        """Return which builds say something here, and which units those have bad (builds x units).

        A build with a culprit that was found before says nothing, and one with other factors of no account here only if it has
        all units and the fixed ones: others can but add to a failure. A build without one of the fixed units counts as one with
        no unit at all. Factors to `ignore` cannot be chosen.
        """
        units = has_units(bad, self.units)
        found, own = np.zeros((2, bad.shape[1]), dtype=np.bool_)
        found[list(self.removed)] = True
        own[[factor for unit in (*self.fixed, *self.units) for factor in unit]] = True
        fixed: Flags = np.logical_and.reduce(has_units(bad, self.fixed), axis=1)
        guilty: Flags = np.logical_or.reduce(bad[:, found & ~ignore], axis=1)
        more: Flags = np.logical_or.reduce(bad[:, ~own & ~found & ~ignore], axis=1)
        complete: Flags = np.logical_and.reduce(units, axis=1) & fixed
        kept = ~guilty & (~more | complete)
        units = units & fixed[:, None]
        return kept, units[kept]


def has_units(bad: Flags, units: Sequence[Unit]) -> Flags:
    """Return builds x units: whether a build has a factor of the unit at its bad value."""
    if not units:
        return np.zeros((len(bad), 0), dtype=np.bool_)
    if all(len(unit) == 1 for unit in units):
        return bad[:, [unit[0] for unit in units]]
    return np.stack([bad[:, list(unit)].any(axis=1) for unit in units], axis=1)
