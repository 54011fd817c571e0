"""Of the tactics that are nearly the fastest, those are preferred that were seen least."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats.autotuning import Candidate, TunedOp
from polygraphy_debug_ext.formats.avoid import AvoidEntry
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.trt.avoiding import Avoidance
from polygraphy_debug_ext.trt.exploring import PERIOD, Explorer, margin
from polygraphy_debug_ext.trt.heard import Timings

KEY = f"0x{1:032x}"
COSTS = {1: 1.0, 2: 1.02, 3: 1.04, 4: 1.2}


def op() -> TunedOp:
    candidates = tuple(
        Candidate(tactic=each, kernel=f"k{each}", cost_ms=cost) for each, cost in COSTS.items()
    )
    return TunedOp(op="fc", key=KEY, onnx_layers=(), candidates=candidates, selected=1)


def built(tactic: int) -> Assignment:
    layers = {"fc": Tactic(implementation=None, tactic=tactic, cache_key=KEY)}
    return Assignment(layers=layers, source=Source.TIMING_CACHE, timing_cache=b"cache")


def explored(explorer: Explorer, builds: int) -> list[int]:
    """What each build gets, if one that is free gets the fastest."""
    got = []
    for _ in range(builds):
        step = explorer.step()
        tactic = 1 if step is None else step.pins[KEY].tactic
        explorer.learn(built(tactic), [op()], Timings(), free=step is None)
        got.append(tactic)
    return got


def test_every_tactic_within_the_margin_comes_first_and_none_beyond_it() -> None:
    got = explored(Explorer(0.05), 40)
    assert got[0] == 1
    assert set(got[:3]) == {1, 2, 3}
    assert set(got) == {1, 2, 3}


def test_every_fourth_build_is_free_and_costs_are_the_recorded_ones() -> None:
    explorer = Explorer(0.05)
    free = []
    for number in range(2 * PERIOD):
        step = explorer.step()
        free.append(step is None)
        if step is not None:
            assert step.cache == b"cache"
            assert step.pins[KEY].time_ms == COSTS[step.pins[KEY].tactic]
        explorer.learn(built(1), [op()], Timings(), free=step is None)
        assert free[number] is (number % PERIOD == 0)


def test_what_is_to_be_avoided_is_not_preferred() -> None:
    avoidance = Avoidance([AvoidEntry(kernel="k2")], "10.13", Timings())
    assert set(explored(Explorer(0.05, avoidance), 20)) == {1, 3}


def test_layers_outside_of_myelin_are_explored_by_their_tactic_ids() -> None:
    explorer, timings = Explorer(0.05), Timings()
    timings.times = {"conv": {7: 1.0, 8: 1.01, 9: 1.5}}
    layers = {"conv": Tactic(implementation=None, tactic=7)}
    explorer.learn(Assignment(layers=layers, source=Source.SELECTOR), (), timings, free=True)
    step = explorer.step()
    assert step is not None
    assert step.layers == {"conv": 8}


@pytest.mark.parametrize(
    ("text", "share"),
    [("near-ties", 0.05), ("near-ties=5%", 0.05), ("near-ties=2.5", 0.025), ("near-ties=100%", 1.0)],
)
def test_the_margin_is_in_per_cent(text: str, share: float) -> None:
    assert margin(text) == pytest.approx(share)


@pytest.mark.parametrize(
    "text", ["", "all", "near-ties=", "near-ties=0%", "near-ties=-1%", "near-ties=101%", "near-ties=x"]
)
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--explore"):
        margin(text)
