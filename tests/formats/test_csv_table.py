"""Tables for spreadsheets: one row a layer, nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io

from polygraphy_debug_ext.formats import csv_table
from polygraphy_debug_ext.model import Assignment, Source, Tactic, Witness


def rows(*assignments: Assignment) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_table.write(assignments).decode(), newline="")))


def build(origin: str, **layers: Tactic) -> Assignment:
    return Assignment(layers=layers, source=Source.LOG, origin=origin)


def test_each_layer_of_each_build_is_a_row() -> None:
    one = Tactic(
        implementation=2147483657, tactic=-1, kernel="k, with a comma", time_ms=0.25, cache_key="0x1"
    )
    table = rows(build("g.json", a=one), build("b.json", a=one, b=Tactic(implementation=None, tactic=None)))
    assert [(row["file"], row["build"], row["layer"]) for row in table] == [
        ("g.json", "0", "a"),
        ("b.json", "1", "a"),
        ("b.json", "1", "b"),
    ]
    assert table[0] == {
        "file": "g.json",
        "build": "0",
        "layer": "a",
        "implementation": "2147483657",
        "tactic": "0xffffffffffffffff",
        "kernel": "k, with a comma",
        "time_ms": "0.25",
        "cache_key": "0x1",
        "in_engine": "",
    }
    assert table[2]["tactic"] == table[2]["kernel"] == table[2]["implementation"] == ""


def test_a_pick_that_the_engine_does_not_have_is_marked() -> None:
    picked = Tactic(implementation=1, tactic=1, witnesses=frozenset({Witness.CACHE}))
    there = Tactic(implementation=1, tactic=1, witnesses=frozenset({Witness.ENGINE}))
    assert [row["in_engine"] for row in rows(build("x", a=picked, b=there))] == ["no", "yes"]


def test_a_name_cannot_become_a_formula() -> None:
    evil = Assignment(
        layers={"=HYPERLINK(1)": Tactic(implementation=1, tactic=1, kernel="@k")},
        source=Source.LOG,
        origin="-x",
    )
    (row,) = rows(evil)
    assert (row["file"], row["layer"], row["kernel"]) == ("'-x", "'=HYPERLINK(1)", "'@k")
