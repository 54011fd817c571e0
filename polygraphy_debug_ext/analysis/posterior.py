"""How likely each candidate is to be at fault: alone, with a partner, or none of them (`Prior`).

Among hypotheses that explain equally well what was seen, the prior decides; the evidence of each is in closed form
(`log_evidence`), so that all are scored at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.evidence import log_evidence, log_ordered
from polygraphy_debug_ext.model.answer import PairKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from polygraphy_debug_ext.analysis.evidence import Rates
    from polygraphy_debug_ext.analysis.hypotheses import Hypotheses


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """What is believed beforehand: that one candidate is at fault, that two are, that none is."""

    single: float
    pair: float
    none: float


#: Nobody knows beforehand whether a tactic is at fault at all: even odds. Then, in runs where none is, the likelihood ratio has to
#: reach 19 for a claim of 95 %, which happens in at most 1 of 19 runs, however often one looks (Ville's inequality, for a rate drawn from
#: `Rates.common`). With odds of 9 to 1 in favour of a tactic, up to 17 % of such runs named one when looked at after every other build.
PRIOR: Final = Prior(single=0.45, pair=0.05, none=0.5)

#: Classes among which pairs are looked for: those that explain most by themselves.
_PARTNERS: Final = 64
#: What is less likely than the best hypothesis by so many powers of e decides nothing.
_REACH: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two classes that are at fault together, with the probability of it."""

    classes: tuple[int, int]
    kind: PairKind
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Probabilities given the builds: `alone` and `partnered` (float64, classes) of each class to hold the only fault, or one of two.

    The sum of `alone`, `pairs` and `none` is 1; a pair counts in `partnered` of both its classes. `best` is the likeliest pair.
    """

    alone: NDArray[np.float64]
    partnered: NDArray[np.float64]
    pairs: float
    none: float
    best: Pair | None

    @property
    def fault(self) -> NDArray[np.float64]:
        """How likely it is that a class holds a fault (float64, classes)."""
        return self.alone + self.partnered


def posterior(found: Hypotheses, bad: NDArray[np.bool_], rates: Rates, prior: Prior = PRIOR) -> Posterior:
    """Weigh the hypotheses against the verdicts (`bad`: bool, builds)."""
    fails, passes = int(bad.sum()), int((~bad).sum())
    none = np.log(prior.none) + float(log_evidence(fails, passes, rates.common))
    if not len(found.first):
        return Posterior(alone=np.zeros(0), partnered=np.zeros(0), pairs=0.0, none=1.0, best=None)
    presence = found.class_presence
    having = np.stack([presence[:, bad].sum(axis=1), presence[:, ~bad].sum(axis=1)]).astype(np.int64)
    singles = np.log(found.class_weights / found.class_weights.sum() * prior.single) + _log_likelihood(
        having, fails, passes, rates
    )
    partners = np.argsort(-singles, kind="stable")[:_PARTNERS]
    first, second, kinds, together = _pairs(presence[partners], bad)
    number = len(found.choices)
    both = found.class_sizes[partners[first]] * found.class_sizes[partners[second]]
    pairs = np.log(both * prior.pair / max(number * (number - 1), 1)) + _log_likelihood(
        together, fails, passes, rates
    )
    top = max(float(singles.max()), none, float(pairs.max(initial=-np.inf)))
    singles, pairs = (
        _ordered(singles, having, top, (fails, passes), rates),
        _ordered(pairs, together, top, (fails, passes), rates),
    )
    alone, paired, neither = np.exp(singles - top), np.exp(pairs - top), np.exp(none - top)
    total = alone.sum() + paired.sum() + neither
    partnered = np.zeros(len(alone))
    np.add.at(partnered, partners[first], paired)
    np.add.at(partnered, partners[second], paired)
    best = None
    if len(paired):
        place = int(np.argmax(paired))
        best = Pair(
            classes=(int(partners[first[place]]), int(partners[second[place]])),
            kind=(PairKind.EITHER, PairKind.BOTH)[kinds[place]],
            probability=float(paired[place] / total),
        )
    return Posterior(
        alone=alone / total,
        partnered=partnered / total,
        pairs=float(paired.sum() / total),
        none=float(neither / total),
        best=best,
    )


def _log_likelihood(having: NDArray[np.int64], fails: int, passes: int, rates: Rates) -> NDArray[np.float64]:
    """The evidence for candidates that so many failed and passed builds have (int64, 2 x candidates)."""
    present = log_evidence(having[0], having[1], rates.present)
    absent = log_evidence(fails - having[0], passes - having[1], rates.absent)
    result: NDArray[np.float64] = present + absent
    return result


def _ordered(
    logs: NDArray[np.float64],
    having: NDArray[np.int64],
    top: float,
    builds: tuple[int, int],
    rates: Rates,
) -> NDArray[np.float64]:
    """Take into account that a fault makes builds fail more often, wherever it can matter."""
    result: NDArray[np.float64] = logs.copy()
    (near,) = np.nonzero(logs > top - _REACH)
    chosen = having[:, near]
    result[near] += log_ordered((chosen[0], chosen[1]), (builds[0] - chosen[0], builds[1] - chosen[1]), rates)
    return result


def _pairs(
    presence: NDArray[np.bool_], bad: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of rows that say something else than their members: first, second, kind (0 either, 1 both), counts (2 x pairs).

    A pair that the same builds have as one of its members, all builds or none, is no hypothesis of its own.
    """
    first, second = np.triu_indices(len(presence), 1)
    numbers = presence.astype(np.float32)
    alone = [numbers[:, side].sum(axis=1) for side in (bad, ~bad)]
    both = [(numbers[:, side] @ numbers[:, side].T)[first, second] for side in (bad, ~bad)]
    either = [a[first] + a[second] - b for a, b in zip(alone, both, strict=True)]
    total = presence.sum(axis=1)
    total_both, total_either = both[0] + both[1], either[0] + either[1]
    distinct = (total_both < total[first]) & (total_both < total[second])
    builds = len(bad)
    keep_either = distinct & (total_either < builds)
    keep_both = distinct & (total_both > 0)
    counts = np.concatenate([np.stack(either)[:, keep_either], np.stack(both)[:, keep_both]], axis=1).astype(
        np.int64
    )
    return (
        np.concatenate([first[keep_either], first[keep_both]]),
        np.concatenate([second[keep_either], second[keep_both]]),
        np.repeat([0, 1], [int(keep_either.sum()), int(keep_both.sum())]),
        counts,
    )
