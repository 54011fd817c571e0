"""Hybrids have the bad tactics that were asked for and the good ones elsewhere; what a build really has is told apart."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.model import Assignment, Source, Tactic, Witness
from polygraphy_debug_ext.trials.hybrids import Hybrids

ENGINE = frozenset({Witness.CACHE, Witness.ENGINE})


def tactic(number: int, key: str | None = None, witnesses: frozenset[Witness] = ENGINE) -> Tactic:
    return Tactic(implementation=1, tactic=number, cache_key=key, witnesses=witnesses)


def assignment(origin: str = "", **layers: Tactic) -> Assignment:
    return Assignment(
        layers=layers, source=Source.TIMING_CACHE, origin=origin, fields=frozenset(), timing_cache=b"c"
    )


GOOD = assignment("good.json", a=tactic(1), b=tactic(2), c=tactic(3), d=tactic(4))
BAD = assignment("bad.json", a=tactic(1), b=tactic(20), c=tactic(30), d=tactic(40))


def numbers(built: Assignment) -> list[int | None]:
    return [each.tactic for each in built.layers.values()]


def test_factors_are_the_layers_that_differ() -> None:
    assert Hybrids(GOOD, BAD).factors == ("b", "c", "d")


def test_a_hybrid_has_bad_tactics_where_asked_for_and_good_ones_elsewhere() -> None:
    hybrids = Hybrids(GOOD, BAD)
    assert numbers(hybrids.assignment({"c"})) == [1, 2, 30, 4]
    assert numbers(hybrids.assignment([])) == [1, 2, 3, 4]
    assert hybrids.assignment({"c"}).timing_cache is None


def test_all_factors_bad_is_the_bad_build_with_the_layers_that_only_it_has() -> None:
    bad = assignment(a=tactic(1), b=tactic(20), only=tactic(9))
    hybrids = Hybrids(GOOD, bad)
    assert hybrids.assignment(hybrids.factors).layers == bad.layers
    assert hybrids.apart == ("c", "d", "only")


def test_an_unknown_factor_is_refused() -> None:
    with pytest.raises(KeyError, match="no such factor: a"):
        Hybrids(GOOD, BAD).assignment({"a"})


def test_layers_that_share_a_key_are_one_factor() -> None:
    good = assignment(a=tactic(1, "k1"), b=tactic(2, "k2"), c=tactic(3, "k1"), d=tactic(4, "k4"))
    bad = assignment(a=tactic(10, "k1"), b=tactic(20, "k2"), c=tactic(10, "k1"), d=tactic(40, "k2"))
    hybrids = Hybrids(good, bad)
    assert hybrids.layers_of == {
        "a (and 1 with the same key)": ("a", "c"),
        "b (and 1 with the same key)": ("b", "d"),
    }


def test_a_pick_that_a_fusion_swallowed_is_no_factor() -> None:
    void = tactic(20, witnesses=frozenset({Witness.CACHE}))
    hybrids = Hybrids(GOOD, assignment(a=tactic(1), b=void, c=tactic(30), d=tactic(4)))
    assert hybrids.factors == ("c",)
    assert hybrids.apart == ("b",)


def test_what_a_build_has_is_read_from_it() -> None:
    hybrids = Hybrids(GOOD, BAD)
    realised = hybrids.realised(assignment(a=tactic(1), b=tactic(20), c=tactic(3), d=tactic(77)))
    assert realised.bad == {"b"}
    assert realised.neither == {"d"}


def test_a_layer_that_the_build_does_not_have_has_neither_value() -> None:
    void = tactic(30, witnesses=frozenset({Witness.CACHE}))
    realised = Hybrids(GOOD, BAD).realised(assignment(b=tactic(2), c=void))
    assert realised.bad == frozenset()
    assert realised.neither == {"c", "d"}


def test_a_factor_of_several_layers_is_bad_only_if_all_of_them_are() -> None:
    good = assignment(a=tactic(1, "k"), b=tactic(2, "k"))
    bad = assignment(a=tactic(10, "k"), b=tactic(20, "k"))
    hybrids = Hybrids(good, bad)
    mixed = hybrids.realised(assignment(a=tactic(10, "k"), b=tactic(2, "k")))
    assert mixed.neither == set(hybrids.factors)
    assert hybrids.realised(bad).bad == set(hybrids.factors)
