"""The data of the map: small, and exactly what the table has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.model.answer import View
from polygraphy_debug_ext.reports.html_map import ABSENT, DIGITS, map_data

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.analysis.table import Table


def build(**layers: int) -> Assignment:
    return Assignment(
        layers={
            name: Tactic(implementation=1, tactic=each, kernel=f"k{each}") for name, each in layers.items()
        },
        source=Source.SELECTOR,
    )


def decoded(layer: dict[str, Any], column: int) -> int:
    """The choice of a build, as the script of the page reads it."""
    width = layer["w"]
    text = layer["c"][column * width : (column + 1) * width]
    if not layer["c"]:
        return 0
    if ABSENT in text:
        return -1
    number = 0
    for digit in text:
        number = number * len(DIGITS) + DIGITS.index(digit)
    return number


def data_of(table: Table, order: list[int], view: View = View.LAYER) -> dict[str, Any]:
    return map_data(table, rank(table, view=view), order)


def assert_faithful(table: Table, data: dict[str, Any], order: list[int]) -> None:
    """Each cell leads back to the kernel that the table has there."""
    for number, layer in enumerate(data["layers"]):
        for column, row in enumerate(order):
            code = int(table.codes[row, number])
            choice = decoded(layer, column)
            expected = None if code < 0 else table.choices[code].tactic.kernel
            assert (None if choice < 0 else data["texts"][layer["t"][choice][0]]) == expected


def test_cells_lead_back_to_what_each_build_has() -> None:
    good = [build(a=1, b=1, c=3), build(a=2, b=1, c=3), build(a=2, b=1)]
    bad = [build(a=7, b=1, c=3), build(a=1, b=1, c=4)]
    table = table_of(good, bad)
    order = [3, 4, 0, 1, 2]
    data = data_of(table, order)
    assert_faithful(table, data, order)
    assert [layer["c"] for layer in data["layers"]] == ["21100", "", "0100."]


def test_a_layer_with_more_choices_than_digits_has_wider_cells() -> None:
    builds = [build(a=each) for each in range(200)]
    table = table_of(builds[:150], builds[150:])
    order = list(range(200))
    data = data_of(table, order)
    assert data["layers"][0]["w"] == 2
    assert_faithful(table, data, order)


def test_random_tables_are_kept_faithfully() -> None:
    generator = np.random.default_rng(3)
    for _ in range(20):
        builds = [
            build(
                **{f"l{layer}": int(generator.integers(4)) for layer in range(6) if generator.random() < 0.8},
                always=1,
            )
            for _ in range(9)
        ]
        table = table_of(builds[:5], builds[5:])
        order = generator.permutation(9).tolist()
        assert_faithful(table, data_of(table, order), order)


def test_the_first_choice_is_what_most_good_builds_have() -> None:
    data = data_of(table_of([build(a=5), build(a=6), build(a=6)], [build(a=5), build(a=5)]), [0, 1, 2, 3, 4])
    kernels = [data["texts"][choice[0]] for choice in data["layers"][0]["t"]]
    assert kernels == ["k6", "k5"]
    assert [choice[3:5] for choice in data["layers"][0]["t"]] == [[2, 0], [1, 2]]


def test_what_the_verdict_names_is_marked_and_its_layer_comes_first() -> None:
    table = table_of(
        [build(a=each % 3, b=1) for each in range(12)], [build(a=each % 3, b=2) for each in range(12)]
    )
    data = data_of(table, list(range(24)))
    a, b = data["layers"]
    assert 2 in [choice[5] for choice in b["t"]]
    assert all(choice[5] == 0 for choice in a["t"])
    assert b["r"] == 0
    assert a["r"] > 0


def test_a_kernel_that_is_named_is_marked_at_all_its_layers() -> None:
    good = [build(a=1, b=1), build(a=2, b=3), build(a=4, b=2)] * 6
    bad = [build(a=9, b=1), build(a=1, b=9), build(a=2, b=9), build(a=9, b=3)] * 5
    table = table_of(good, bad)
    answer = rank(table, view=View.KERNEL)
    assert [suspect.tactic.kernel for suspect in answer.named] == ["k9"]
    data = map_data(table, answer, list(range(38)))
    marked = [
        (layer["n"], data["texts"][choice[0]])
        for layer in data["layers"]
        for choice in layer["t"]
        if choice[5] == 2
    ]
    assert marked == [("a", "k9"), ("b", "k9")]


def test_names_are_made_printable(tactic: Callable[[int], Tactic]) -> None:
    made = Assignment(layers={"conv\x1b[31m": tactic(1)}, source=Source.SELECTOR)
    data = data_of(table_of([made], [made]), [0, 1])
    assert data["layers"][0]["n"] == r"conv\x1b[31m"
