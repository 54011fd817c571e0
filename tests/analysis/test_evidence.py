"""Evidence agrees with exact rational arithmetic, far into the tails."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from polygraphy_debug_ext.analysis.evidence import EXPECTED, JEFFREYS, Beta, log_evidence, log_ordered


def log_of(value: Fraction) -> float:
    """The logarithm of a fraction of any size."""

    def log(number: int) -> float:
        shift = max(number.bit_length() - 64, 0)
        return math.log(number >> shift) + shift * math.log(2)

    return log(value.numerator) - log(value.denominator)


def exact_evidence(fails: int, passes: int, alpha: Fraction, beta: Fraction) -> Fraction:
    """The probability of the sequence, one build after the other."""
    result = Fraction(1)
    for seen in range(fails):
        result *= (alpha + seen) / (alpha + beta + seen)
    for seen in range(passes):
        result *= (beta + seen) / (alpha + beta + fails + seen)
    return result


def beta_function(x: int, y: int) -> Fraction:
    return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))


def exact_greater(a: int, b: int, c: int, d: int) -> Fraction:
    """P(x > y), x ~ Beta(a, b), y ~ Beta(c, d): the finite sum for whole parameters."""
    terms = (
        beta_function(c + i, d + b) / ((b + i) * beta_function(1 + i, b) * beta_function(c, d))
        for i in range(a)
    )
    return sum(terms, Fraction(0))


@pytest.mark.parametrize(
    ("fails", "passes"), [(0, 0), (1, 0), (0, 1), (3, 5), (40, 0), (0, 2000), (700, 900)]
)
@pytest.mark.parametrize(("alpha", "beta"), [(4, 1), (1, 9), (0.5, 0.5), (2, 0.5), (1, 1)])
def test_evidence_is_that_of_exact_arithmetic(fails: int, passes: int, alpha: float, beta: float) -> None:
    exact = log_of(exact_evidence(fails, passes, Fraction(alpha), Fraction(beta)))
    assert float(log_evidence(fails, passes, Beta(alpha, beta))) == pytest.approx(exact, rel=1e-12, abs=1e-14)


def test_evidence_of_a_million_builds_is_right_to_the_ninth_digit() -> None:
    # One binomial sequence under a uniform prior: 1 / ((n + 1) (n choose f))
    fails, passes = 400_000, 600_000
    exact = -math.log(fails + passes + 1) - (
        math.lgamma(fails + passes + 1) - math.lgamma(fails + 1) - math.lgamma(passes + 1)
    )
    assert float(log_evidence(fails, passes, Beta(1, 1))) == pytest.approx(exact, rel=1e-9)


def test_probabilities_of_all_sequences_come_to_one() -> None:
    fails = np.arange(21)
    ways = np.array([math.comb(20, int(each)) for each in fails])
    for prior in (EXPECTED.present, EXPECTED.absent, JEFFREYS.present):
        assert float((ways * np.exp(log_evidence(fails, 20 - fails, prior))).sum()) == pytest.approx(1)


def test_shapes_broadcast() -> None:
    assert log_evidence(np.zeros((3, 1), dtype=int), np.arange(4), Beta(1, 1)).shape == (3, 4)
    ordered = log_ordered((np.zeros((3, 1), dtype=int), 1), (np.arange(4), 2), EXPECTED)
    assert ordered.shape == (3, 4)


COUNTS = [
    (0, 0, 0, 0),
    (1, 0, 0, 1),
    (3, 2, 1, 5),
    (0, 10, 10, 0),
    (40, 0, 0, 40),
    (0, 40, 40, 0),
    (30, 30, 30, 30),
    (0, 300, 300, 0),
    (5, 300, 200, 3),
    (300, 0, 0, 300),
    (0, 400, 20, 900),
    (13, 14, 1, 500),
]


@pytest.mark.parametrize("counts", COUNTS)
def test_the_order_of_rates_is_that_of_exact_arithmetic(counts: tuple[int, int, int, int]) -> None:
    before = exact_greater(4, 1, 1, 9)
    after = exact_greater(4 + counts[0], 1 + counts[1], 1 + counts[2], 9 + counts[3])
    found = float(log_ordered((counts[0], counts[1]), (counts[2], counts[3]), EXPECTED))
    assert found == pytest.approx(log_of(after) - log_of(before), rel=1e-9, abs=1e-13)


def test_the_order_of_rates_is_right_for_halves_as_well() -> None:
    # P(x > y) + P(y > x) = 1, and both are sums of positive terms.
    for counts in product((0, 1, 7, 60), repeat=4):
        first, second = (counts[0], counts[1]), (counts[2], counts[3])
        a = 0.5 * math.exp(float(log_ordered(first, second, JEFFREYS)))
        b = 0.5 * math.exp(float(log_ordered(second, first, JEFFREYS)))
        assert a + b == pytest.approx(1, abs=1e-12)


def test_the_order_of_half_rates_agrees_with_an_integral() -> None:
    # x = sin^2 t takes the poles off the ends of the densities, so that sums over an even grid are right to many digits.
    angle = (np.arange(20_000) + 0.5) * (math.pi / 2 / 20_000)
    sine, cosine = np.sin(angle) ** 2, np.cos(angle) ** 2
    for fails, passes, others, good in ((3, 5, 2, 9), (0, 6, 5, 1), (9, 1, 0, 12)):
        first, second = sine**fails * cosine**passes, sine**others * cosine**good
        below = np.cumsum(second) - second / 2
        expected = float((first * below).sum() / first.sum() / second.sum()) / 0.5
        found = float(log_ordered((fails, passes), (others, good), JEFFREYS))
        assert found == pytest.approx(math.log(expected), abs=1e-6)


def test_extreme_counts_stay_finite() -> None:
    found = log_ordered(([0, 50_000], [50_000, 0]), ([50_000, 0], [0, 50_000]), EXPECTED)
    assert np.isfinite(found).all()
    assert found[0] < -60_000
    assert 0 <= found[1] < 0.01


def test_more_failures_with_a_suspect_speak_for_it() -> None:
    found = log_ordered((np.arange(11), 10 - np.arange(11)), (3, 7), EXPECTED)
    assert (np.diff(found) > 0).all()


@pytest.mark.parametrize(("alpha", "beta"), [(0, 1), (1, 0), (-1, 2)])
def test_what_is_no_distribution_is_refused(alpha: float, beta: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Beta(alpha, beta)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        log_evidence([-1], [1], Beta(1, 1))
    with pytest.raises(ValueError, match="negative"):
        log_ordered((1, -1), (0, 0), EXPECTED)
