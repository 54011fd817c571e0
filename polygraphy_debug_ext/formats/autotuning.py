"""Autotuning tables of a verbose build log: for each op of a Myelin graph, the candidates and, with an editable timing cache, its key.

    Autotuning op NAME(key: 0x…): [ONNX Layer: a][ONNX Layer: b]         key and layers are not always there
    Sorted table of all evaluated tactics:
    tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
       3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_..., 0x665ded9abbf88,
    The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
    Writing the best tactic (0x665ded9abbf88) to cache

An op is tuned once per format combination, under one name with other keys; the log does not say which one the engine has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_OP: Final = re.compile(
    r"Autotuning op (?P<op>.+?)(?:\(key: (?P<key>0x[0-9a-fA-F]{32})\))?:(?P<rest>(?: ?\[ONNX Layer: .*)?)\s*$"
)
_ONNX: Final = re.compile(r"\[ONNX Layer: (.*?)\](?=\[ONNX Layer: |\s*$)")
_HEADER: Final = re.compile(r"tactic_id, cost\(in ms\), .*kernel_name, tactic_hash")
_ROW: Final = re.compile(
    r"(?P<id>\d+),\s*(?P<cost>[0-9.eE+-]+),\s*[^,]+,\s*[^,]+,\s*(?P<kernel>.+?),\s*(?P<hash>0x[0-9a-fA-F]+),"
)
_SELECTED: Final = re.compile(
    r"The selected tactic is \(tactic hash, cost\(in ms\)\):\s*(?P<hash>0x[0-9a-fA-F]+),\s*(?P<cost>[0-9.eE+-]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One row of a table: a tactic that was timed."""

    tactic: int
    kernel: str
    cost_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedOp:
    """What was measured for an op; `key` and `selected` are None where the cache was not editable."""

    op: str
    key: str | None
    onnx_layers: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    selected: int | None

    @property
    def selected_kernel(self) -> str | None:
        """The kernel of the selected tactic."""
        return next((each.kernel for each in self.candidates if each.tactic == self.selected), None)


class Tables:
    """Collects the tables from the lines of a log, which may have any prefix."""

    def __init__(self) -> None:
        self._done: list[TunedOp] = []
        self._match: re.Match[str] | None = None
        self._rows: list[Candidate] = []
        self._selected: int | None = None
        self._in_table = False

    def take(self, line: str) -> None:
        """Take a line."""
        if match := _OP.search(line):
            self._close()
            self._match = match
        elif self._match is None:
            return
        elif _HEADER.search(line):
            self._in_table = True
        elif match := _SELECTED.search(line):
            self._selected = int(match["hash"], 16)
            self._in_table = False
        elif self._in_table:
            self._row(line)

    def ops(self) -> tuple[TunedOp, ...]:
        """All ops so far, in the order of the log."""
        self._close()
        return tuple(self._done)

    def _row(self, line: str) -> None:
        if (match := _ROW.search(line)) is None:
            # Rows follow the header without a gap; what comes after them is not of this op.
            self._in_table = False
            return
        try:
            cost = float(match["cost"])
        except ValueError:
            return
        self._rows.append(Candidate(tactic=int(match["hash"], 16), kernel=match["kernel"], cost_ms=cost))

    def _close(self) -> None:
        if self._match is not None:
            self._done.append(
                TunedOp(
                    op=self._match["op"],
                    key=self._match["key"],
                    onnx_layers=tuple(_ONNX.findall(self._match["rest"])),
                    candidates=tuple(self._rows),
                    selected=self._selected,
                )
            )
        self._match, self._rows, self._selected, self._in_table = None, [], None, False
