"""The bound on the failure rate agrees with its definition."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.analysis import failure_rate_bound


@pytest.mark.parametrize("builds", [1, 2, 30, 300])
def test_at_the_bound_seeing_no_failure_has_the_stated_probability(builds: int) -> None:
    assert (1 - failure_rate_bound(builds, 0.95)) ** builds == pytest.approx(0.05)


def test_for_many_builds_it_is_the_rule_of_three() -> None:
    assert failure_rate_bound(1000) == pytest.approx(3 / 1000, rel=0.01)


def test_no_build_bounds_nothing() -> None:
    assert failure_rate_bound(0) == 1.0


@pytest.mark.parametrize(("builds", "confidence"), [(-1, 0.95), (1, 0.0), (1, 1.0)])
def test_what_has_no_meaning_is_refused(builds: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="must"):
        failure_rate_bound(builds, confidence)
