"""How many builds a search is expected to take, from what each can tell at most.

A build is one use of a noisy channel: at least log2(n) / C builds are needed for n suspects, where C is its capacity in bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.model.isolation import Phase, Plan, PlannedPhase
from polygraphy_debug_ext.search.hypotheses import entropy

if TYPE_CHECKING:
    from polygraphy_debug_ext.search.hypotheses import Posterior

#: Builds of a confirmation with a check that never errs, and with one that errs one time in ten (mean of simulations).
_CONFIRMATION: Final = (2.5, 7.0)


def capacity(present: float, absent: float) -> float:
    """Return the capacity of a build, in bits, if it fails with probability `present` with the culprit and `absent` without."""
    share = np.linspace(0, 1, 1001)
    mixed = entropy(share * present + (1 - share) * absent)
    told = mixed - share * entropy(present) - (1 - share) * entropy(absent)
    return float(told.max() / math.log(2))


def plan(factors: int, max_builds: int) -> Plan:
    """Return the phases of a search over so many factors."""
    bits = math.log2(factors + 1)
    phases = (
        PlannedPhase(phase=Phase.ENDS, steady=2, noisy=2),
        PlannedPhase(phase=Phase.SEARCH, steady=bits, noisy=bits / capacity(0.9, 0.1)),
        PlannedPhase(phase=Phase.CONFIRMATION, steady=_CONFIRMATION[0], noisy=_CONFIRMATION[1]),
    )
    return Plan(factors=factors, phases=phases, max_builds=max_builds)


def builds_left(posterior: Posterior, rates: tuple[float, float] | None) -> int:
    """Return how many builds are still expected: for the uncertainty that is left, and a build of each arm."""
    present, absent = rates or (0.9, 0.1)
    weights = np.append(posterior.units, posterior.none)
    bits = float(-(weights * np.log2(np.clip(weights, 1e-12, 1))).sum())
    return math.ceil(bits / max(capacity(present, absent), 0.01)) + 2
