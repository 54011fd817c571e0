"""What is believed of failure rates before any build, and how well counts of builds fit that, in closed form.

A rate has a mixture of Beta distributions as its prior: most checks never err, and a few builds in line with that should be
enough to believe it; others err, and a few builds should be enough to see that. The probability of f failures and p passes
in a given order is the weighted sum of B(a + f, b + p) / B(a, b) over the parts (algorithms of Beta-binomial models).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.evidence import Beta, log_evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: Parts of the prior of one rate: weight and distribution.
Mixture = tuple[tuple[float, Beta], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Priors of the failure rates of builds with the culprit and without it, and of all builds if there is no culprit.

    `parts` are kinds of checks: weight, rate with the culprit, rate without. `none` is the prior probability that there is no
    culprit, `interaction` the one that a culprit needs a partner, and also that it is not the only one.
    """

    parts: tuple[tuple[float, Beta, Beta], ...]
    common: Mixture
    none: float = 0.12
    interaction: float = 0.005


#: Checks that hardly err; that err one time in twenty, in ten, in five; a culprit that shows half the time; false alarms;
#: anything. Most checks hardly err; the rest is chosen by simulation (tests/benchmarks/bench_isolation.py --goals).
EXPECTED: Final = Belief(
    parts=(
        (0.34, Beta(40, 0.5), Beta(0.5, 40)),
        (0.12, Beta(19, 1), Beta(1, 19)),
        (0.12, Beta(18, 2), Beta(2, 18)),
        (0.19, Beta(16, 4), Beta(4, 16)),
        (0.17, Beta(20, 20), Beta(0.5, 40)),
        (0.03, Beta(40, 0.5), Beta(2, 10)),
        (0.03, Beta(4, 1), Beta(1, 9)),
    ),
    common=((0.7, Beta(1, 9)), (0.3, Beta(1, 1))),
)
#: Nothing is believed of the rates (Jeffreys' prior).
JEFFREYS: Final = Belief(parts=((1.0, Beta(0.5, 0.5), Beta(0.5, 0.5)),), common=((1.0, Beta(0.5, 0.5)),))


def evidence(mixture: Mixture, fails: Counts, passes: Counts) -> Floats:
    """Return ln P(a sequence with so many fails and passes), of the shape of the counts."""
    parts = [math.log(weight) + _table(beta, _size(fails, passes))[fails, passes] for weight, beta in mixture]
    total: Floats = np.logaddexp.reduce(np.stack(parts), axis=0)
    return total


def joint_evidence(belief: Belief, present: tuple[Counts, Counts], absent: tuple[Counts, Counts]) -> Floats:
    """Return ln P(sequences with so many fails and passes of builds with a culprit, and without it)."""
    sizes = _size(*present), _size(*absent)
    parts = [
        math.log(weight) + _table(with_it, sizes[0])[present] + _table(without, sizes[1])[absent]
        for weight, with_it, without in belief.parts
    ]
    top = np.maximum.reduce(parts)
    total: Floats = top + np.log(sum(np.exp(part - top) for part in parts))
    return total


def _size(fails: Counts, passes: Counts) -> int:
    most = int(max(fails.max(initial=0), passes.max(initial=0))) + 1
    return 1 << most.bit_length()


@lru_cache(maxsize=128)
def _table(beta: Beta, size: int) -> Floats:
    """The logarithmic evidence of one distribution for all counts below `size`."""
    counts = np.arange(size)
    table = log_evidence(counts[:, None], counts[None, :], beta)
    table.setflags(write=False)
    return table
