"""The table of suspects fits its reader: wide and plain where it is searched, narrow and coloured on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.reports.lines import percent, shortened
from polygraphy_debug_ext.reports.table import Screen, dstar, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.reports.document import Document

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200, 400])
def test_on_a_terminal_each_suspect_is_one_line_that_fits(
    made: Callable[[str], Document], width: int
) -> None:
    answer = made("culprit").groups[0].answer
    found = rows(answer.suspects, "layer", Screen(width), answer.named)
    plain = [COLOUR.sub("", line) for line in found]
    assert len(plain) == 1 + len(answer.suspects)
    assert max(map(len, plain)) <= width
    assert [line.split()[0] for line in plain] == ["prob.", "97.4%", "1.2%", "0.2%"]
    assert [line.startswith("\x1b[1;31m") for line in found] == [False, True, False, False]
    assert "[profile 1]" in plain[2]
    assert rows(answer.suspects, "layer", Screen(width, colour=False), answer.named) == plain


def test_a_wide_terminal_shows_names_in_full(made: Callable[[str], Document]) -> None:
    answer = made("culprit").groups[0].answer
    plain = COLOUR.sub("", "\n".join(rows(answer.suspects, "layer", Screen(400))))
    assert all(layer in plain for each in answer.suspects for layer in each.layers)


def test_what_is_no_terminal_gets_no_colours_and_all_columns(made: Callable[[str], Document]) -> None:
    answer = made("culprit").groups[0].answer
    found = rows(answer.suspects, "layer")
    assert not any(COLOUR.search(line) for line in found)
    assert re.split(r"  +", found[0].strip()) == [
        *("prob.", "class", "layer", "tactic", "kernel", "with", "without", "stock", "Ochiai", "D*")
    ]
    assert re.split(r"  +", found[1].strip())[-5:] == ["5/0", "0/8", "strong", "1.000", "inf"]


def test_the_middle_of_a_long_name_gives_way_and_the_profile_stays() -> None:
    name = f"{'a' * 50}{'b' * 50} [profile 12]"
    assert shortened(name, 200) == name
    assert shortened(name, 40) == f"{'a' * 19}...{'b' * 5} [profile 12]"
    assert shortened(name, 20) == "aaaa... [profile 12]"
    assert shortened("abcdefghijklmnopqrstuvwxyz", 16) == "abcdefg...uvwxyz"


def test_what_is_nearly_sure_is_not_called_sure() -> None:
    assert [percent(value) for value in (1.0, 0.99951, 0.9994, 0.5, 0.0005, 0.0004, 0.0)] == [
        *(">99.9%", ">99.9%", "99.9%", "50.0%", "0.1%", "<0.1%", "<0.1%")
    ]


def test_an_infinite_score_is_called_so() -> None:
    assert [dstar(value) for value in (float("inf"), 4.0, 1 / 3, 123456.0)] == [
        "inf",
        "4",
        "0.3333",
        "1.235e+05",
    ]
