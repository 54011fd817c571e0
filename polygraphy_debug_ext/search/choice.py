"""Which build tells most: a beginning of the order, the suspect alone, or everything but the suspect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.search.hypotheses import SINGLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.search.hypotheses import Posterior

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: An arm of the confirmation is preferred to a test that tells a little more, and an end if it may be that no unit is at fault.
END_BONUS: Final = 2.0
ARM_BONUS: Final = 1.15
#: It may be, if it is that probable.
END_FROM: Final = 0.1
#: A test that is no beginning of the order is preferred to one that tells a little more, where the check errs.
DETOUR_BONUS: Final = 1.1
#: An arm is worth looking at once its suspect is that probable.
ARM_FROM: Final = 0.3
#: A check that finds culprits at least so often, and errs at most so often, is taken as one that does not err.
_STEADY: Final = (0.9, 0.1)
#: Units act alone, if that is so probable.
_ALONE: Final = 0.9
#: How often a way round refused tests is looked for.
_DETOURS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Terrain:
    """What stands in the way: units that cannot be made bad, or good, and tests that came to nothing (units each)."""

    never: Flags
    always: Flags
    refused: Sequence[Flags] = ()

    def ease(self, build: Flags) -> float:
        """Return a factor below 1 for builds that are like those that came to nothing, 0 for just those."""
        room = max(1.0, len(build) / 8)
        factor = 1.0
        for each in self.refused:
            distance = int((each != build).sum())
            factor *= distance / (distance + room)
        return factor


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
    """Return the build that is expected to tell most about the hypotheses."""
    best = _best_beginning(posterior, terrain)
    units = posterior.units
    top = int(units.argmax())
    ends = {0, len(units)}
    if terrain.refused or (_errs(posterior) and int(best.build.sum()) not in ends):
        # As telling by itself; but wrong answers show sooner if the light units are not the same in each test.
        other = max(_detours(posterior, terrain, generator), key=_value)
        best = other if other.information * DETOUR_BONUS >= best.information else best
    if units[top] < ARM_FROM or int(best.build.sum()) in ends:
        return best
    arm = best_arm(posterior, terrain, top)
    return arm if arm.information * ARM_BONUS >= best.information else best


def best_arm(posterior: Posterior, terrain: Terrain, unit: int) -> Choice:
    """Return the arm for the unit that tells more; it alone, if they tell the same."""
    choices = [
        Choice(build=build, information=posterior.information(build) * terrain.ease(build), arm=True)
        for build in arms(unit, len(posterior.units))
    ]
    return choices[0] if choices[0].information * 1.02 >= choices[1].information else choices[1]


def _best_beginning(posterior: Posterior, terrain: Terrain) -> Choice:
    values = posterior.information_of_beginnings(terrain.never, terrain.always)
    count = len(values) - 1
    if posterior.none > END_FROM:
        values[[0, count]] *= END_BONUS
    if terrain.refused:
        beginnings = np.tri(count + 1, count, -1, dtype=np.bool_)
        values = values * np.array([terrain.ease(build) for build in beginnings])
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
        found.append(Choice(build=build, information=posterior.information(build) * terrain.ease(build)))
    return found


def _errs(posterior: Posterior) -> bool:
    """Say whether the check seems to err, under the likeliest hypothesis, and only that: no unit acts with others."""
    if float(posterior.weights[SINGLE].sum()) < _ALONE * float(posterior.weights.sum()):
        return False
    at = np.unravel_index(int(posterior.weights.argmax()), posterior.weights.shape)
    return bool(posterior.fails_with[at] < _STEADY[0] or posterior.fails_without[at] > _STEADY[1])


def _value(choice: Choice) -> float:
    return choice.information
