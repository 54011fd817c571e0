"""The pair that is bisected is the one that differs least."""

from __future__ import annotations

from polygraphy_debug_ext.analysis.pairs import Pair, closest
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.model import Assignment, Source, Tactic


def build(origin: str, **tactics: int) -> Assignment:
    layers = {name: Tactic(implementation=1, tactic=number) for name, number in tactics.items()}
    return Assignment(layers=layers, source=Source.REPLAY, origin=origin, fields=frozenset())


def test_the_closest_good_and_bad_build_are_taken() -> None:
    good = [build("g0", a=1, b=1, c=1), build("g1", a=1, b=2, c=2)]
    bad = [build("b0", a=2, b=2, c=3), build("b1", a=2, b=2, c=2)]
    assert closest(table_of(good, bad)) == Pair(good="g1", bad="b1", distance=1)


def test_a_pair_with_the_same_tactics_is_taken_only_if_there_is_no_other() -> None:
    same = [build("b0", a=1), build("b1", a=2)]
    assert closest(table_of([build("g0", a=1)], same)) == Pair(good="g0", bad="b1", distance=1)
    assert closest(table_of([build("g0", a=1)], same[:1])) == Pair(good="g0", bad="b0", distance=0)


def test_layers_that_one_of_them_does_not_have_do_not_count() -> None:
    good, bad = [build("g0", a=1, b=1)], [build("b0", a=2, c=5)]
    assert closest(table_of(good, bad)) == Pair(good="g0", bad="b0", distance=1)


def test_one_side_alone_has_no_pair() -> None:
    assert closest(table_of([build("g0", a=1)], [])) is None
    assert closest(table_of([], [build("b0", a=1)])) is None
