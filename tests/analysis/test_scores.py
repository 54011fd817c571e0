"""Scores agree with their definitions."""

from __future__ import annotations

import math

import pytest

from polygraphy_debug_ext.analysis.scores import dstar, ochiai, stock_rank
from polygraphy_debug_ext.model.answer import Counts, Rank


def counts(bad_with: int, good_with: int, bad_without: int, good_without: int) -> Counts:
    return Counts(bad_with=bad_with, good_with=good_with, bad_without=bad_without, good_without=good_without)


@pytest.mark.parametrize(
    ("seen", "rank"),
    [
        (counts(3, 0, 0, 2), Rank.STRONG),
        (counts(2, 0, 1, 2), Rank.WEAK),
        (counts(3, 1, 0, 1), Rank.NOT_SUSPECT),
        (counts(0, 0, 3, 2), Rank.NOT_SUSPECT),
    ],
)
def test_one_good_build_acquits_by_the_rule_of_polygraphy(seen: Counts, rank: Rank) -> None:
    assert stock_rank(seen) is rank


def test_ochiai_is_the_cosine_of_failures_and_presence() -> None:
    assert ochiai(counts(3, 1, 1, 5)) == pytest.approx(3 / math.sqrt(4 * 4))
    assert ochiai(counts(4, 0, 0, 6)) == 1.0
    assert ochiai(counts(0, 4, 4, 0)) == 0.0


def test_dstar_is_infinite_where_nothing_contradicts() -> None:
    assert dstar(counts(3, 1, 1, 5)) == pytest.approx(9 / 2)
    assert dstar(counts(4, 0, 0, 6)) == math.inf
    assert dstar(counts(0, 0, 4, 6)) == 0.0
