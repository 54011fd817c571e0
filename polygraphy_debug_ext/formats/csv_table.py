"""Tactics as comma-separated values (RFC 4180, UTF-8, with a header): one row for each layer of each build, for spreadsheets.

    file,build,layer,implementation,tactic,kernel,time_ms,cache_key,in_engine
    good/replay_0.json,0,conv1 + relu1,2147483657,0xa7a495ee24d0c659,sm80_xmma_fprop_...,0.0061,,

`tactic` has 16 hexadecimal digits; what a source does not tell is empty; `in_engine` is `no` for a pick that was timed but that a
fusion or another format replaced.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polygraphy_debug_ext.model import Assignment

COLUMNS: Final = (
    "file",
    "build",
    "layer",
    "implementation",
    "tactic",
    "kernel",
    "time_ms",
    "cache_key",
    "in_engine",
)

#: Spreadsheets take a cell that begins so for a formula, which a layer's name must not be able to smuggle in.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def write(assignments: Iterable[Assignment]) -> bytes:
    """Return the table of these builds; builds are counted from 0 in their order."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(COLUMNS)
    for build, assignment in enumerate(assignments):
        for layer, tactic in assignment.layers.items():
            known = (
                tactic.implementation,
                tactic.hex,
                _cell(tactic.kernel or ""),
                tactic.time_ms,
                tactic.cache_key,
                _in_engine(swallowed=tactic.swallowed, known=bool(tactic.witnesses)),
            )
            rows.writerow([_cell(assignment.origin), build, _cell(layer), *known])
    return text.getvalue().encode()


def _in_engine(*, swallowed: bool, known: bool) -> str:
    return "" if not known else "no" if swallowed else "yes"


def _cell(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
