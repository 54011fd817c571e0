"""A directory with any number of files that are something else: what is kept does not grow with them, what is said neither."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.reports.skipped import skipped

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeAssignment

FEW, MANY = 2000, 6000
NOT_RECOGNISED = "neither a tactic replay, layer information nor a build log"
NO_REPLAY = "not a tactic replay (JSON without a 'replay' object)"


def write_junk(directory: Path, number: int) -> Path:
    directory.mkdir()
    for index in range(number // 2):
        (directory / f"note_{index:05}.txt").write_text("hello\n")
        (directory / f"other_{index:05}.json").write_text('{"a": 1}')
    return directory


def kept(directory: Path) -> int:
    """The most bytes that were in use at a time while the directory was read, the better of two times.

    The first time Python's own table of strings, in which pathlib enters names, may have to grow, by megabytes at once.
    """
    return min(most_in_use(directory) for _ in range(2))


def most_in_use(directory: Path) -> int:
    tracemalloc.start()
    try:
        assert not list(Reader().records(directory))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_of_many_files_left_out_some_are_named_and_all_are_counted(
    tmp_path: Path, assignment: MakeAssignment
) -> None:
    directory = write_junk(tmp_path / "good", MANY)
    replay.write(directory / "p.json", assignment(conv=1))
    reader = Reader()
    assert [each.layers["conv"].tactic for each in reader.records(directory)] == [1]
    assert len(reader.skipped) == 1000
    assert reader.unnamed == {NOT_RECOGNISED: MANY // 2 - 1000, NO_REPLAY: MANY // 2}


def test_each_place_has_its_files_named(tmp_path: Path) -> None:
    reader = Reader()
    for place in (write_junk(tmp_path / "good", FEW), write_junk(tmp_path / "bad", FEW)):
        assert not list(reader.records(place))
    assert [each.path.parent.name for each in reader.skipped] == ["good"] * 1000 + ["bad"] * 1000


def test_nothing_but_the_name_of_a_file_is_kept(tmp_path: Path) -> None:
    few, many = (write_junk(tmp_path / str(number), number) for number in (FEW, MANY))
    kept(few)
    growth = (kept(many) - kept(few)) / (MANY - FEW)
    # A name takes 65 bytes, its places in lists 8 each; a path would be 300.
    assert growth < 130


def test_any_number_of_reasons_are_a_hundred(tmp_path: Path) -> None:
    for index in range(1300):
        (tmp_path / f"{index:05}.json").write_text(f'{{"replay": {"x" * index}')
    reader = Reader()
    with pytest.raises(FormatError) as caught:
        list(reader.records(tmp_path))
    assert caught.value.reason.startswith("1300 files cannot be used\n    00000.json: ")
    assert caught.value.reason.endswith("\n    and 1290 more")
    for index in range(1300):
        reader._leave_out(tmp_path, f"reason {index}")
    assert (len(reader.skipped), reader.unnamed["other reasons"]) == (1000, 200)


def test_what_is_said_of_a_million_files_fits_a_screen() -> None:
    files = [(f"{index}.txt", "a reason") for index in range(1000)]
    [line] = skipped("good", files, {f"reason {index}": index for index in range(1, 1001)})
    lines = line.text.splitlines()
    assert lines[0] == "good: left out 501500 files:"
    assert [each.strip() for each in lines[11:]] == [
        "and 1000 more: reason 1000",
        "and 999 more: reason 999",
        "and 998 more: reason 998",
        "and 997 more: reason 997",
        "and 996 more: reason 996",
        "and 496500 more, for other reasons",
    ]
