"""Who may be the culprit, and which builds tell.

The units under trial stand in a fixed order, and most tests make a beginning of that order bad: units 0 .. m-1. Whatever makes
builds fail, as long as more bad units never make a build pass, there is one *turning* unit: beginnings that include it fail,
shorter ones pass. The search is for that unit, like a noisy binary search, and four *kinds* say how it acts by itself:

- SINGLE: it fails alone, and nothing fails without it;
- PARTNER: it fails only together with one before it;
- OTHER: it fails alone, but so does one after it;
- BOTH: it needs units before it, and something after it fails as well.

A test that is no beginning tells under PARTNER and OTHER about each pair of units by itself: that noise is not taken for a pair,
nor a pair for noise, rests on this. Under BOTH such a test is read as failing if most units before are in it, or most after.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.search.belief import evidence, joint_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.search.belief import Belief

    Flags = NDArray[np.bool_]
    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Values = NDArray[np.float32] | NDArray[np.float64]

#: Indices of the kinds.
SINGLE, PARTNER, OTHER, BOTH = range(4)
#: Units are partners one by one up to so many, and in groups of neighbours beyond.
PARTNERS: Final = 512


def entropy(rate: Floats | float) -> Floats:
    """Return the entropy of a yes or no with this probability, in nats."""
    clipped = np.clip(np.asarray(rate, dtype=np.float64), 1e-12, 1 - 1e-12)
    result: Floats = -(clipped * np.log(clipped) + (1 - clipped) * np.log1p(-clipped))
    return result


def divergence(rate: float, other: float) -> float:
    """Return the Kullback-Leibler divergence of a yes or no with probability `rate` from one with `other`, in nats."""
    first, second = (min(max(each, 1e-12), 1 - 1e-12) for each in (rate, other))
    return first * math.log(first / second) + (1 - first) * math.log((1 - first) / (1 - second))


def fails_if_both(units: Flags) -> Flags:
    """Say for builds (builds x units) which fail under BOTH, by the turning unit."""
    count = units.shape[1]
    position = np.arange(count)
    upto = np.cumsum(units, axis=1)
    before = 2 * (upto - units) > position
    after = 2 * (upto[:, -1:] - upto) > count - 1 - position
    result: Flags = (units & before) | after
    return result


def partners_of(units: Flags) -> Flags:
    """Return builds x partners: units, or groups of neighbours, at their bad value if most are."""
    count = units.shape[1]
    first = _groups(count)
    if len(first) == count:
        return units
    bad = np.add.reduceat(units, first, axis=1, dtype=np.int64)
    result: Flags = 2 * bad > np.diff(first, append=count)
    return result


def _groups(count: int) -> Counts:
    """Return the first unit of each partner."""
    return np.arange(0, count, -(-count // PARTNERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The hypotheses of one kind, by their turning unit.

    `weights` are their probabilities. The first row of `without` is what a build that does not fail by them adds to the
    probability of a failure, the second what it adds to the entropy that is left. A build that does fail by them adds
    `prior` times `more` to that; where they are pairs, `more` is by partner and unit, and `partners` is the prior of those.
    `every` is what a build adds that fails by all of them.
    """

    index: int
    weights: Floats
    without: Floats
    prior: Floats
    partners: Floats
    more: tuple[Values, Values]
    every: Floats = field(init=False)

    def __post_init__(self) -> None:
        """Add up once what each build would need."""
        object.__setattr__(self, "every", self._more(np.ones_like(self.partners, dtype=np.bool_)))

    def told(self, build: Flags) -> Floats:
        """Return what a build adds to the probability of a failure, and to the entropy that is left: 2 x units."""
        if self.index == SINGLE:
            added = build * self.every
        elif self.index == BOTH:
            added = fails_if_both(build[None, :])[0] * self.every
        elif self.index == PARTNER:
            added = build * self._more(partners_of(build[None, :])[0])
        else:
            # All pairs but those of which neither is in it.
            added = self.every - ~build * self._more(~partners_of(build[None, :])[0])
        result: Floats = self.without + added
        return result

    def _more(self, partners: Flags) -> Floats:
        """Return what builds that fail by them add, 2 x units; of pairs, those with these partners."""
        more = self.more
        if self.index in {PARTNER, OTHER}:
            weights = np.where(partners, self.partners, 0).astype(np.float32)
            more = weights @ more[0], weights @ more[1]
        result: Floats = self.prior * np.stack(more)
        return result

    def rates(self, unit: int) -> tuple[float, float]:
        """Return the probabilities of a failing build if it fails by a unit, and if it does not."""
        more = float(self.every[0, unit])
        without, weight = float(self.without[0, unit]), float(self.weights[unit])
        return (without + more) / weight, without / weight


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """The probabilities of all hypotheses, and what they say of builds.

    `none` is the probability that failures do not depend on the units, and `none_fails` that of a failure then.
    """

    kinds: tuple[Kind, ...]
    none: float
    none_fails: float

    @property
    def weights(self) -> Floats:
        """The probability of each kind and unit: kinds x units."""
        return np.stack([kind.weights for kind in self.kinds])

    @property
    def units(self) -> Floats:
        """The probability of each unit to be the turning one."""
        total: Floats = self.weights.sum(axis=0)
        return total

    @property
    def rates(self) -> tuple[float, float]:
        """The failure rates with and without the likeliest culprit, as far as they are known."""
        weights = self.weights
        kind, unit = np.unravel_index(int(weights.argmax()), weights.shape)
        return self.kinds[int(kind)].rates(int(unit))

    def information(self, build: Flags) -> float:
        """Return what a build with these units is expected to tell about the hypotheses, in nats."""
        mean, rest = sum(kind.told(build).sum(axis=1) for kind in self.kinds) + self._of_none()
        return float(entropy(mean)) - float(rest)

    def distinction(self, build: Flags, unit: int) -> float:
        """Return how much a build is expected to tell for a unit against all else (nats), if that unit is the culprit.

        It is the divergence of what the unit predicts from what the others do together (H. Chernoff, Sequential Design of
        Experiments, 1959; M. Naghshvar and T. Javidi, Active Sequential Hypothesis Testing, 2013).
        """
        fails = sum(kind.told(build)[0] for kind in self.kinds)
        own = float(fails[unit])
        every = float(fails.sum()) + self.none * self.none_fails
        share = float(self.units[unit])
        rest = (every - own) / max(1 - share, 1e-12)
        return divergence(own / share, rest)

    def information_of_beginnings(self, never: Flags, always: Flags) -> Floats:
        """Return `information` of the builds with units 0 .. m-1, for m = 0 .. n.

        Args:
            never: units that cannot be made bad.
            always: units that cannot be made good.
        """
        inner = sum(kind.told(~never) for kind in self.kinds)
        outer = sum(kind.told(always) for kind in self.kinds)
        begin = np.zeros((2, 1))
        left = np.concatenate([begin, np.cumsum(inner, axis=1)], axis=1)
        right = np.concatenate([begin, np.cumsum(outer, axis=1)], axis=1)
        mean, rest = left + right[:, -1:] - right + self._of_none()[:, None]
        result: Floats = entropy(mean) - rest
        return result

    def _of_none(self) -> Floats:
        return self.none * np.array([self.none_fails, float(entropy(self.none_fails))])


