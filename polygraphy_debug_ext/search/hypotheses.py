"""Who may be the culprit, and which builds tell.

The units under trial stand in a fixed order, and a test makes a beginning of that order bad: units 0 .. m-1. Whatever makes
builds fail, as long as more bad units never make a build pass, there is one *turning* unit: beginnings that include it fail,
shorter ones pass. The search is for that unit, like a noisy binary search, and four *kinds* say how it acts by itself:

- SINGLE: it fails alone, and nothing fails without it;
- PARTNER: it fails only together with units before it;
- OTHER: it fails alone, but so does something after it;
- BOTH: it needs units before it, and something after it fails as well.

A test that is no beginning is read under PARTNER as failing if most units before are in it, under OTHER if most units after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.search.belief import evidence, joint_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.search.belief import Belief

    Flags = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Indices of the kinds.
SINGLE, PARTNER, OTHER, BOTH = range(4)
#: Below the logarithm of anything possible.
_NEVER: Final = -1e9


def entropy(rate: Floats | float) -> Floats:
    """Return the entropy of a yes or no with this probability, in nats."""
    clipped = np.clip(np.asarray(rate, dtype=np.float64), 1e-12, 1 - 1e-12)
    result: Floats = -(clipped * np.log(clipped) + (1 - clipped) * np.log1p(-clipped))
    return result


def divergence(rate: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of a yes or no with probability `rate` from one with `other`, in nats."""
    first, second = (min(max(each, 1e-12), 1 - 1e-12) for each in (rate, other))
    return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))


def has_turning_unit(units: Flags) -> Flags:
    """Say for each build, kind and unit whether the build is one that fails if that unit is the turning one.

    Args:
        units: builds x units: whether a build has a unit at its bad value.

    Returns:
        kinds x builds x units.
    """
    count = units.shape[1]
    position = np.arange(count)
    upto = np.cumsum(units, axis=1)
    before = 2 * (upto - units) > position
    after = 2 * (upto[:, -1:] - upto) > count - 1 - position
    return np.stack([units, units & before, units | after, (units & before) | after])


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """Probabilities of all hypotheses, and of a failing build under each (kinds x units) if it has the unit, or has not.

    `none` is the probability that failures do not depend on the units, and `none_fails` that of a failure then.
    """

    weights: Floats
    none: float
    fails_with: Floats
    fails_without: Floats
    none_fails: float

    @property
    def units(self) -> Floats:
        """The probability of each unit to be the turning one."""
        total: Floats = self.weights.sum(axis=0)
        return total

    @property
    def rates(self) -> tuple[float, float]:
        """The failure rates with and without the likeliest culprit, as far as they are known."""
        kind, unit = np.unravel_index(int(self.weights.argmax()), self.weights.shape)
        return float(self.fails_with[kind, unit]), float(self.fails_without[kind, unit])

    def information(self, build: Flags) -> float:
        """Return what a build with these units is expected to tell about the hypotheses, in nats."""
        has = has_turning_unit(build[None, :])[:, 0]
        rate = np.where(has, self.fails_with, self.fails_without)
        mean = float((self.weights * rate).sum()) + self.none * self.none_fails
        rest = float((self.weights * entropy(rate)).sum()) + self.none * float(entropy(self.none_fails))
        return float(entropy(mean)) - rest

    def distinction(self, build: Flags, unit: int) -> float:
        """Return how much a build is expected to tell for a unit against all else (nats), if that unit is the culprit.

        It is the divergence of what the unit predicts from what the others do together (H. Chernoff, Sequential Design of
        Experiments, 1959; M. Naghshvar and T. Javidi, Active Sequential Hypothesis Testing, 2013).
        """
        has = has_turning_unit(build[None, :])[:, 0]
        rate = np.where(has, self.fails_with, self.fails_without)
        own = float((self.weights[:, unit] * rate[:, unit]).sum())
        share = float(self.weights[:, unit].sum())
        every = float((self.weights * rate).sum()) + self.none * self.none_fails
        rest = (every - own) / max(1 - share, 1e-12)
        return divergence(own / share, rest)

    def information_of_beginnings(self, never: Flags, always: Flags) -> Floats:
        """Return `information` of the builds with units 0 .. m-1, for m = 0 .. n.

        Args:
            never: units that cannot be made bad.
            always: units that cannot be made good.
        """
        mean = self._sums(self.fails_with, self.fails_without, never, always)
        rest = self._sums(entropy(self.fails_with), entropy(self.fails_without), never, always)
        mean += self.none * self.none_fails
        rest += self.none * float(entropy(self.none_fails))
        result: Floats = entropy(mean) - rest
        return result

    def _sums(self, within: Floats, without: Floats, never: Flags, always: Flags) -> Floats:
        inner, outer = (self.weights * within).sum(axis=0), (self.weights * without).sum(axis=0)
        inner, outer = np.where(never, outer, inner), np.where(always, inner, outer)
        left = np.concatenate([[0.0], np.cumsum(inner)])
        right = np.concatenate([[0.0], np.cumsum(outer)])
        total: Floats = left + right[-1] - right
        return total


def posterior(units: Flags, failed: Flags, prior: Sequence[float] | Floats, belief: Belief) -> Posterior:
    """Return the posterior after builds that had `units` (builds x units) at their bad value and `failed` or not.

    `prior` are the weights of the units, which need not be normalised. Each hypothesis splits the builds in two kinds, with
    one unknown failure rate each; the rates are integrated out (Beta-binomial, closed form).
    """
    fails, passes = int(failed.sum()), int((~failed).sum())
    has = has_turning_unit(units)
    with_fails, with_passes = has[:, failed].sum(axis=1), has[:, ~failed].sum(axis=1)
    having, others = (with_fails, with_passes), (fails - with_fails, passes - with_passes)
    share = np.log(np.asarray(prior, dtype=np.float64) / np.sum(prior)) + math.log(1 - belief.none)
    part = belief.interaction
    kinds = np.log([1 - 2.5 * part, part, part, part / 2])
    logs = kinds[:, None] + share[None, :]
    seen = joint_evidence(belief, having, others)
    logs = logs + seen
    # The first has nobody before it, the last nobody after it.
    logs[[PARTNER, BOTH], 0] = _NEVER
    logs[[OTHER, BOTH], -1] = _NEVER
    all_fails, all_passes = np.asarray(fails), np.asarray(passes)
    common = float(evidence(belief.common, all_fails, all_passes))
    none = math.log(belief.none) + common
    top = max(float(logs.max()), none)
    weights, weight_none = np.exp(logs - top), math.exp(none - top)
    total = float(weights.sum()) + weight_none
    return Posterior(
        weights=weights / total,
        none=weight_none / total,
        fails_with=np.exp(joint_evidence(belief, (with_fails + 1, with_passes), others) - seen),
        fails_without=np.exp(joint_evidence(belief, having, (others[0] + 1, others[1])) - seen),
        none_fails=math.exp(float(evidence(belief.common, all_fails + 1, all_passes)) - common),
    )
