"""What is believed after some builds, and what a build is expected to tell, against all hypotheses one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from polygraphy_debug_ext.search import hypotheses
from polygraphy_debug_ext.search.belief import EXPECTED, evidence, joint_evidence
from polygraphy_debug_ext.search.hypotheses import entropy, posterior

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

PART = EXPECTED.interaction


def each_hypothesis(count: int, prior: list[float]) -> Iterator[tuple[int, float, list[bool]]]:
    """The turning unit, the prior, and for each of all builds (as binary numbers) whether it fails by the hypothesis."""
    builds = [[bool(number >> unit & 1) for unit in range(count)] for number in range(2**count)]
    share = [(1 - EXPECTED.none) * weight / sum(prior) for weight in prior]
    pairs = sum(share[one] * share[two] for two in range(count) for one in range(two))
    for unit in range(count):
        yield unit, share[unit] * (1 - 2.5 * PART), [build[unit] for build in builds]
        for other in range(count):
            weight = share[unit] * share[other] / pairs * PART * (1 - EXPECTED.none)
            if other < unit:
                yield unit, weight, [build[unit] and build[other] for build in builds]
            if other > unit:
                yield unit, weight, [build[unit] or build[other] for build in builds]
        if 0 < unit < count - 1:
            fails = hypotheses.fails_if_both(np.array(builds))[:, unit]
            yield unit, share[unit] * PART / 2, fails.tolist()


def told_one_by_one(
    count: int, prior: list[float], numbers: list[int], failed: Flags
) -> tuple[list[float], float, list[float]]:
    """The probability of each unit, that of none, and what each of all builds is expected to tell (nats)."""
    fails, passes = int(failed.sum()), int((~failed).sum())

    def grown(has: Flags, more: tuple[int, int]) -> float:
        inside = has & failed, has & ~failed
        outside = ~has & failed, ~has & ~failed
        (a, b), (c, d) = ((np.asarray(int(x.sum())) for x in pair) for pair in (inside, outside))
        return float(joint_evidence(EXPECTED, (a + more[0], b), (c + more[1], d)))

    def common(more: int) -> float:
        return float(evidence(EXPECTED.common, np.asarray(fails + more), np.asarray(passes)))

    units = [0.0] * count
    rates = [[math.exp(common(1) - common(0))] * 2**count]
    weights = [EXPECTED.none * math.exp(common(0))]
    for unit, weight, holds in each_hypothesis(count, prior):
        has = np.array([holds[number] for number in numbers])
        seen = grown(has, (0, 0))
        weights.append(weight * math.exp(seen))
        units[unit] += weights[-1]
        after = [math.exp(grown(has, more) - seen) for more in ((0, 1), (1, 0))]
        rates.append([after[fails] for fails in holds])
    share = np.array(weights) / sum(weights)
    mean = share @ np.array(rates)
    information = entropy(mean) - share @ entropy(np.array(rates))
    return [unit / sum(weights) for unit in units], float(share[0]), information.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_believed_and_told_is_that_of_all_hypotheses_one_by_one(seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = 5
    prior = generator.uniform(0.5, 3, count).tolist()
    numbers = generator.integers(2**count, size=9).tolist()
    failed = generator.random(9) < 0.5
    bits = np.array([[bool(number >> unit & 1) for unit in range(count)] for number in range(2**count)])
    units, none, information = told_one_by_one(count, prior, numbers, failed)
    found = posterior(bits[numbers], failed, prior, EXPECTED)
    assert found.units.tolist() == pytest.approx(units, rel=1e-5)
    assert found.none == pytest.approx(none, rel=1e-5)
    assert [found.information(build) for build in bits] == pytest.approx(information, abs=1e-6)
    free = np.zeros(count, dtype=np.bool_)
    beginnings = [information[2**length - 1] for length in range(count + 1)]
    assert found.information_of_beginnings(free, free).tolist() == pytest.approx(beginnings, abs=1e-6)


def test_a_build_tells_for_a_unit_as_much_as_its_outcome_differs_from_what_the_others_say() -> None:
    units = np.tri(7, 6, -1, dtype=np.bool_)
    found = posterior(units, np.arange(7) > 3, np.ones(6), EXPECTED)
    alone = np.arange(6) == 3
    fails = sum(kind.told(alone)[0] for kind in found.kinds)
    own = fails[3] / found.units[3]
    others = (fails.sum() - fails[3] + found.none * found.none_fails) / (1 - found.units[3])
    expected = own * math.log(own / others) + (1 - own) * math.log((1 - own) / (1 - others))
    assert found.distinction(alone, 3) == pytest.approx(expected)
    assert int(found.units.argmax()) == 3


def test_random_builds_tell_a_pair_from_noise() -> None:
    generator = np.random.default_rng(3)
    units = generator.random((40, 12)) < 0.7
    together = units[:, 4] & units[:, 9]
    found = posterior(units, together, np.ones(12), EXPECTED)
    assert found.weights[hypotheses.PARTNER, 9] > 0.999
    few = ~units
    either = posterior(few, few[:, 4] | few[:, 9], np.ones(12), EXPECTED)
    assert either.weights[hypotheses.OTHER, 4] > 0.9


def test_hundreds_of_builds_of_a_noisy_check_keep_all_numbers_finite() -> None:
    generator = np.random.default_rng(5)
    units = generator.random((900, 30)) < 0.5
    failed = generator.random(900) < np.where(units[:, 7], 0.7, 0.3)
    found = posterior(units, failed, np.ones(30), EXPECTED)
    assert found.units.sum() + found.none == pytest.approx(1)
    assert int(found.units.argmax()) == 7
    assert list(found.rates) == pytest.approx([0.7, 0.3], abs=0.06)


def test_partners_are_taken_in_groups_where_there_are_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    units = np.random.default_rng(3).random((40, 12)) < 0.7
    together = units[:, 4] & units[:, 9]
    monkeypatch.setattr(hypotheses, "PARTNERS", 6)
    grouped = hypotheses.partners_of(units)
    assert grouped.shape == (40, 6)
    assert (grouped[:, 2] == units[:, 4] & units[:, 5]).all()
    found = posterior(units, together, np.ones(12), EXPECTED)
    assert found.units.sum() + found.none == pytest.approx(1)
    free = np.zeros(12, dtype=np.bool_)
    beginnings = np.tri(13, 12, -1, dtype=np.bool_)
    values = [found.information(build) for build in beginnings]
    # A group in part bad counts as most of it is: only whole groups say the same one by one.
    assert found.information_of_beginnings(free, free)[[0, -1]].tolist() == pytest.approx(
        [values[0], values[-1]], abs=1e-6
    )
