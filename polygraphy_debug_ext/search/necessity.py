"""The proof of a minimal failing set: it alone fails, all but it passes, and so does the set without any one member.

Each is an arm of its own, decided by Wald's sequential probability ratio test with the failure rates that were learned
(A. Wald, Sequential Analysis, 1947): the logarithm of the likelihood ratio is summed until it leaves a band.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model.isolation import Arm
    from polygraphy_debug_ext.search.rows import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimalSet:
    """Units that are held to fail together, with the probability of that."""

    members: tuple[Unit, ...]
    probability: float

    def builds(self, everything: frozenset[int]) -> list[frozenset[int]]:
        """Return the factors that are bad in the arms of a set: it alone, all but it, it without one member each."""
        whole = frozenset(factor for unit in self.members for factor in unit)
        lacking = [whole - frozenset(unit) for unit in self.members] if len(self.members) > 1 else []
        return [whole, everything - whole, *lacking]


def sequential(arms: Sequence[Arm], rates: tuple[float, float], confidence: float) -> list[bool | None]:
    """Say for each arm whether its builds fail like those with a culprit; None if it needs more builds.

    Args:
        arms: Builds seen.
        rates: Failure rates of builds with the culprit, and without it.
        confidence: One minus the error that is allowed, above 1/2.
    """
    present, absent = (min(max(rate, 1e-3), 1 - 1e-3) for rate in rates)
    if present <= absent:
        return [None for _ in arms]
    on_fail, on_pass = math.log(present / absent), math.log((1 - present) / (1 - absent))
    band = math.log(confidence / (1 - confidence))
    ratios = [arm.fails * on_fail + arm.passes * on_pass for arm in arms]
    return [None if abs(ratio) < band else ratio > 0 for ratio in ratios]
