"""Each conclusion in each format, held against a file in `tests/data/diff_tactics`.

To write the files anew: `POLYGRAPHY_DEBUG_EXT_WRITE_EXPECTED=1 pytest tests/reports`, then read what `git diff` shows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.reports import json_document, junit, markdown, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.reports.document import Document

    Made = Callable[[str], Document]

EXPECTED = Path(__file__).parents[1] / "data" / "diff_tactics"
NAMES = [
    "culprit",
    "culprit_kernel",
    "alike",
    "pair",
    "pair_both",
    "no_tactic",
    "no_tactic_opaque",
    "no_variation",
    "no_good_build_alike",
    "undecided",
    "undecided_alike",
    "undecided_none",
    "no_good_build",
    "no_bad_build",
    "opaque",
    "nothing_in_common",
    "hostile",
    "environments",
    "mixture",
]
RENDERERS: dict[str, Callable[[Document], str]] = {
    "txt": lambda document: "\n".join(line.text for line in text.render(document, "replays")) + "\n",
    "json": json_document.render,
    "md": lambda document: markdown.render(document, "replays"),
    "xml": lambda document: junit.render(document, "2026-12-01T12:00:00"),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", RENDERERS)
def test_every_conclusion_reads_as_expected(made: Made, name: str, kind: str) -> None:
    path = EXPECTED / f"{name}.{kind}"
    found = RENDERERS[kind](made(name))
    if os.environ.get("POLYGRAPHY_DEBUG_EXT_WRITE_EXPECTED"):
        path.write_bytes(found.encode())
    assert found == path.read_bytes().decode()


@pytest.mark.parametrize("kind", RENDERERS)
def test_names_from_files_bring_no_control_character(made: Made, kind: str) -> None:
    found = RENDERERS[kind](made("hostile"))
    assert not [char for char in found if char != "\n" and not char.isprintable()]
    assert "x1b" in found.replace("u001b", "x1b")
