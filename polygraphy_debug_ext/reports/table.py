"""Suspects as a table: rows of words, and rows of text that fit a width. One line per suspect, no frame, so that it can be searched.

*with* and *without* are bad/good builds that have the suspect, and that have not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.answer import Rank, View
from polygraphy_debug_ext.reports.lines import listed, percent, printable, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model.answer import Suspect

#: Width of a name where the output is no terminal: most names in full.
_WIDE: Final = 64
#: Below this a name says too little: other columns go first, and then there is no help.
_NARROW: Final = 26
_LEAST: Final = 16
_GAP: Final = "  "

#: What can be left out on a narrow terminal, in this order; it is in every other format.
_GIVE_WAY: Final = ("D*", "Ochiai", "class", "stock", "tactic")

_BOLD: Final = "\x1b[1m"
_RED: Final = "\x1b[1;31m"
_RESET: Final = "\x1b[0m"

_STOCK: Final = {Rank.STRONG: "strong", Rank.WEAK: "weak", Rank.NOT_SUSPECT: "no"}


@dataclass(frozen=True, slots=True)
class Screen:
    """A terminal: its width in characters, and whether it is to have colours."""

    width: int
    colour: bool = True


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, one cell per suspect; names are `wide` and may be shortened, numbers stand right."""

    title: str
    cells: tuple[str, ...]
    wide: bool = False
    right: bool = False


def columns(suspects: Sequence[Suspect], view: str) -> tuple[Column, ...]:
    """Return the columns for `suspects`, in the view "layer" or "kernel"; names are printable and in full."""
    kernel = Column("kernel", tuple(printable(each.tactic.kernel or "-") for each in suspects), wide=True)
    if view == View.KERNEL.value:
        places = Column("layers", tuple(_layers(each.layers) for each in suspects), wide=True)
        names = (kernel, Column("tactic", tuple(each.tactic.hex or "-" for each in suspects)), places)
    else:
        layer = Column("layer", tuple(listed(each.layers) for each in suspects), wide=True)
        names = (layer, Column("tactic", tuple(each.tactic.hex or "-" for each in suspects)), kernel)
    counts = [each.counts for each in suspects]
    return (
        Column("prob.", tuple(percent(each.probability) for each in suspects), right=True),
        Column("class", tuple(str(each.group) for each in suspects), right=True),
        *names,
        Column("with", tuple(f"{each.bad_with}/{each.good_with}" for each in counts), right=True),
        Column("without", tuple(f"{each.bad_without}/{each.good_without}" for each in counts), right=True),
        Column("stock", tuple(_STOCK[each.rank] for each in suspects)),
        Column("Ochiai", tuple(f"{each.ochiai:.3f}" for each in suspects), right=True),
        Column("D*", tuple(dstar(each.dstar) for each in suspects), right=True),
    )


def dstar(score: float) -> str:
    """Return a D* score in few characters; it may be infinite."""
    return "inf" if math.isinf(score) else f"{score:.4g}"


def rows(
    suspects: Sequence[Suspect], view: str, screen: Screen | None = None, named: Sequence[Suspect] = ()
) -> list[str]:
    """Return the title row and a row per suspect.

    On a `screen` names are shortened to fit, the least columns left out, and rows of those `named` in colour; otherwise the width
    does not depend on the reader and there are no colours.
    """
    table = columns(suspects, view)
    limit = _WIDE
    if screen is not None:
        table, limit = _fitted(table, screen.width)
    sized = [_sized(column, limit) for column in table]
    lines = [_GAP.join(cells).rstrip() for cells in zip(*sized, strict=True)]
    if screen is None or not screen.colour:
        return lines
    return [
        f"{_BOLD}{lines[0]}{_RESET}",
        *(
            f"{_RED}{line}{_RESET}" if suspect in named else line
            for line, suspect in zip(lines[1:], suspects, strict=True)
        ),
    ]


def _layers(layers: tuple[str, ...]) -> str:
    return printable(layers[0]) if len(layers) == 1 else f"{len(layers)}: {listed(layers, 3)}"


def _fitted(table: tuple[Column, ...], width: int) -> tuple[tuple[Column, ...], int]:
    """Return the columns that fit into `width`, and how wide a name may be."""
    names = sum(column.wide for column in table)
    for title in ("", *_GIVE_WAY):
        table = tuple(column for column in table if column.title != title)
        fixed = sum(len(_sized(column, 0)[0]) for column in table if not column.wide)
        room = (width - fixed - len(_GAP) * (len(table) - 1)) // names
        if room >= _NARROW:
            break
    longest = [max(map(len, column.cells), default=0) for column in table if column.wide]
    # A short name leaves its room to the other.
    spare = sum(max(room - each, 0) for each in longest)
    return table, max(room + spare, _LEAST)


def _sized(column: Column, limit: int) -> list[str]:
    """The title and the cells, all of one width."""
    cells = [column.title, *column.cells]
    if column.wide:
        cells = [shortened(cell, limit) for cell in cells]
    width = max(map(len, cells))
    return [cell.rjust(width) if column.right else cell.ljust(width) for cell in cells]
