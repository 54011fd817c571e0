"""The stock rule, with the counts behind each suspect."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from polygraphy_debug_ext.analysis import difference
from polygraphy_debug_ext.model import (
    Assignment,
    Field,
    Outcome,
    Source,
    Strength,
    Tactic,
    TensorInfo,
    Witness,
)

if TYPE_CHECKING:
    from tests.conftest import MakeAssignment


def test_a_tactic_of_bad_builds_only_is_suspect(assignment: MakeAssignment) -> None:
    finding = difference([assignment(a=1, b=1), assignment(a=2, b=1)], [assignment(a=3, b=1)])
    assert finding.outcome is Outcome.SUSPECTS
    (suspect,) = finding.suspects
    assert (suspect.layer, suspect.tactic.tactic) == ("a", 3)
    assert (suspect.bad_builds, suspect.good_builds, suspect.strength) == (1, 0, Strength.STRONG)
    assert [tactic.tactic for tactic in suspect.good_tactics] == [1, 2]


def test_the_same_tactic_at_another_layer_does_not_clear_it(assignment: MakeAssignment) -> None:
    finding = difference([assignment(a=1, b=9)], [assignment(a=9, b=9)])
    assert [(suspect.layer, suspect.tactic.tactic) for suspect in finding.suspects] == [("a", 9)]


def test_suspects_of_every_bad_build_come_first(assignment: MakeAssignment) -> None:
    finding = difference([assignment(a=1, b=1)], [assignment(a=5, b=7), assignment(a=6, b=7)])
    assert [(suspect.layer, suspect.bad_builds, suspect.strength) for suspect in finding.suspects] == [
        ("b", 2, Strength.STRONG),
        ("a", 1, Strength.WEAK),
        ("a", 1, Strength.WEAK),
    ]


def test_without_bad_builds_the_failure_rate_is_bounded(assignment: MakeAssignment) -> None:
    finding = difference([assignment(a=1)] * 30, [])
    assert finding.outcome is Outcome.NO_BAD_BUILD
    assert finding.failure_rate_bound is not None
    assert 0.09 < finding.failure_rate_bound < 0.1
    assert not finding.suspects


def test_without_good_builds_nothing_is_suspect(assignment: MakeAssignment) -> None:
    finding = difference([], [assignment(a=1), assignment(a=2), assignment(a=2)])
    assert finding.outcome is Outcome.NO_GOOD_BUILD
    assert finding.distinct_bad == 2
    assert not finding.suspects


def test_no_build_at_all_is_an_outcome_of_its_own() -> None:
    assert difference([], []).outcome is Outcome.NO_BUILDS


def test_networks_without_a_common_layer_are_not_compared(assignment: MakeAssignment) -> None:
    finding = difference([assignment(a=1)], [assignment(b=1)])
    assert finding.outcome is Outcome.NOTHING_IN_COMMON
    assert not finding.suspects


def test_equal_builds_on_both_sides_leave_no_suspect(assignment: MakeAssignment) -> None:
    assert difference([assignment(a=1)], [assignment(a=1)]).outcome is Outcome.NO_DIFFERENCE


def test_signed_and_unsigned_ids_are_the_same_tactic() -> None:
    def build(implementation: int, tactic: int) -> Assignment:
        return Assignment(
            layers={"a": Tactic(implementation=implementation, tactic=tactic)},
            source=Source.REPLAY,
            variant="0.49",
        )

    signed, unsigned = build(-2147483639, -1574910594185376087), build(2147483657, 0xEA24CB28A894CEA9)
    assert difference([signed], [unsigned]).outcome is Outcome.NO_DIFFERENCE


def test_only_what_all_records_know_is_compared() -> None:
    def build(info: TensorInfo, fields: frozenset[Field]) -> Assignment:
        layers = {"a": Tactic(implementation=1, tactic=2, inputs=(info,))}
        return Assignment(layers=layers, source=Source.REPLAY, fields=fields)

    old = build(TensorInfo(dtype="HALF"), frozenset({Field.DTYPE}))
    new = build(TensorInfo(dtype="HALF", strides=(8, 1)), frozenset({Field.DTYPE, Field.STRIDES}))
    other = build(TensorInfo(dtype="HALF", strides=(1, 8)), frozenset({Field.DTYPE, Field.STRIDES}))
    assert difference([old], [new]).outcome is Outcome.NO_DIFFERENCE
    assert difference([old], [new]).not_compared == {Field.STRIDES}
    assert difference([new], [other]).outcome is Outcome.SUSPECTS
    assert not difference([new], [other]).not_compared


def test_a_pick_that_a_fusion_swallowed_is_no_suspect() -> None:
    def build(tactic: int, *witnesses: Witness) -> Assignment:
        layers = {"qk": Tactic(implementation=1, tactic=tactic, witnesses=frozenset(witnesses))}
        return Assignment(
            layers={**layers, "a": Tactic(implementation=1, tactic=0)}, source=Source.TIMING_CACHE
        )

    swallowed = (Witness.CACHE, Witness.LOG)
    assert difference([build(1, *swallowed)], [build(2, *swallowed)]).outcome is Outcome.NO_DIFFERENCE
    assert difference([build(1, *Witness)], [build(2, *Witness)]).outcome is Outcome.SUSPECTS


def test_a_record_that_knows_the_kernel_names_it_for_all(assignment: MakeAssignment) -> None:
    nameless = assignment(a=2)
    named = dataclasses.replace(
        nameless, layers={"a": dataclasses.replace(nameless.layers["a"], kernel="sm80_x")}
    )
    (suspect,) = difference([assignment(a=1)], [nameless, named]).suspects
    assert suspect.tactic.kernel == "sm80_x"
    assert suspect.bad_builds == 2


builds = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1).map(
        lambda layers: Assignment(
            layers={name: Tactic(implementation=1, tactic=number) for name, number in layers.items()},
            source=Source.SELECTOR,
        )
    ),
    max_size=6,
)


@given(builds, builds)
def test_it_is_the_set_difference_with_true_counts(good: list[Assignment], bad: list[Assignment]) -> None:
    finding = difference(good, bad)
    good_choices = {item for build in good for item in build.layers.items()}
    expected = {item for build in bad for item in build.layers.items()} - good_choices
    if finding.outcome is Outcome.SUSPECTS:
        assert {(suspect.layer, suspect.tactic) for suspect in finding.suspects} == expected
        for suspect in finding.suspects:
            assert suspect.bad_builds == sum(
                build.layers.get(suspect.layer) == suspect.tactic for build in bad
            )
    elif finding.outcome is Outcome.NO_DIFFERENCE:
        assert not expected


@given(builds, builds, st.randoms(use_true_random=False))
def test_the_order_of_builds_does_not_matter(
    good: list[Assignment],
    bad: list[Assignment],
    random: object,
) -> None:
    shuffled = sorted(good, key=lambda _: random.random()), sorted(bad, key=lambda _: random.random())  # type: ignore[attr-defined]
    first, second = difference(good, bad), difference(*shuffled)
    assert first.outcome is second.outcome
    key = [(suspect.layer, suspect.tactic.tactic, suspect.bad_builds) for suspect in first.suspects]
    assert sorted(key) == sorted(
        (each.layer, each.tactic.tactic, each.bad_builds) for each in second.suspects
    )


def test_analysis_needs_nothing_but_numpy() -> None:
    program = (
        "import sys, polygraphy_debug_ext.analysis\n"
        "third_party = {'polygraphy', 'tensorrt', 'onnx', 'onnxruntime', 'msgspec', 'colored', 'psutil', 'rich'}\n"
        "print(sorted(third_party & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
