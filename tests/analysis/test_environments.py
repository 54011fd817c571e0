"""Builds are put together if what they say of where they were made fits, and kept apart if it does not."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygraphy_debug_ext.analysis.environments import Environments
from polygraphy_debug_ext.model import Assignment, Source, Verdict

if TYPE_CHECKING:
    from random import Random

    from polygraphy_debug_ext.analysis.environments import Comparable
    from tests.conftest import MakeAssignment

A = {
    "tensorrt": "10.13.3.9",
    "gpu": "A100",
    "compute_capability": "8.0",
    "flags": "FP16",
    "model": "sha256:1",
}
B = {**A, "gpu": "H100", "compute_capability": "9.0"}


def groups(assignment: MakeAssignment, *metadata: dict[str, str]) -> tuple[Comparable, ...]:
    """The groups of good builds, each of which has tactic 0, 1, ... at layer `a`."""
    environments = Environments()
    for number, each in enumerate(metadata):
        build = dataclasses.replace(assignment(a=number, b=1), metadata=each, origin=str(number))
        environments.add(build, Verdict.GOOD)
    return environments.groups()


def members(found: tuple[Comparable, ...]) -> list[list[str]]:
    return [sorted(group.table.origins) for group in found]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ([A, A, A], [["0", "1", "2"]]),
        ([A, B, A], [["0", "2"], ["1"]]),
        ([{}, {}], [["0", "1"]]),
        ([{}, A, A], [["0", "1", "2"]]),
        ([A, {"tensorrt": "10.13.3.9"}], [["0", "1"]]),
        ([A, {"tensorrt": "10.13.3"}], [["0", "1"]]),
        ([A, {"tensorrt": "10.13.30"}], [["0"], ["1"]]),
        ([A, {"tensorrt": "8.6.1"}], [["0"], ["1"]]),
        ([A, B, {}], [["0"], ["1"], ["2"]]),
        ([{}, A, B, {}], [["0", "3"], ["1"], ["2"]]),
        ([A, B, {"compute_capability": "9.0"}], [["0"], ["1", "2"]]),
        ([{"tensorrt": "10.13"}, {"gpu": "A100"}], [["0"], ["1"]]),
        ([A, {"tensorrt": "10.13"}, {"gpu": "A100"}], [["0", "1", "2"]]),
        ([A, {"gpu": "A100", "flags": "BF16"}], [["0"], ["1"]]),
        ([{"tensorrt": "1.2"}, {"tensorrt_rtx": "1.2"}], [["0"], ["1"]]),
        ([{"flags": "FP16"}, {"flags": "FP16,TF32"}], [["0"], ["1"]]),
        ([{"host": "a"}, {"host": "b"}], [["0", "1"]]),
    ],
)
def test_builds_that_fit_share_a_table(
    assignment: MakeAssignment, metadata: list[dict[str, str]], expected: list[list[str]]
) -> None:
    assert members(groups(assignment, *metadata)) == expected


@given(
    metadata=st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "tensorrt": st.sampled_from(["10.13", "10.13.3", "10.13.3.9", "8.6.1"]),
                "gpu": st.sampled_from(["A100", "H100"]),
                "flags": st.sampled_from(["FP16", "TF32"]),
            },
        ),
        min_size=1,
        max_size=8,
    ),
    seed=st.randoms(use_true_random=False),
)
@settings(derandomize=True, deadline=None)
def test_the_order_of_builds_decides_nothing(metadata: list[dict[str, str]], seed: Random) -> None:
    def grouped(order: list[int]) -> set[frozenset[str]]:
        environments = Environments()
        for number in order:
            build = Assignment(layers={}, source=Source.LOG, metadata=metadata[number], origin=str(number))
            environments.add(build, Verdict.GOOD)
        return {frozenset(group.table.origins) for group in environments.groups()}

    order = list(range(len(metadata)))
    expected = grouped(order)
    assert {number for group in expected for number in group} == set(map(str, order))
    seed.shuffle(order)
    assert grouped(order) == expected


def test_a_build_keeps_its_tactics_wherever_it_waits(assignment: MakeAssignment) -> None:
    for group in groups(assignment, A, B, B, A):
        for row, origin in enumerate(group.table.origins):
            layer = group.table.layers.index("a")
            assert group.table.choices[group.table.codes[row, layer]].tactic.tactic == int(origin)


def test_what_sets_groups_apart_is_named_and_nothing_else(assignment: MakeAssignment) -> None:
    first, second = groups(assignment, {**A, "host": "x"}, B, {**A, "host": "y", "driver": "12.4"})
    assert first.apart == (("gpu", "A100"), ("compute_capability", "8.0"))
    assert second.apart == (("gpu", "H100"), ("compute_capability", "9.0"))
    assert first.mixed == (("host", ("x", "y")),)
    assert dict(first.environment.values) == {**A, "driver": "12.4"}


def test_one_environment_is_set_apart_from_nothing(assignment: MakeAssignment) -> None:
    (group,) = groups(assignment, A, {})
    assert group.apart == ()
