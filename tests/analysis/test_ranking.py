"""What is concluded from tables of builds, and what must not change it."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.evidence import EXPECTED, JEFFREYS, TENTATIVE
from polygraphy_debug_ext.analysis.table import Choice, Table, table_of
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.model.answer import Answer, Conclusion, Method, PairKind, Rank, Suspect, View

if TYPE_CHECKING:
    from random import Random

    from tests.conftest import MakeAssignment


def table(rows: list[list[int]], bad: list[bool], kernels: dict[tuple[int, int], str] | None = None) -> Table:
    """A table of builds (rows) with numbered tactics at layers (columns); -1 where a build lacks the layer."""
    picks = np.array(rows)
    numbers = sorted({(layer, int(pick)) for row in rows for layer, pick in enumerate(row) if pick >= 0})
    code = {key: number for number, key in enumerate(numbers)}
    names = kernels or {}
    return Table(
        layers=tuple(f"layer{layer}" for layer in range(picks.shape[1])),
        choices=tuple(
            Choice(
                layer=f"layer{layer}",
                tactic=Tactic(implementation=layer, tactic=pick, kernel=names.get((layer, pick))),
            )
            for layer, pick in numbers
        ),
        layer_of=np.array([layer for layer, _ in numbers], dtype=np.int32),
        codes=np.array(
            [[code.get((layer, pick), -1) for layer, pick in enumerate(row)] for row in rows], dtype=np.int32
        ),
        bad=np.array(bad),
        origins=("",) * len(rows),
    )


def key(suspect: Suspect) -> tuple[object, ...]:
    return suspect.view.value, suspect.layers, suspect.tactic.tactic


def random_rows(seed: int, builds: int, layers: int, tactics: int) -> list[list[int]]:
    rows: list[list[int]] = np.random.default_rng(seed).integers(0, tactics, (builds, layers)).tolist()
    return rows


def test_a_culprit_of_many_builds_is_named() -> None:
    rows = random_rows(1, 40, 10, 3)
    answer = rank(table(rows, [row[4] == 2 for row in rows]))
    assert answer.conclusion is Conclusion.CULPRIT
    (named,) = answer.named
    assert (named.layers, named.tactic.tactic, named.rank) == (("layer4",), 2, Rank.STRONG)
    assert answer.probability == pytest.approx(named.probability)
    assert answer.suspects[0] is named
    assert named.group == 0
    assert {tactic.tactic for tactic in named.alternatives} == {0, 1}
    assert answer.further_builds is None


def test_one_lucky_pass_does_not_acquit_the_culprit() -> None:
    rows = random_rows(2, 40, 10, 3)
    bad = [row[4] == 2 for row in rows]
    bad[bad.index(True)] = False
    answer = rank(table(rows, bad))
    assert answer.conclusion is Conclusion.CULPRIT
    assert answer.named[0].layers == ("layer4",)
    assert answer.named[0].rank is Rank.NOT_SUSPECT


def test_what_always_occurs_together_is_one_class() -> None:
    rows = [[*row, row[4]] for row in random_rows(3, 40, 10, 3)]
    answer = rank(table(rows, [row[4] == 2 for row in rows]))
    assert answer.conclusion is Conclusion.ALIKE
    assert {suspect.layers for suspect in answer.named} == {("layer4",), ("layer10",)}
    assert answer.named[0].probability == answer.named[1].probability <= 0.5
    assert answer.named[0].group == answer.named[1].group
    assert answer.probability == pytest.approx(sum(suspect.probability for suspect in answer.named))


@pytest.mark.parametrize("kind", list(PairKind))
def test_two_tactics_that_explain_failures_together_are_named(kind: PairKind) -> None:
    rows = random_rows(4, 120, 12, 3)
    join = any if kind is PairKind.EITHER else all
    answer = rank(table(rows, [join((row[2] == 1, row[7] == 0)) for row in rows]))
    assert (answer.conclusion, answer.pair_kind) == (Conclusion.PAIR, kind)
    assert {suspect.layers for suspect in answer.named} == {("layer2",), ("layer7",)}
    assert answer.pairs is not None
    assert answer.probability is not None
    assert answer.pairs >= answer.probability >= 0.95


def test_a_kernel_that_fails_wherever_it_is_used_is_named_as_one() -> None:
    rows = random_rows(5, 60, 12, 4)
    kernels = {(layer, layer % 3): "cursed" for layer in range(0, 12, 4)}
    bad = [any(row[layer] == tactic for layer, tactic in kernels) for row in rows]
    for view in View:
        answer = rank(table(rows, bad, kernels), view=view)
        assert answer.conclusion is Conclusion.CULPRIT
        (named,) = answer.named
        assert (named.view, named.tactic.kernel) == (View.KERNEL, "cursed")
        assert named.layers == ("layer0", "layer4", "layer8")


def test_a_kernel_of_one_layer_is_not_counted_twice() -> None:
    rows = random_rows(6, 10, 4, 2)
    bad = [row[0] == 1 for row in rows]
    bare, named = (
        rank(table(rows, bad, kernels)) for kernels in ({}, {(0, 1): "only here", (1, 0): "and only there"})
    )
    assert [key(each) for each in bare.suspects] == [key(each) for each in named.suspects]
    assert [each.probability for each in bare.suspects] == [each.probability for each in named.suspects]


def test_in_the_kernel_view_only_kernels_are_suspects() -> None:
    rows = random_rows(7, 20, 5, 2)
    kernels = {(layer, tactic): f"kernel{tactic}{layer // 3}" for layer in range(5) for tactic in range(2)}
    answer = rank(table(rows, [row[0] == 1 for row in rows], kernels), view=View.KERNEL)
    assert {suspect.view for suspect in answer.suspects} == {View.KERNEL}
    assert len({suspect.tactic.kernel for suspect in answer.suspects}) == len(answer.suspects)


def test_failures_at_random_are_blamed_on_no_tactic() -> None:
    rows = random_rows(8, 150, 10, 3)
    bad = np.random.default_rng(8).random(150) < 0.6
    answer = rank(table(rows, bad.tolist()))
    assert answer.conclusion is Conclusion.NO_TACTIC
    assert not answer.named
    assert answer.probability == answer.no_tactic


def test_too_few_builds_decide_nothing_and_it_is_said_how_many_would() -> None:
    rows = random_rows(9, 8, 30, 3)
    answer = rank(table(rows, [row[4] == 2 for row in rows]))
    assert answer.conclusion is Conclusion.UNDECIDED
    assert not answer.named
    assert answer.further_builds is not None
    assert 2 <= answer.further_builds <= 60
    assert 1 <= len(answer.telling) <= 3
    assert set(map(key, answer.telling)) <= set(map(key, answer.suspects))


def test_a_tactic_that_every_build_has_is_not_suspect(assignment: MakeAssignment) -> None:
    answer = rank(table_of([assignment(a=1, b=1)], [assignment(a=2, b=1)]))
    assert {suspect.layers for suspect in answer.suspects} == {("a",)}
    assert (answer.layers, answer.varying_layers) == (2, 1)


def test_without_a_good_build_nothing_is_named(assignment: MakeAssignment) -> None:
    answer = rank(table_of([], [assignment(a=1), assignment(a=2), assignment(a=2)]))
    assert answer.conclusion is Conclusion.NO_GOOD_BUILD
    assert not answer.suspects
    assert not answer.named
    assert answer.distinct_bad == 2


def test_without_a_bad_build_the_failure_rate_is_bounded(assignment: MakeAssignment) -> None:
    answer = rank(table_of([assignment(a=1)] * 30, []))
    assert answer.conclusion is Conclusion.NO_BAD_BUILD
    assert answer.failure_rate_bound is not None
    assert 0.09 < answer.failure_rate_bound < 0.1


def test_builds_of_other_networks_are_not_compared(assignment: MakeAssignment) -> None:
    assert rank(table_of([assignment(a=1)], [assignment(b=1)])).conclusion is Conclusion.NOTHING_IN_COMMON
    assert rank(table_of([], [])).conclusion is Conclusion.NO_BUILDS


def test_builds_that_are_all_alike_leave_no_suspect(assignment: MakeAssignment) -> None:
    answer = rank(table_of([assignment(a=1)], [assignment(a=1)]))
    assert answer.conclusion is Conclusion.NO_TACTIC
    assert not answer.suspects
    assert answer.no_tactic == 1.0


def test_unresolved_builds_are_counted_and_are_no_evidence() -> None:
    rows = random_rows(10, 12, 6, 2)
    data = table(rows, [row[0] == 1 for row in rows])
    assert rank(data, unresolved=7).unresolved_builds == 7
    assert rank(data, unresolved=7).suspects == rank(data).suspects


def test_a_layer_that_some_builds_lack_is_no_use_of_it() -> None:
    rows = [[1, 0], [1, 1], [-1, 0], [-1, 1]] * 5
    answer = rank(table(rows, [row[0] == 1 for row in rows]))
    assert answer.named[0].layers == ("layer0",)
    assert answer.named[0].counts.good_without == 10


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0])
def test_a_confidence_without_meaning_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        rank(table([[0], [1]], [False, True]), confidence=confidence)


def test_methods_order_by_their_own_score() -> None:
    rows = random_rows(11, 20, 6, 3)
    bad = (np.random.default_rng(1).random(20) < 0.4).tolist()
    data = table(rows, bad)
    by_ochiai, by_dstar, by_rule = (
        rank(data, method=method).suspects for method in (Method.OCHIAI, Method.DSTAR, Method.DIFFERENCE)
    )
    assert [each.ochiai for each in by_ochiai] == sorted((each.ochiai for each in by_ochiai), reverse=True)
    assert [each.dstar for each in by_dstar] == sorted((each.dstar for each in by_dstar), reverse=True)
    suspect = [each.rank is not Rank.NOT_SUSPECT for each in by_rule]
    assert suspect == sorted(suspect, reverse=True)
    assert set(map(key, by_ochiai)) == set(map(key, by_dstar)) == set(map(key, by_rule))


tables = st.integers(1, 5).flatmap(
    lambda layers: st.lists(
        st.tuples(st.lists(st.integers(-1, 2), min_size=layers, max_size=layers), st.booleans()),
        min_size=2,
        max_size=14,
    )
)
exactly = settings(derandomize=True, deadline=None, max_examples=60)


def probabilities(answer: Answer) -> dict[tuple[object, ...], float]:
    return {key(suspect): suspect.probability for suspect in answer.suspects}


def same(first: dict[tuple[object, ...], float], second: dict[tuple[object, ...], float]) -> bool:
    return first.keys() == second.keys() and all(
        value == pytest.approx(second[name], abs=1e-9) for name, value in first.items()
    )


@exactly
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_builds_changes_nothing(builds: list[tuple[list[int], bool]], random: Random) -> None:
    shuffled = list(builds)
    random.shuffle(shuffled)
    first, second = (
        rank(table([row for row, _ in each], [bad for _, bad in each])) for each in (builds, shuffled)
    )
    assert first.conclusion is second.conclusion
    assert same(probabilities(first), probabilities(second))


@exactly
@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_layers_changes_nothing(builds: list[tuple[list[int], bool]], random: Random) -> None:
    order = list(range(len(builds[0][0])))
    random.shuffle(order)
    bad = [each for _, each in builds]
    first = rank(table([row for row, _ in builds], bad))
    second = rank(table([[row[layer] for layer in order] for row, _ in builds], bad))
    back = {f"layer{place}": f"layer{layer}" for place, layer in enumerate(order)}
    renamed: dict[tuple[object, ...], float] = {
        (view, tuple(back[name] for name in layers), tactic): value  # type: ignore[attr-defined]
        for (view, layers, tactic), value in probabilities(second).items()
    }
    assert first.conclusion is second.conclusion
    assert same(probabilities(first), renamed)


@exactly
@given(tables)
def test_a_layer_that_never_varies_changes_nothing(builds: list[tuple[list[int], bool]]) -> None:
    bad = [each for _, each in builds]
    first = rank(table([row for row, _ in builds], bad))
    second = rank(table([[*row, 9] for row, _ in builds], bad))
    assert second.conclusion in {first.conclusion, Conclusion.UNDECIDED, Conclusion.NO_TACTIC}
    if first.conclusion is not Conclusion.NOTHING_IN_COMMON:
        assert first.conclusion is second.conclusion
        assert [key(each) for each in first.suspects] == [key(each) for each in second.suspects]
        assert same(probabilities(first), probabilities(second))


@exactly
@given(tables, st.sampled_from([EXPECTED, TENTATIVE, JEFFREYS]), st.sampled_from(View))
def test_probabilities_come_to_one_and_counts_to_all_builds(
    builds: list[tuple[list[int], bool]], rates: object, view: View
) -> None:
    answer = rank(table([row for row, _ in builds], [bad for _, bad in builds]), rates=rates, view=view)  # type: ignore[arg-type]
    if answer.no_tactic is None or answer.pairs is None:
        assert not answer.suspects
        return
    total = sum(suspect.probability for suspect in answer.suspects) + answer.no_tactic - answer.pairs
    assert total == pytest.approx(1)
    for suspect in answer.suspects:
        counts = suspect.counts
        assert counts.bad_with + counts.bad_without == answer.bad_builds
        assert counts.good_with + counts.good_without == answer.good_builds
        assert 0 < counts.bad_with + counts.good_with < len(builds)
        assert 0 <= suspect.probability <= 1


@exactly
@given(tables)
def test_what_the_same_builds_have_is_equally_likely(builds: list[tuple[list[int], bool]]) -> None:
    rows = [row for row, _ in builds]
    answer = rank(table(rows, [bad for _, bad in builds]))
    presence = {
        key(each): tuple(row[int(each.layers[0].removeprefix("layer"))] == each.tactic.tactic for row in rows)
        for each in answer.suspects
        if each.view is View.LAYER
    }
    for first, second in itertools.combinations(
        (each for each in answer.suspects if each.view is View.LAYER), 2
    ):
        assert (presence[key(first)] == presence[key(second)]) == (first.group == second.group)
        if first.group == second.group:
            assert first.probability == second.probability


def test_records_are_compared_as_the_table_says() -> None:
    def build(tactic: int) -> Assignment:
        return Assignment(layers={"a": Tactic(implementation=-1, tactic=tactic)}, source=Source.REPLAY)

    answer = rank(table_of([build(-1)], [build(2**64 - 1)]))
    assert not answer.suspects


def test_what_polygraphy_would_list_is_the_set_difference() -> None:
    rows = random_rows(13, 9, 5, 6)
    bad = [number % 3 == 0 for number in range(9)]
    listed = {key(each) for each in rank(table(rows, bad)).suspects if each.rank is not Rank.NOT_SUSPECT}
    had = {
        side: {
            (View.LAYER.value, (f"layer{layer}",), tactic)
            for row, verdict in zip(rows, bad, strict=True)
            if verdict is side
            for layer, tactic in enumerate(row)
        }
        for side in (True, False)
    }
    assert listed
    assert listed == had[True] - had[False]


def test_analysis_needs_nothing_but_numpy() -> None:
    program = (
        "import sys, polygraphy_debug_ext.analysis\n"
        "third_party = {'polygraphy', 'tensorrt', 'onnx', 'onnxruntime', 'msgspec', 'colored', 'psutil', 'rich'}\n"
        "print(sorted(third_party & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
