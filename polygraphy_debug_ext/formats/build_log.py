"""Verbose build logs: where a build was when it failed. (What a build that succeeded chose is not read from here yet.)

The first error counts: after a CUDA error that sticks, every later tactic fails with the same text. A process that died
leaves a log that just ends; the last `Timing Runner` line names the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model import FaultSite
from polygraphy_debug_ext.model.tactic import TACTIC_MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

#: No line of a log that matters is longer; longer ones are cut.
_LINE_LIMIT: Final = 2**16

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")
_COSTS: Final = re.compile(r"=+ Computing costs for (.*?)\s*$")
_TIMING: Final = re.compile(r"Timing Runner: (.*) \(([^()\[\]]+)(?:\[0x[0-9a-fA-F]+\])?\)\s*$")
# Up to TensorRT 8.x a tactic is named before it is timed, from 8.5 on also after it.
_NAMED: Final = re.compile(r"Set Tactic Name: .* Tactic: (0x[0-9a-fA-F]+|-?\d+)")
_TIMED: Final = re.compile(r"Tactic: (0x[0-9a-fA-F]+|-?\d+) Time:")
_SKIPPED: Final = re.compile(r"Skipping tactic ?(0x[0-9a-fA-F]+|-?\d+) due to (?:exception )?(.*?)\s*$")
_NO_IMPLEMENTATION: Final = re.compile(r"Could not find any implementation for node (.*?)\.?\)?\s*$")
_DONE: Final = re.compile(r"Engine Layer Information:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a log tells about the failure of its build.

    `first_error` is where the first tactic failed, `last_timed` the place of the last timing, `skipped` all tactics that
    failed, `failed_node` the layer for which nothing was left; `finished` says that the build got to its end.
    """

    first_error: FaultSite | None
    last_timed: FaultSite | None
    skipped: tuple[str, ...]
    failed_node: str
    finished: bool

    @property
    def site(self) -> FaultSite | None:
        """The best answer to where it was."""
        if self.first_error is not None:
            return self.first_error
        if self.failed_node:
            return FaultSite(layer=self.failed_node, error="no implementation was found")
        return None if self.finished else self.last_timed


class _Reader:
    """Goes through a log line by line."""

    def __init__(self) -> None:
        self.layer = self.runner = self.pending = ""
        self.first_error: FaultSite | None = None
        self.skipped: list[str] = []
        self.failed_node = ""
        self.finished = False

    def take(self, line: str) -> None:
        """Take a line."""
        if match := _TIMING.search(line):
            self.layer, self.runner, self.pending = match[1], match[2], ""
        elif match := _COSTS.search(line):
            self.layer, self.runner, self.pending = match[1], "", ""
        elif match := _SKIPPED.search(line):
            self._skip(hexadecimal(match[1]), match[2])
        elif match := _NO_IMPLEMENTATION.search(line):
            self.failed_node = self.failed_node or match[1]
        elif _DONE.search(line):
            self.finished = True
        elif match := _NAMED.search(line):
            self.pending = hexadecimal(match[1])
        elif _TIMED.search(line):
            self.pending = ""

    def _skip(self, tactic: str, error: str) -> None:
        self.skipped.append(tactic)
        if self.first_error is None and self.layer:
            self.first_error = FaultSite(layer=self.layer, runner=self.runner, tactic=tactic, error=error)


def failure(lines: Iterable[bytes]) -> Failure:
    """Say what the log of a failed build tells."""
    reader = _Reader()
    for line in lines:
        reader.take(_ANSI.sub("", line[:_LINE_LIMIT].decode(errors="replace")))
    last = (
        FaultSite(layer=reader.layer, runner=reader.runner, tactic=reader.pending) if reader.layer else None
    )
    return Failure(
        first_error=reader.first_error,
        last_timed=last,
        skipped=tuple(reader.skipped),
        failed_node=reader.failed_node,
        finished=reader.finished,
    )


def hexadecimal(tactic: str) -> str:
    """A tactic id, however it is printed, as `0x` and 16 digits."""
    return f"0x{int(tactic, 0) & TACTIC_MASK:016x}"
