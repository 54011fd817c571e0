"""What is on the avoid list is not offered, is replaced by the fastest other tactic, and is seen in engines."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.errors import BuildError, UsageError
from polygraphy_debug_ext.formats.autotuning import Candidate, TunedOp
from polygraphy_debug_ext.formats.avoid import AvoidEntry
from polygraphy_debug_ext.model import Assignment, Source, Tactic, Witness
from polygraphy_debug_ext.trt.avoiding import Avoidance, AvoidFilter, replacements
from polygraphy_debug_ext.trt.heard import Timings
from polygraphy_debug_ext.trt.joining import Cached

KEY = f"0x{1:032x}"
BIG = 0x1D93B2A116B83EAC


def tactic(number: int, kernel: str | None = None, *, key: str | None = None, engine: bool = True) -> Tactic:
    witnesses = {Witness.CACHE, *([Witness.ENGINE] if engine else [])}
    return Tactic(
        implementation=9,
        tactic=number,
        kernel=kernel,
        cache_key=key,
        time_ms=1.0,
        witnesses=frozenset(witnesses),
    )


def table(*kernels: str) -> TunedOp:
    candidates = tuple(
        Candidate(tactic=i, kernel=kernel, cost_ms=1.0 + i) for i, kernel in enumerate(kernels)
    )
    return TunedOp(op="fc", key=KEY, onnx_layers=(), candidates=candidates, selected=0)


def avoiding(*entries: AvoidEntry, timings: Timings | None = None) -> Avoidance:
    return Avoidance(entries, "10.13", timings or Timings())


def cached(**layers: Tactic) -> Assignment:
    return Assignment(layers=layers, source=Source.TIMING_CACHE)


def test_a_selector_is_not_offered_what_is_on_the_list() -> None:
    timings = Timings()
    timings.kernels[BIG] = "sm80_bad"
    chooser = AvoidFilter(
        avoiding(AvoidEntry(kernel="sm80_bad"), AvoidEntry(tactic=7), timings=timings), timings
    )
    offered = [tactic(BIG), tactic(6), tactic(7), tactic(8)]
    assert chooser.narrow("conv", offered, [0, 1, 2, 3]) == [1, 3]
    assert chooser.narrow("conv", offered, [2, 3]) == [3]


def test_a_layer_without_anything_left_fails_with_its_entries() -> None:
    timings = Timings()
    chooser = AvoidFilter(avoiding(AvoidEntry(tactic=6), AvoidEntry(tactic=7), timings=timings), timings)
    with pytest.raises(
        BuildError, match=r"All 2 tactics .* layer conv are avoided, by: tactic 0x0+6; tactic 0x0+7"
    ):
        chooser.narrow("conv", [tactic(6), tactic(7)], [0, 1])


def test_a_banned_tactic_is_on_the_list_at_its_layer_only() -> None:
    avoidance = avoiding(AvoidEntry(kernel="unnamed"))
    (offence,) = avoidance.offences({"conv": tactic(5, "unnamed"), "other": tactic(6, "fine")})
    avoidance.ban(offence)
    assert avoidance.entry("conv", tactic(5)) is offence.entry
    assert avoidance.entry("other", tactic(5)) is None


def test_a_pick_is_replaced_by_the_fastest_that_is_allowed_and_its_cost_is_known() -> None:
    avoidance = avoiding(AvoidEntry(kernel="a"), AvoidEntry(kernel="b"))
    pins, (change,) = replacements(avoidance, cached(fc=tactic(0, "a", key=KEY)), [table("a", "b", "c", "d")])
    assert pins == {KEY: Cached(tactic=2, time_ms=3.0)}
    assert change.cost_ms == 2.0


def test_a_pick_that_was_swallowed_is_replaced_too_but_costs_nothing() -> None:
    built = cached(fc=tactic(0, "a", key=KEY, engine=False))
    pins, changes = replacements(avoiding(AvoidEntry(kernel="a")), built, [table("a", "b")])
    assert pins == {KEY: Cached(tactic=1, time_ms=2.0)}
    assert changes == []


def test_a_pick_of_which_no_table_is_known_is_timed_again() -> None:
    pins, changes = replacements(avoiding(AvoidEntry(kernel="a")), cached(fc=tactic(0, "a", key=KEY)), [])
    assert pins == {KEY: None}
    assert changes == []


def test_an_op_with_nothing_else_fails_with_layer_and_entry() -> None:
    with pytest.raises(BuildError, match=r"All 2 tactics .* layer fc are avoided, by the entry: kernel \*"):
        replacements(avoiding(AvoidEntry(kernel="*")), cached(fc=tactic(0, "a", key=KEY)), [table("a", "b")])


def test_a_replay_that_forces_what_is_on_the_list_is_refused() -> None:
    with pytest.raises(UsageError, match="forces 1 tactics that are to be avoided"):
        avoiding(AvoidEntry(kernel="a")).require_free_of(cached(fc=tactic(0, "a", key=KEY)))


def test_entries_for_other_versions_do_nothing() -> None:
    assert avoiding(AvoidEntry(kernel="a", before="10.0")).entry("fc", tactic(0, "a")) is None
