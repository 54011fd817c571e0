"""Markdown fits a comment, and names from files stay names."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from polygraphy_debug_ext.reports import markdown
from polygraphy_debug_ext.reports.document import Options, Side
from tests.reports.conftest import HOSTILE, LONG, answers, document, documents, suspect, tactic

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.reports.document import Document

OURS = re.compile(r"</?(?:details|summary|code)>|<br>")


def html(text: str) -> str:
    """What a reader of Markdown makes of it."""
    return str(MarkdownIt("commonmark").enable("table").render(text))


def tags(text: str) -> set[str]:
    """The HTML elements in `text`."""
    return set(re.findall(r"<([a-z0-9]+)", text))


@pytest.mark.parametrize("name", documents())
def test_only_our_own_elements_are_there(made: Callable[[str], Document], name: str) -> None:
    found = tags(html(markdown.render(made(name))))
    assert found <= {
        *("h3", "h4", "p", "strong", "em", "code", "ul", "li", "blockquote", "details", "summary", "br"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert "strong" in found


def test_a_hostile_name_is_shown_as_it_is() -> None:
    for name in (
        HOSTILE,
        "a`<img src=x>",
        "``<b>`",
        "`--x` <i>`",
        "[a](http://x)",
        "a\\`<b>`",
        "***",
        "| a |",
        "~~a~~",
    ):
        answer = answers()["culprit"]
        named = dataclasses.replace(answer.named[0], layers=(name,), tactic=tactic(5, name))
        answer = dataclasses.replace(answer, named=(named,), suspects=(named,))
        text = html(markdown.render(document(answer)))
        assert not tags(text) & {"b", "i", "img", "a", "s"}, name
        rows = re.findall(r"<tr>.*?</tr>", text, re.DOTALL)
        assert [len(re.findall(r"<t[hd]", row)) for row in rows] == [10, 10], name


def test_any_number_of_suspects_fits_a_comment() -> None:
    many = tuple(
        suspect(f"{LONG} {number} {'<|`' * 60}", -number - 1, (5, 0, 0, 8), probability=0.0001)
        for number in range(5000)
    )
    answer = dataclasses.replace(answers()["undecided"], suspects=many, telling=many)
    for top in (1, 10, 1000, None):
        made = document(answer, options=Options(top=top), complaints=tuple(each.layers[0] for each in many))
        text = markdown.render(made)
        assert len(text.encode()) < markdown.LIMIT
        assert "more suspects in the JSON document" in text
        assert "<summary>About the files</summary>" in text


def test_what_is_too_long_without_tables_is_cut_and_says_so() -> None:
    made = document(
        answers()["culprit"], good=Side(place="good", skipped=tuple(("x" * 9000, "y") for _ in range(10)))
    )
    text = markdown.render(made)
    assert len(text.encode()) < markdown.LIMIT
    assert text.endswith("(The rest was cut: see the JSON document.)\n")
