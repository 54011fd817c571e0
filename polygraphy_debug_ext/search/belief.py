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

#: Parts of a prior: weight and distribution.
Mixture = tuple[tuple[float, Beta], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """Priors of the failure rate of builds with the culprit, of builds without it, and of all builds if there is no culprit.

    `none` is the prior probability that there is no culprit, `interaction` the one that a culprit needs a partner, and also
    that it is not the only one.
    """

    present: Mixture
    absent: Mixture
    common: Mixture
    none: float = 0.1
    interaction: float = 0.04


#: A check that never errs, or one that finds a culprit four times in five and errs one time in ten: as likely, for each rate.
EXPECTED: Final = Belief(
    present=((0.5, Beta(40, 0.5)), (0.5, Beta(4, 1))),
    absent=((0.5, Beta(0.5, 40)), (0.5, Beta(1, 9))),
    common=((0.5, Beta(1, 9)), (0.5, Beta(1, 1))),
)
#: Nothing is believed of the rates (Jeffreys' prior).
JEFFREYS: Final = Belief(
    present=((1.0, Beta(0.5, 0.5)),), absent=((1.0, Beta(0.5, 0.5)),), common=((1.0, Beta(0.5, 0.5)),)
)


def evidence(mixture: Mixture, fails: NDArray[np.int64], passes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln P(a sequence with so many fails and passes), of the shape of the counts."""
    most = int(max(fails.max(initial=0), passes.max(initial=0))) + 1
    return _table(mixture, 1 << most.bit_length())[fails, passes]


def predictive(mixture: Mixture, fails: NDArray[np.int64], passes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return P(the next build fails) after so many fails and passes, of the shape of the counts."""
    rates: NDArray[np.float64] = np.exp(
        evidence(mixture, fails + 1, passes) - evidence(mixture, fails, passes)
    )
    return rates


@lru_cache(maxsize=64)
def _table(mixture: Mixture, size: int) -> NDArray[np.float64]:
    """The values of `evidence` for all counts below `size`."""
    counts = np.arange(size)
    parts = [
        math.log(weight) + log_evidence(counts[:, None], counts[None, :], beta) for weight, beta in mixture
    ]
    table: NDArray[np.float64] = np.logaddexp.reduce(np.stack(parts), axis=0)
    table.setflags(write=False)
    return table