def posterior(units: Flags, failed: Flags, prior: Sequence[float] | Floats, belief: Belief) -> Posterior:
    """Return the posterior after builds that had `units` (builds x units) at their bad value and `failed` or not.

    `prior` are the weights of the units, which need not be normalised. Each hypothesis splits the builds in two kinds, with
    one unknown failure rate each; the rates are integrated out (Beta-binomial, closed form). All that a hypothesis says depends
    on two counts, the failed and the passed builds that fail by it, so that it is looked up for each.
    """
    fails, passes = int(failed.sum()), int((~failed).sum())
    tables = _tables(fails, passes, belief)
    common = float(evidence(belief.common, np.asarray(fails), np.asarray(passes)))
    none = math.log(belief.none) + common
    share = (1 - belief.none) * np.asarray(prior, dtype=np.float64) / np.sum(prior)
    grounds = _grounds(share, units, failed, belief)
    # What is likelier than all hypotheses that there are would drown them.
    used = np.zeros(len(tables.seen) + 1, dtype=np.bool_)
    for each in grounds:
        used[each.place] = True
    top = max(float(tables.seen[used[:-1]].max()), none)
    scale = np.where(used[:-1], np.exp(np.minimum(tables.seen - top, 0.0)), 0.0)
    weight_none = math.exp(none - top)
    weights = [each.sums(scale) for each in grounds]
    total = sum(float(each.sum()) for each in weights) + weight_none
    scale = scale / total
    entropies = entropy(tables.fails_without)
    more = (
        scale * (tables.fails_with - tables.fails_without),
        scale * (entropy(tables.fails_with) - entropies),
    )
    return Posterior(
        kinds=tuple(
            Kind(
                index=index,
                weights=weight / total,
                without=np.stack([ground.sums(scale * tables.fails_without), ground.sums(scale * entropies)]),
                prior=ground.prior,
                partners=ground.partners,
                more=(ground.values(more[0]), ground.values(more[1])),
            )
            for index, (ground, weight) in enumerate(zip(grounds, weights, strict=True))
        ),
        none=weight_none / total,
        none_fails=math.exp(
            float(evidence(belief.common, np.asarray(fails + 1), np.asarray(passes))) - common
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """By place (see `_Ground`): the logarithmic evidence, and the probabilities of one more failure with and without a culprit."""

    seen: Floats
    fails_with: Floats
    fails_without: Floats


def _tables(fails: int, passes: int, belief: Belief) -> _Tables:
    with_fails, with_passes = np.divmod(np.arange((fails + 1) * (passes + 1)), passes + 1)
    other_fails, other_passes = fails - with_fails, passes - with_passes
    seen = joint_evidence(belief, (with_fails, with_passes), (other_fails, other_passes))
    more_with = joint_evidence(belief, (with_fails + 1, with_passes), (other_fails, other_passes))
    more_without = joint_evidence(belief, (with_fails, with_passes), (other_fails + 1, other_passes))
    return _Tables(seen=seen, fails_with=np.exp(more_with - seen), fails_without=np.exp(more_without - seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ground:
    """Where the hypotheses of a kind find what was seen, and what was believed of them before.

    A place is the number of failed builds that fail by a hypothesis, times that of all passed builds plus one, plus the number of
    passed builds that do: by unit, or by partner and unit. The last place of all, -1, is no hypothesis. The prior of a pair
    is the product of those of its partners.
    """

    place: Counts
    prior: Floats
    partners: Floats

    def values(self, table: Floats) -> Values:
        """Return what a table by place says of each; of pairs, which are many, in single precision."""
        pairs = self.place.ndim > 1
        shown = np.append(table, 0.0)
        return shown.astype(np.float32).take(self.place) if pairs else shown.take(self.place)

    def sums(self, table: Floats) -> Floats:
        """Return the sums of what a table by place says, times the prior, by unit."""
        values = self.values(table)
        if values.ndim > 1:
            values = self.partners.astype(np.float32) @ values
        result: Floats = self.prior * values
        return result


def _grounds(share: Floats, units: Flags, failed: Flags, belief: Belief) -> list[_Ground]:
    """Return the ground of each kind; counts of builds with both of a pair are exact as single precision numbers."""
    part = belief.interaction
    step = int((~failed).sum()) + 1
    none = (int(failed.sum()) + 1) * step
    scale = np.where(failed, step, 1).astype(np.float32)
    bad = units.astype(np.float32)
    partners = partners_of(units).astype(np.float32)
    alone, groups = scale @ bad, scale @ partners
    together = (partners * scale[:, None]).T @ bad
    either = groups[:, None] + alone[None, :] - together
    both = (scale @ fails_if_both(units)).astype(np.int64)
    both[[0, -1]] = none
    count = len(share)
    first = _groups(count)
    last = np.append(first[1:], count) - 1
    position = np.arange(count)
    weight = np.add.reduceat(share, first)
    result = [_Ground(place=alone.astype(np.int64), prior=share * (1 - 2.5 * part), partners=share)]
    for among, counts in (
        (first[:, None] < position[None, :], together),
        (last[:, None] > position[None, :], either),
    ):
        place = counts.astype(np.int64)
        place[~among] = none
        total = float((weight @ among * share).sum()) / (part * (1 - belief.none))
        result.append(_Ground(place=place, prior=share / total if total else share, partners=weight))
    return [*result, _Ground(place=both, prior=share * (part / 2), partners=share)]
