"""What is known of the factors: their names, the builds that were made of them, what of it can be forced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.model.isolation import Phase
from polygraphy_debug_ext.search.choice import Terrain
from polygraphy_debug_ext.search.forcing import Forcing
from polygraphy_debug_ext.search.rows import Row, Rows, has_units

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.model import Trial
    from polygraphy_debug_ext.model.isolation import Arm
    from polygraphy_debug_ext.search.rows import Level, Unit

    Flags = NDArray[np.bool_]


class Casebook:
    """Keeps the builds of a search, and translates between names and flags.

    Args:
        names: The factors; they are kept in sorted order, so that the order in which they are named does not matter.
        innocent: Those whose third value is known to be harmless.

    Raises:
        ValueError: if there is no factor, or a name comes twice.
    """

    def __init__(self, names: Sequence[str], innocent: Collection[str] = ()) -> None:
        if not names:
            raise ValueError("there is no factor to search")
        if len(set(names)) != len(names):
            raise ValueError("a factor is named twice")
        self.names = tuple(sorted(names))
        self._index = {name: index for index, name in enumerate(self.names)}
        self.forcing = Forcing(len(names), np.array([name in innocent for name in self.names]))
        self._rows = Rows(len(names))

    @property
    def builds(self) -> int:
        """How many builds there were, unresolved ones too."""
        return len(self._rows.all)

    def add(self, asked: Flags, trial: Trial, *, fresh: bool) -> None:
        """Take in a trial; one that does not say what it has counts as what was asked for."""
        realised = trial.realised
        bad = asked if realised is None else self.flags(realised.bad)
        neither = self.flags(() if realised is None else realised.neither)
        failed = None if trial.verdict is Verdict.UNRESOLVED else trial.verdict is Verdict.BAD
        if realised is not None:
            self.forcing.learn(asked, bad, neither, passed=failed is False)
        self._rows.add(Row(asked=asked, bad=bad, neither=neither, failed=failed, fresh=fresh))

    def usable(self) -> tuple[Flags, Flags]:
        """Return the builds that count (builds x factors at their bad value), and which of them failed."""
        return self._rows.usable(self.forcing.innocent)

    def arm(self, asked: Flags, *, fresh: bool = False) -> Arm:
        """Count the builds that have what is asked for, as far as it can be forced; `fresh`: built as an arm."""
        return self._rows.arm(asked, self.stuck, self.forcing.innocent, fresh=fresh)

    def tried(self, asked: Flags) -> int:
        """Return how often just this was asked for."""
        return sum(np.array_equal(row.asked, asked) for row in self._rows.all)

    def refusals(self, asked: Flags) -> int:
        """Return how often just this came to nothing since it last did not."""
        return self._rows.refusals(asked, self.forcing.innocent)

    @property
    def stuck(self) -> Flags:
        """Factors that cannot be forced."""
        result: Flags = self.forcing.never | self.forcing.always
        return result

    def terrain(self, level: Level) -> Terrain:
        """Return what stands in the way of tests of a level."""
        never, always = self.forcing.never, self.forcing.always
        refused = self._rows.refused(self.forcing.innocent)
        barred = self._rows.barred(self.stuck, self.forcing.innocent)
        return Terrain(
            never=~has_units(~never[None, :], level.units)[0],
            always=has_units(always[None, :], level.units)[0],
            refused=self._units_of(refused, level),
            barred=self._units_of(barred, level),
        )

    def _units_of(self, asked: Sequence[Flags], level: Level) -> list[Flags]:
        flags = np.array(asked, dtype=np.bool_).reshape(len(asked), len(self.names))
        return list(has_units(flags, level.units))

    def merged(self, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        """Put classes of factors together, at the place of the first one."""
        for group in self.forcing.classes():
            touched = [unit for unit in units if set(unit) & set(group)]
            if len(touched) > 1:
                whole = tuple(sorted(factor for unit in touched for factor in unit))
                units = tuple(
                    whole if unit == touched[0] else unit for unit in units if unit not in touched[1:]
                )
        return units

    def numbers(self, names: Iterable[str]) -> frozenset[int]:
        """Return the indices of the named factors; names that are no factors are left out."""
        return frozenset(self._index[name] for name in names if name in self._index)

    def flags(self, names: Iterable[str]) -> Flags:
        """Return the named factors as flags; names that are no factors are left out."""
        return self.flagged(self.numbers(names))

    def flagged(self, indices: Collection[int]) -> Flags:
        """Return factors as flags."""
        flags = np.zeros(len(self.names), dtype=np.bool_)
        flags[list(indices)] = True
        return flags

    def named(self, flags: Flags) -> tuple[str, ...]:
        """Return the names of flagged factors."""
        return tuple(self.names[index] for index in np.flatnonzero(flags).tolist())

    def unit_names(self, unit: Unit) -> tuple[str, ...]:
        """Return the names of the factors of a unit."""
        return tuple(self.names[index] for index in unit)

    def purpose(self, removed: Flags, bad: Flags, phase: Phase) -> str:
        """Say to people what a build is for. `removed` are factors that were found, and stay good."""
        count = int(bad.sum())
        if count == 1 and phase is Phase.CONFIRMATION:
            return f"{phase.value}: {self.names[int(bad.argmax())]} alone is bad"
        left = ~bad & ~removed
        if int(left.sum()) == 1 and phase is Phase.CONFIRMATION:
            return f"{phase.value}: all but {self.names[int(left.argmax())]} are bad"
        return f"{phase.value}: {count} of {len(self.names)} factors are bad"
