"""What further builds would tell: how many are needed for a decision, and whose presence would tell most.

Futures are imagined: what is at fault and how often builds fail are drawn from what is believed now; each layer of a further build
gets a tactic as often as it had it so far, by itself. Layers that are bound to each other need more builds than that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.evidence import Rates, log_evidence
from polygraphy_debug_ext.analysis.posterior import PRIOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from polygraphy_debug_ext.analysis.hypotheses import Hypotheses
    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.model.answer import Suspect

#: Further builds after which an imagined future is looked at.
_LOOKS: Final = (
    1,
    2,
    3,
    4,
    6,
    8,
    10,
    13,
    16,
    20,
    25,
    30,
    40,
    50,
    65,
    80,
    100,
    130,
    160,
    200,
    260,
    330,
    420,
    550,
    750,
    1000,
)
_FUTURES: Final = 32
#: Classes that a decision may be about; the others are too unlikely.
_CLASSES: Final = 48
#: Suspects that are called telling.
_TELLING: Final = 3


def further_builds(table: Table, found: Hypotheses, rates: Rates, confidence: float) -> int | None:
    """Return in how many further builds half of the imagined futures are decided; None if it takes more than 1000.

    The random numbers are always the same: the answer depends on the table only.
    """
    world = _World(table, found, rates)
    generator = np.random.default_rng(0)
    needed = [world.builds_until(confidence, generator) for _ in range(_FUTURES)]
    middle = float(np.quantile(needed, 0.5, method="higher"))
    return int(middle) if np.isfinite(middle) else None


class _World:
    """The likeliest classes, what was seen of them, and how likely each is to hold the only fault (the last entry: none does)."""

    def __init__(self, table: Table, found: Hypotheses, rates: Rates) -> None:
        bad = table.bad
        self._rates = rates
        self._fails, self._passes = int(bad.sum()), int((~bad).sum())
        presence = found.class_presence
        having = np.stack([presence[:, bad].sum(axis=1), presence[:, ~bad].sum(axis=1)]).astype(np.int64)
        weights = found.class_weights
        prior = np.log(weights / weights.sum() * PRIOR.single) if len(weights) else np.zeros(0)
        scores = prior + self._singles(having, np.array([self._fails]), np.array([self._passes]))
        self._kept = np.argsort(-scores, kind="stable")[:_CLASSES]
        self._prior = prior[self._kept]
        self._having = having[:, self._kept]
        self._columns = _Columns(table, [found.choices[number] for number in found.first[self._kept]])
        none = np.log(PRIOR.none) + float(log_evidence(self._fails, self._passes, rates.common))
        logs = np.append(scores[self._kept], none)
        self._belief = np.exp(logs - logs.max())
        self._belief /= self._belief.sum()

    def builds_until(self, confidence: float, generator: np.random.Generator) -> float:
        """Imagine one future; return after how many of its builds something is decided, infinite if nothing is."""
        truth = int(generator.choice(len(self._belief), p=self._belief))
        presence = self._columns.draw(_LOOKS[-1], generator)
        bad = generator.random(_LOOKS[-1]) < self._failure_rates(truth, presence, generator)
        looks = np.array(_LOOKS) - 1
        fails, passes = np.cumsum(bad)[looks] + self._fails, np.cumsum(~bad)[looks] + self._passes
        with_fails = np.cumsum(presence & bad, axis=1)[:, looks] + self._having[0][:, np.newaxis]
        with_passes = np.cumsum(presence & ~bad, axis=1)[:, looks] + self._having[1][:, np.newaxis]
        singles = self._singles(np.stack([with_fails, with_passes]), fails, passes)
        none = np.log(PRIOR.none) + log_evidence(fails, passes, self._rates.common)
        logs = np.concatenate([singles + self._prior[:, np.newaxis], none[np.newaxis]])
        shares = np.exp(logs - logs.max(axis=0))
        (decided,) = np.nonzero((shares / shares.sum(axis=0)).max(axis=0) >= confidence)
        return float(_LOOKS[decided[0]]) if len(decided) else np.inf

    def _failure_rates(
        self, truth: int, presence: NDArray[np.bool_], generator: np.random.Generator
    ) -> NDArray[np.float64]:
        """How likely each imagined build is to fail."""
        rates = self._rates
        if truth == len(self._kept):
            common = generator.beta(rates.common.alpha + self._fails, rates.common.beta + self._passes)
            return np.full(presence.shape[1], common)
        fails, passes = (int(each) for each in self._having[:, truth])
        present = generator.beta(rates.present.alpha + fails, rates.present.beta + passes)
        absent = generator.beta(
            rates.absent.alpha + self._fails - fails, rates.absent.beta + self._passes - passes
        )
        return np.where(presence[truth], present, absent)

    def _singles(
        self, having: NDArray[np.int64], fails: NDArray[np.int64], passes: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        present = log_evidence(having[0], having[1], self._rates.present)
        result: NDArray[np.float64] = present + log_evidence(
            fails - having[0], passes - having[1], self._rates.absent
        )
        return result


class _Columns:
    """The layers of some candidates, from which further builds are drawn."""

    def __init__(self, table: Table, candidates: list[tuple[int, ...]]) -> None:
        self._candidates = candidates
        self._layers = {int(table.layer_of[choice]) for choices in candidates for choice in choices}
        self._columns = {layer: table.codes[:, layer] for layer in sorted(self._layers)}
        self._layer_of = table.layer_of

    def draw(self, builds: int, generator: np.random.Generator) -> NDArray[np.bool_]:
        """Return which of so many further builds has which candidate (bool, candidates x builds)."""
        drawn = {
            layer: column[generator.integers(len(column), size=builds)]
            for layer, column in self._columns.items()
        }
        presence = np.zeros((len(self._candidates), builds), dtype=np.bool_)
        for number, choices in enumerate(self._candidates):
            for choice in choices:
                presence[number] |= drawn[int(self._layer_of[choice])] == choice
        return presence


def telling(suspects: tuple[Suspect, ...], rates: Rates) -> tuple[Suspect, ...]:
    """Return the suspects whose presence in the next build would tell most, the most telling first.

    It tells I(q) = H(q b + (1 - q) a) - q H(b) - (1 - q) H(a) bits, where q is the probability of the suspect, b the expected rate of
    failures with it if it is at fault, a that of all builds.
    """
    if not suspects:
        return ()
    counts = [suspect.counts for suspect in suspects]
    share = np.array([suspect.probability for suspect in suspects])
    fails = np.array([each.bad_with for each in counts])
    passes = np.array([each.good_with for each in counts])
    with_fault = (rates.present.alpha + fails) / (rates.present.alpha + rates.present.beta + fails + passes)
    bad, good = counts[0].bad_with + counts[0].bad_without, counts[0].good_with + counts[0].good_without
    without = (rates.common.alpha + bad) / (rates.common.alpha + rates.common.beta + bad + good)
    bits = (
        _entropy(share * with_fault + (1 - share) * without)
        - share * _entropy(with_fault)
        - (1 - share) * _entropy(np.full(len(share), without))
    )
    order = np.argsort(-bits, kind="stable")[:_TELLING]
    return tuple(suspects[number] for number in order if bits[number] > 0)


def _entropy(rate: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many bits an outcome of these probabilities, each above 0 and below 1, tells."""
    result: NDArray[np.float64] = -rate * np.log2(rate) - (1 - rate) * np.log2(1 - rate)
    return result
