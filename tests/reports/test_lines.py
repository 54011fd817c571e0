"""Small words: plurals, lists, and names that cannot steer the terminal."""

from __future__ import annotations

from polygraphy_debug_ext.reports.lines import count, listed, one_line, printable


def test_control_characters_are_written_out() -> None:
    assert printable("conv\x1b[2J\r\n\x07") == r"conv\x1b[2J\r\n\x07"
    assert printable("conv1 + relu1, é, 中") == "conv1 + relu1, é, 中"


def test_a_text_of_several_lines_becomes_one() -> None:
    assert (
        one_line("Not honoured:\n    Layer: a\n    Layer: b\x1b") == r"Not honoured: Layer: a; Layer: b\x1b"
    )
    assert one_line("x" * 301) == "x" * 300 + "..."


def test_counts_have_a_plural() -> None:
    assert [count(number, "build") for number in (0, 1, 2)] == ["0 builds", "1 build", "2 builds"]


def test_long_lists_are_cut_and_counted() -> None:
    assert listed(("a", "b")) == "a, b"
    assert listed(("a", "b", "c", "d"), limit=2) == "a, b and 2 more"
