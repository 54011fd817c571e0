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
    """What is believed beforehand of failure rates: of builds that have the culprit, of those that have not, and where there is none."""

    present: Beta
    absent: Beta
    common: Beta = Beta(1, 1)


#: A culprit mostly shows, and without it failures are rare: failures and passes as good as 4 to 1, and 1 to 9.
#: Where no tactic is at fault the rate may be anything: what else makes builds fail is not known to be rare.
EXPECTED: Final = Rates(present=Beta(4, 1), absent=Beta(1, 9))
#: The same means, believed half as firmly: for builds that chance has made, whose check may fail half the time, or never by mistake.
#: In tests/benchmarks/study_calibration.py it names more culprits than EXPECTED, and no more innocents.
TENTATIVE: Final = Rates(present=Beta(2, 0.5), absent=Beta(0.5, 4.5))
#: Nothing is believed: Jeffreys' prior of a rate (H. Jeffreys, Theory of Probability, 1961, section 3.10).
JEFFREYS: Final = Rates(present=Beta(0.5, 0.5), absent=Beta(0.5, 0.5), common=Beta(0.5, 0.5))


def log_evidence(fails: ArrayLike, passes: ArrayLike, prior: Beta) -> NDArray[np.float64]:
    """Return ln of the probability of sequences with so many fails and passes (whole numbers, shapes that broadcast).

    Raises:
        ValueError: if a count is negative.
    """
    failed, passed = _counts(fails), _counts(passes)
    total = failed + passed
    most = int(total.max(initial=0))
    # ln B(a + f, b + p) - ln B(a, b), where B(x, y) = Γ(x) Γ(y) / Γ(x + y)
    result: NDArray[np.float64] = (
        _log_rising(prior.alpha, most)[failed]
        + _log_rising(prior.beta, most)[passed]
        - _log_rising(prior.alpha + prior.beta, most)[total]
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

    It is added to the sum of two `log_evidence`, where a culprit cannot make builds better.
    """
    grids = [_counts(each) for each in (*present, *absent)]
    shape = np.broadcast_shapes(*(grid.shape for grid in grids))
    rows = np.stack([np.broadcast_to(grid, shape).ravel() for grid in grids], axis=1)
    unique, inverse = _distinct(rows)
    values = _log_greater(unique, rates) - _log_greater(np.zeros((1, 4), dtype=np.int64), rates)
    return values[inverse].reshape(shape)


def _distinct(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The distinct rows of four, and which of them each row is."""
    scale = int(rows.max(initial=0)) + 1
    if scale**4 >= 2**63:
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        return unique, np.ravel(inverse)
    # One number for each row: much faster to sort.
    _, first, inverse = np.unique(
        rows @ (scale ** np.arange(4, dtype=np.int64)), return_index=True, return_inverse=True
    )
    return rows[first], np.ravel(inverse)


def _counts(values: ArrayLike) -> NDArray[np.int64]:
    counts = np.asarray(values, dtype=np.int64)
    if counts.size and counts.min() < 0:
        raise ValueError("a count of builds is negative")
    return counts


#: Terms below this share of the sum are left out.
_NEGLIGIBLE: Final = 1e-18
#: Terms that are held in memory at a time.
_BLOCK: Final = 1_000_000


def _log_greater(rows: NDArray[np.int64], rates: Rates) -> NDArray[np.float64]:
    """Return ln P(p1 > p0 | counts) of rows of counts: fails and passes with the culprit, fails and passes without it."""
    result = np.empty(len(rows))
    a, b = rates.present.alpha + rows[:, 0], rates.present.beta + rows[:, 1]
    c, d = rates.absent.alpha + rows[:, 2], rates.absent.beta + rows[:, 3]
    # The smaller of both tails is summed: it is right to all digits, and so is its complement.
    likely = a * d >= c * b
    for flipped in (False, True):
        (chosen,) = np.nonzero(likely == flipped)
        chosen = chosen[np.argsort(rows[chosen].sum(axis=1), kind="stable")]
        block = max(1, _BLOCK // (int(rows[chosen].sum(axis=1).max(initial=0)) + 64))
        for start in range(0, len(chosen), block):
            part = chosen[start : start + block]
            if flipped:
                tail = _log_tail(rows[part][:, [2, 3, 0, 1]], rates.absent, rates.present)
                result[part] = np.log1p(-np.exp(tail))
            else:
                result[part] = _log_tail(rows[part], rates.present, rates.absent)
    return result


def _log_tail(rows: NDArray[np.int64], first: Beta, second: Beta) -> NDArray[np.float64]:
    """Return ln P(x > y), x ~ Beta(a, b) = first + the first two counts, y ~ Beta(c, d) = second + the other two.

    With h(a, b, c, d) = B(a + c, b + d) / (B(a, b) B(c, d)),
    P(a, b, c, d) = P(a, b + 1, c, d) + h(a, b, c, d) / b = P(a, b, c + 1, d) + h(a, b, c, d) / c
    (J. D. Cook, Exact calculation of beta inequalities, 2005). Both steps are repeated until nothing is left of P: all terms are
    positive, so that nothing cancels, whatever the parameters.
    """
    terms = int((rows[:, 0] + rows[:, 3]).max(initial=0) + first.alpha + second.beta) + 64
    while True:
        logs = _log_terms(rows, first, second, terms)
        top = logs.max(axis=0)
        sums = np.exp(logs - top).sum(axis=0)
        if np.all(np.exp(logs[-1] - top) < _NEGLIGIBLE * sums):
            result: NDArray[np.float64] = top + np.log(sums)
            return result
        terms *= 2


def _log_terms(rows: NDArray[np.int64], first: Beta, second: Beta, terms: int) -> NDArray[np.float64]:
    """The logarithms of the terms of the series (2 * terms, rows)."""
    a, b, c, d = (first.alpha, first.beta, second.alpha, second.beta)
    n_a, n_b, n_c, n_d = rows.T
    step = np.arange(terms + 1)[:, np.newaxis]
    most = int(rows.sum(axis=1).max(initial=0)) + 2 * terms + 2

    def log_gamma(start: float, count: NDArray[np.int64]) -> NDArray[np.float64]:
        table: NDArray[np.float64] = math.lgamma(start) + _log_rising(start, most)[count]
        return table

    log_b, log_c = np.log(b + n_b + step[:-1]), np.log(c + n_c + step[:-1])
    # ln h(a, b + j, c + j, d), where a pair of steps leads from one j to the next
    whole = (
        log_gamma(a + c, n_a + n_c + step[:-1])
        + log_gamma(b + d, n_b + n_d + step[:-1])
        - log_gamma(a + b + c + d, n_a + n_b + n_c + n_d + 2 * step[:-1])
        + log_gamma(a + b, n_a + n_b + step[:-1])
        - log_gamma(a, n_a)
        - log_gamma(b, n_b + step[:-1])
        + log_gamma(c + d, n_c + n_d + step[:-1])
        - log_gamma(c, n_c + step[:-1])
        - log_gamma(d, n_d)
    )
    # h(a, b + 1, c, d) / h(a, b, c, d) = (b + d) (a + b) / ((a + b + c + d) b)
    half = (
        whole
        + np.log(b + d + n_b + n_d + step[:-1])
        + np.log(a + b + n_a + n_b + step[:-1])
        - np.log(a + b + c + d + n_a + n_b + n_c + n_d + 2 * step[:-1])
        - log_b
    )
    return np.concatenate([whole - log_b, half - log_c])


#: Logarithms that are added up in one go before the sum is made exact again.
_STRETCH: Final = 256


def _log_rising(start: float, most: int) -> NDArray[np.float64]:
    """The values of ln Γ(start + k) - ln Γ(start) for k = 0 .. most or more."""
    return _rising_table(start, max(most - 1, 0).bit_length())


@lru_cache(maxsize=64)
def _rising_table(start: float, bits: int) -> NDArray[np.float64]:
    """Sums of logarithms, exact to rounding where differences of lgamma are not; errors do not add up along the table."""
    logs = np.log(start + np.arange(max(2**bits, _STRETCH))).reshape(-1, _STRETCH)
    stretches = np.cumsum(logs, axis=1)
    offsets = [0.0]
    for row in logs:
        offsets.append(math.fsum((offsets[-1], *row)))
    table = np.concatenate([[0.0], (stretches + np.array(offsets[:-1])[:, np.newaxis]).ravel()])
    table.setflags(write=False)
    return table
