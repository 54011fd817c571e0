"""Which build tells most: a beginning of the order, the suspect alone, or everything but the suspect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.search.hypotheses import Posterior

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Once it is that probable that no unit is at fault, and more so than that any given one is, an end is built.
END_FROM: Final = 0.06
#: Once a suspect is that probable, the test is chosen that tells most for it or against it; later where the check errs.
SUSPECT_FROM: Final = 0.255
SUSPECT_FROM_IF_IT_ERRS: Final = 0.35
#: A test that is no beginning of the order is preferred to one that tells a little more, where the check errs.
DETOUR_BONUS: Final = 1.5
#: A check that finds culprits at least so often, and errs at most so often, is taken as one that does not err.
_STEADY: Final = (0.9, 0.1)
#: How often a way round refused tests is looked for.
_DETOURS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Terrain:
    """What stands in the way: units that cannot be made bad, or good, and tests (units each).

    Those in `refused` came to nothing, those in `barred` cannot be had: they become other builds.
    """

    never: Flags
    always: Flags
    refused: Sequence[Flags] = ()
    barred: Sequence[Flags] = ()

    def ease(self, build: Flags) -> float:
        """Return a factor below 1 for builds that are like those that came to nothing, 0 for just those and for barred ones."""
        if any(np.array_equal(each, build) for each in self.barred):
            return 0.0
        distances = np.array([(each != build).sum() for each in self.refused], dtype=np.float64)
        return float(_nearness(distances, len(build)).prod())

    def ease_of_beginnings(self) -> Floats:
        """Return `ease` of the builds with units 0 .. m-1, for m = 0 .. n."""
        count = len(self.never)
        factors = np.ones(count + 1)
        for each in self.refused:
            factors *= _nearness(_distances(each), count)
        for each in self.barred:
            factors[_distances(each) == 0] = 0.0
        return factors


def _nearness(distance: Floats, count: int) -> Floats:
    result: Floats = distance / (distance + max(1.0, count / 8))
    return result


def _distances(build: Flags) -> Floats:
    """Return in how many units a build differs from that with units 0 .. m-1, for m = 0 .. n."""
    lacking = np.concatenate([[0], np.cumsum(~build)])
    having = np.concatenate([[0], np.cumsum(build)])
    result: Floats = (lacking + having[-1] - having).astype(np.float64)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A test, what it is expected to tell (nats), and whether it is an arm for the likeliest unit."""

    build: Flags
    information: float
    arm: bool = False


def arms(unit: int, count: int) -> tuple[Flags, Flags]:
    """Return the two arms for a unit: it alone, and all but it."""
    alone = np.zeros(count, dtype=np.bool_)
    alone[unit] = True
    return alone, ~alone


def choose(posterior: Posterior, terrain: Terrain, generator: np.random.Generator) -> Choice:
    """Return the build that is expected to tell most: about all hypotheses, or about a suspect once there is one.

    Args:
        posterior: What is known.
        terrain: What stands in the way.
        generator: Chance, for tests that are as good as others.
    """
    units = posterior.units
    top = int(units.argmax())
    if posterior.none > END_FROM and posterior.none >= units[top]:
        end = _best_end(posterior, terrain)
        if end.information > 0:
            return end
    best = _best_beginning(posterior, terrain)
    errs = _errs(posterior)
    if terrain.refused or terrain.barred or errs:
        # As telling by itself; but wrong answers show sooner if the light units are not the same in each test.
        other = max(_detours(posterior, terrain, generator), key=_value)
        best = other if other.information * DETOUR_BONUS >= best.information else best
    if units[top] <= (SUSPECT_FROM_IF_IT_ERRS if errs else SUSPECT_FROM):
        return best
    # What tells most about everything is no longer what decides soonest.
    options = [best, *(Choice(build=build, information=0.0, arm=True) for build in arms(top, len(units)))]
    values = [posterior.distinction(each.build, top) * terrain.ease(each.build) for each in options]
    chosen = int(np.argmax(values))
    return replace(options[chosen], information=values[chosen])


def best_arm(posterior: Posterior, terrain: Terrain, unit: int) -> Choice:
    """Return the arm for the unit that tells more about how it acts; it alone, if they tell the same."""
    choices = [_choice(posterior, terrain, build, arm=True) for build in arms(unit, len(posterior.units))]
    return choices[0] if choices[0].information * 1.02 >= choices[1].information else choices[1]


def _best_end(posterior: Posterior, terrain: Terrain) -> Choice:
    """Return the end that tells more: no other build tells as much about whether any unit is at fault."""
    count = len(posterior.units)
    return max((_choice(posterior, terrain, np.full(count, value)) for value in (True, False)), key=_value)


def _best_beginning(posterior: Posterior, terrain: Terrain) -> Choice:
    values = posterior.information_of_beginnings(terrain.never, terrain.always) * terrain.ease_of_beginnings()
    count = len(values) - 1
    chosen = int(values.argmax())
    return Choice(build=np.arange(count) < chosen, information=float(values[chosen]))


def _detours(posterior: Posterior, terrain: Terrain, generator: np.random.Generator) -> list[Choice]:
    """Return some builds that halve the probability, whatever the order, to get round those that came to nothing."""
    found = []
    units = posterior.units
    for _ in range(_DETOURS):
        build = np.zeros(len(units), dtype=np.bool_)
        mass, half = 0.0, units.sum() / 2
        for unit in np.lexsort((generator.random(len(units)), -units)):
            if abs(mass + units[unit] - half) < abs(mass - half):
                build[unit] = True
                mass += units[unit]
        found.append(_choice(posterior, terrain, build))
    return found


def _errs(posterior: Posterior) -> bool:
    """Say whether the check seems to err, under the likeliest hypothesis."""
    present, absent = posterior.rates
    return present < _STEADY[0] or absent > _STEADY[1]


def _choice(posterior: Posterior, terrain: Terrain, build: Flags, *, arm: bool = False) -> Choice:
    return Choice(build=build, information=posterior.information(build) * terrain.ease(build), arm=arm)


def _value(choice: Choice) -> float:
    return choice.information
