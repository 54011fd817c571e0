"""The table of builds: codes and choices agree with the assignments, and only what all records tell is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygraphy_debug_ext.analysis.table import ABSENT, TableBuilder, table_of
from polygraphy_debug_ext.model import Assignment, Field, Source, Tactic, TensorInfo, Verdict, Witness

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.table import Table

KEY = "0x" + "1" * 32


def build(source: Source = Source.SELECTOR, /, **layers: Tactic) -> Assignment:
    return of(source, layers)


def of(source: Source, layers: dict[str, Tactic]) -> Assignment:
    fields = frozenset(Field) if source is Source.SELECTOR else frozenset[Field]()
    return Assignment(layers=layers, source=source, fields=fields, variant=source.value)


def recorded(number: int | None, implementation: int | None = 7, **more: str) -> Tactic:
    return Tactic(implementation=implementation, tactic=number, **more)  # type: ignore[arg-type]  # of strings


def logged(number: int | None, kernel: str | None = None) -> Tactic:
    return Tactic(implementation=None, tactic=number, kernel=kernel)


def codes(*assignments: Assignment) -> tuple[Table, list[list[int]]]:
    table = table_of(assignments, ())
    return table, table.codes.tolist()


assignments = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 6), max_size=6).map(
        lambda layers: of(Source.SELECTOR, {name: recorded(number) for name, number in layers.items()})
    ),
    max_size=8,
)


@settings(max_examples=80, derandomize=True, deadline=None, database=None)
@given(good=assignments, bad=assignments)
def test_codes_and_choices_say_what_the_assignments_say(
    good: list[Assignment], bad: list[Assignment]
) -> None:
    table = table_of(good, bad)
    assert table.bad.tolist() == [False] * len(good) + [True] * len(bad)
    for row, each in zip(table.codes, [*good, *bad], strict=True):
        said = {table.choices[code].layer: table.choices[code].tactic for code in row if code != ABSENT}
        assert said == each.layers
    assert [table.layers[layer] for layer in table.layer_of] == [choice.layer for choice in table.choices]
    assert len({(choice.layer, choice.tactic) for choice in table.choices}) == len(table.choices)
    assert np.array_equal(table.presence().sum(axis=1), table.counts(np.ones(len(table.bad), dtype=np.bool_)))


def test_signed_and_unsigned_ids_are_one() -> None:
    _, found = codes(
        build(a=recorded(-5, implementation=-2147483639)),
        build(a=recorded(2**64 - 5, implementation=2147483657)),
    )
    assert found == [[0], [0]]


def test_small_ids_of_several_implementations_differ() -> None:
    _, found = codes(build(a=recorded(0, 1)), build(a=recorded(0, 2)))
    assert found == [[0], [1]]


def test_a_record_without_implementation_is_compared_by_its_id() -> None:
    table, found = codes(
        build(a=recorded(5)), build(Source.LOG, a=logged(5, "k")), build(Source.LOG, a=logged(6))
    )
    assert found == [[0], [0], [1]]
    assert table.choices[0].tactic.kernel == "k"


def test_ids_that_could_mean_several_kernels_are_not_compared() -> None:
    table, _ = codes(build(a=recorded(0, 1)), build(a=recorded(0, 2)), build(Source.LOG, a=logged(0)))
    assert table.layers == ()
    assert table.incomparable == ("a",)
    _, found = codes(build(Source.LOG, a=logged(0, "k")), build(Source.LOG, a=logged(0, "l")))
    assert found == [[0], [1]]


def test_two_spaces_of_numbers_are_joined_by_the_kernel_only() -> None:
    pick = recorded(5, kernel="k", cache_key=KEY)
    _, found = codes(
        build(Source.TIMING_CACHE, a=pick),
        build(Source.LAYER_INFORMATION, a=logged(9, "k")),
        build(Source.LAYER_INFORMATION, a=logged(5, "l")),
    )
    assert found == [[0], [0], [1]]
    table, _ = codes(build(Source.TIMING_CACHE, a=pick), build(Source.LAYER_INFORMATION, a=logged(5)))
    assert table.incomparable == ("a",)


@pytest.mark.parametrize("number", [0xD15EA5EDD15EA5ED, -3360065831133338131, 2**64 - 1, -1])
def test_what_stands_for_no_tactic_is_none(number: int) -> None:
    table, found = codes(
        build(Source.LOG, a=logged(number), b=logged(1)), build(Source.LOG, a=logged(4), b=logged(1))
    )
    assert table.incomparable == ("a",)
    assert found == [[0], [0]]


def test_layers_that_one_kind_of_source_never_tells_of_are_left_out() -> None:
    table, found = codes(
        build(a=recorded(1), reformat=recorded(2)), build(a=recorded(1)), build(Source.LOG, a=logged(1))
    )
    assert table.layers == ("a",)
    assert table.incomparable == ("reformat",)
    assert found == [[0], [0], [0]]
    table, found = codes(build(a=recorded(1), reformat=recorded(2)), build(a=recorded(1)))
    assert table.layers == ("a", "reformat")
    assert found == [[0, 1], [0, ABSENT]]


def test_an_op_of_a_log_is_the_engine_layer_that_it_is_in() -> None:
    engine = {"flatten + fc": logged(None, "k"), "other": logged(None, "o")}
    table, found = codes(
        of(Source.LAYER_INFORMATION, engine),
        build(Source.LOG, fc=logged(None, "k"), other=logged(None, "o")),
        build(Source.LOG, fc=logged(None, "l"), other=logged(None, "o")),
    )
    assert table.layers == ("flatten + fc", "other")
    assert table.incomparable == ()
    assert [row[0] for row in found] == [0, 0, 1]


def test_an_op_that_could_be_in_several_engine_layers_is_left_out() -> None:
    table, _ = codes(
        of(Source.LAYER_INFORMATION, {"a + fc": logged(None, "k"), "fc + b": logged(None, "k")}),
        build(Source.LOG, fc=logged(None, "k")),
    )
    assert table.layers == ()
    assert set(table.incomparable) == {"a + fc", "fc + b", "fc"}


def test_tensors_are_compared_on_what_all_records_tell() -> None:
    tensors = [TensorInfo(dtype="HALF", strides=strides, vectorized_dim=-1) for strides in ((2, 1), (1, 2))]
    layers = [Tactic(implementation=7, tactic=1, inputs=(info,)) for info in tensors]
    table, found = codes(*(build(a=each) for each in layers))
    assert found == [[0], [1]]
    assert not table.not_compared
    narrow = Assignment(layers={"a": layers[0]}, source=Source.REPLAY, fields=frozenset({Field.DTYPE}))
    table, found = codes(*(build(a=each) for each in layers), narrow)
    assert found == [[0], [0], [0]]
    assert table.not_compared == frozenset(Field) - {Field.DTYPE}


def test_tensors_tell_equal_ids_apart_beside_others() -> None:
    infos = [TensorInfo(dtype=dtype) for dtype in ("HALF", "FLOAT", "HALF")]
    equal = [Tactic(implementation=7, tactic=1, inputs=(info,)) for info in infos]
    swapped = Tactic(implementation=7, tactic=1, outputs=(infos[0],))
    _, found = codes(*(build(a=each) for each in (*equal, swapped, recorded(2), recorded(2 - 2**64))))
    assert found == [[0], [1], [0], [2], [3], [3]]


def test_what_the_engine_does_not_have_is_no_choice() -> None:
    void = Tactic(implementation=7, tactic=1, witnesses=frozenset({Witness.CACHE}))
    table, found = codes(build(a=void, b=recorded(1)), build(a=recorded(1), b=recorded(1)))
    assert set(table.layers) == {"a", "b"}
    assert sorted(found[0]) == [ABSENT, table.codes[0].max()]


def test_builds_of_equal_tactics_that_are_other_objects_are_equal() -> None:
    builder = TableBuilder()
    for _ in range(3):
        builder.add(build(a=recorded(1)), Verdict.BAD)
    assert builder.table().codes.tolist() == [[0], [0], [0]]
    assert builder.table().bad.all()
