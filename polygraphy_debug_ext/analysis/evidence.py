"""How well a hypothesis about failures fits what was seen: the marginal likelihood of a Beta-binomial model, in closed form.

Among builds of one kind each fails with the same unknown rate, whose prior is a Beta distribution. The probability of one
sequence of f failures and p passes, whatever the rate, is B(a + f, b + p) / B(a, b).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Beta:
    """A prior of a rate: as if `alpha` failures and `beta` passes had been seen."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        """Refuse what is no distribution."""
        if not (self.alpha > 0 and self.beta > 0):
            raise ValueError(f"Beta({self.alpha}, {self.beta}): both must be above 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What is believed beforehand of the failure rates of builds that have the culprit, and of those that have not."""

    present: Beta
    absent: Beta


#: A culprit mostly shows, and without it failures are rare: failures and passes as good as 4 to 1, and 1 to 9.
EXPECTED: Final = Rates(present=Beta(4, 1), absent=Beta(1, 9))
#: Nothing is believed: Jeffreys' prior of a rate (H. Jeffreys, Theory of Probability, 1961, section 3.10).
JEFFREYS: Final = Rates(present=Beta(0.5, 0.5), absent=Beta(0.5, 0.5))


def log_evidence(fails: ArrayLike, passes: ArrayLike, prior: Beta) -> NDArray[np.float64]:
    """Return ln of the probability of sequences with so many fails and passes (whole numbers, shapes that broadcast).

    Raises:
        ValueError: if a count is negative.
    """
    failed, passed = np.asarray(fails, dtype=np.int64), np.asarray(passes, dtype=np.int64)
    if failed.size and min(failed.min(), passed.min()) < 0:
        raise ValueError("a count of builds is negative")
    most = int((failed + passed).max(initial=0))
    # ln B(a + f, b + p) - ln B(a, b), where B(x, y) = Γ(x) Γ(y) / Γ(x + y)
    result: NDArray[np.float64] = (
        _log_rising(prior.alpha, most)[failed]
        + _log_rising(prior.beta, most)[passed]
        - _log_rising(prior.alpha + prior.beta, most)[failed + passed]
    )
    return result


def log_ordered(
    present: tuple[ArrayLike, ArrayLike], absent: tuple[ArrayLike, ArrayLike], rates: Rates
) -> NDArray[np.float64]:
    """Return ln of how much likelier than before it is that builds with the culprit fail more often than those without.

    Args:
        present: Fails and passes of the builds that have it (whole numbers, shapes that broadcast).
        absent: Those of the others.
        rates: The priors.

    It is added to the sum of two `log_evidence`, where a culprit cannot make builds better. P(p1 > p0) is integrated
    numerically, over the rates of each: Σ over a fine grid of f1(x) F0(x), which holds for any prior.
    """
    grids = [np.asarray(each, dtype=np.float64) for each in (*present, *absent)]
    shape = np.broadcast_shapes(*(grid.shape for grid in grids))
    counts = np.stack([np.broadcast_to(grid, shape).ravel() for grid in grids], axis=1)
    unique, inverse = np.unique(counts, axis=0, return_inverse=True)
    before = _greater(rates.present, rates.absent)
    values = np.array(
        [
            math.log(
                max(
                    _greater(
                        Beta(rates.present.alpha + row[0], rates.present.beta + row[1]),
                        Beta(rates.absent.alpha + row[2], rates.absent.beta + row[3]),
                    ),
                    1e-300,
                )
                / before
            )
            for row in unique
        ]
    )
    return values[np.ravel(inverse)].reshape(shape)


@lru_cache(maxsize=64)
def _log_rising(start: float, most: int) -> NDArray[np.float64]:
    """The values of ln Γ(start + k) - ln Γ(start) for k = 0 .. most, as sums of logarithms: exact to rounding where differences of lgamma are not."""
    table = np.concatenate([[0.0], np.cumsum(np.log(start + np.arange(most)))])
    table.setflags(write=False)
    return table


#: Points at which densities are evaluated; rates lie between 0 and 1.
_GRID: Final = 2048


@lru_cache(maxsize=4096)
def _greater(first: Beta, second: Beta) -> float:
    """P(x > y) for independent x ~ first, y ~ second."""
    # The substitution x = sin² t takes the poles off the ends of densities with parameters of 1/2 and above.
    angle = (np.arange(_GRID) + 0.5) * (math.pi / 2 / _GRID)
    sine, cosine = np.log(np.sin(angle)), np.log(np.cos(angle))
    weights = []
    for beta in (first, second):
        density = (2 * beta.alpha - 1) * sine + (2 * beta.beta - 1) * cosine
        density = np.exp(density - density.max())
        weights.append(density / density.sum())
    below = np.cumsum(weights[1]) - 0.5 * weights[1]
    return float(np.dot(weights[0], below))
