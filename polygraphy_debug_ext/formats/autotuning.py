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
from dataclasses import dataclass, replace
from typing import Final

_BEGIN: Final = "Autotuning op "
_OP: Final = re.compile(
    r"Autotuning op (?P<op>.+?)(?:\(key: (?P<key>0x[0-9a-fA-F]{32})\))?:(?P<rest>(?: ?\[ONNX Layer: .*)?)$"
)
_ONNX: Final = "[ONNX Layer: "
_HEADER: Final = "tactic_id, cost(in ms), "
# Every repetition is bounded, so that no line takes long to be told from a row.
_COLUMNS: Final = re.compile(
    r"(?<!\d)\d{1,9},\s{0,4}(?P<cost>[0-9.eE+-]{1,24}),\s{0,4}[^,\s]{1,24},\s{0,4}[^,\s]{1,24},\s{0,4}"
)
_KERNEL: Final = re.compile(r"(?P<kernel>.{1,2000}?),\s{0,4}(?P<hash>0x[0-9a-fA-F]{1,16}),")
_SELECTED: Final = re.compile(
    r"The selected tactic is \(tactic hash, cost\(in ms\)\):\s{0,4}(?P<hash>0x[0-9a-fA-F]{1,16}),\s{0,4}(?P<cost>[0-9.eE+-]{1,24})"
)

#: The implementation of tactics in a Myelin graph: that of Myelin, as TensorRT 10 numbers it.
MYELIN: Final = 0x80000023


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
        self._op: TunedOp | None = None
        self._rows: list[Candidate] = []
        self._selected: int | None = None
        self._in_table = False

    def take(self, line: str) -> None:
        """Take a line."""
        if op := begin(line):
            self._close()
            self._op = op
        elif self._op is None:
            return
        elif _HEADER in line:
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
        if (candidate := row(line)) is None:
            # Rows follow the header without a gap; what comes after them is not of this op.
            self._in_table = False
            return
        self._rows.append(candidate)

    def _close(self) -> None:
        if self._op is not None:
            self._done.append(replace(self._op, candidates=tuple(self._rows), selected=self._selected))
        self._op, self._rows, self._selected, self._in_table = None, [], None, False


def begin(
    line: str, candidates: tuple[Candidate, ...] = (), selected_tactic: int | None = None
) -> TunedOp | None:
    """Return the op whose table begins with this line, with what is known of the table."""
    at = line.find(_BEGIN)
    match = None if at < 0 else _OP.match(line.rstrip(), at)
    if match is None:
        return None
    names = match["rest"].strip().removeprefix(_ONNX).removesuffix("]")
    return TunedOp(
        op=match["op"],
        key=match["key"],
        onnx_layers=tuple(names.split(f"]{_ONNX}")) if names else (),
        candidates=candidates,
        selected=selected_tactic,
    )


def row(line: str) -> Candidate | None:
    """Return the candidate that a row of a table stands for."""
    columns = _COLUMNS.search(line)
    kernel = None if columns is None else _KERNEL.match(line, columns.end())
    if columns is None or kernel is None:
        return None
    try:
        cost = float(columns["cost"])
    except ValueError:
        return None
    return Candidate(tactic=int(kernel["hash"], 16), kernel=kernel["kernel"], cost_ms=cost)


def selected(line: str) -> tuple[int, float] | None:
    """Return the hash and the cost in milliseconds of the tactic that was selected."""
    match = _SELECTED.search(line)
    if match is None:
        return None
    try:
        return int(match["hash"], 16), float(match["cost"])
    except ValueError:
        return None
