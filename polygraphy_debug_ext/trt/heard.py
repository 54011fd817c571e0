"""What the timing lines of a build's log tell: the kernel of a tactic id, and how long each tactic of a layer took.

    --------------- Timing Runner: conv1 + relu1 (CaskConvolution[0x80000009])
    Tactic Name: sm80_xmma_fprop_... Tactic: 0x967f94e9db2001a8 Time: 0.00615314

Up to TensorRT 8.4 the name comes on a line of its own (`Set Tactic Name`). Layers inside Myelin have tables instead; see `formats.autotuning`.
"""

from __future__ import annotations

import re
from typing import Final

from polygraphy_debug_ext.model.tactic import TACTIC_MASK

_LAYER: Final = re.compile(r"Timing Runner: (.*) \([^()]+\)\s*$")
_NAME: Final = re.compile(r"Tactic Name: (\S+) Tactic: (0x[0-9a-fA-F]+|-?\d+)")
_TIME: Final = re.compile(r"Tactic: (0x[0-9a-fA-F]+|-?\d+) Time: ([0-9.]+(?:e[+-]?\d+)?)\s*$")
#: Ids below this are numbers that every runner gives to its own tactics: they name no kernel.
_LOCAL: Final = 2**16
#: What TensorRT writes as a time where a tactic could not be run, in milliseconds; none is that slow.
_NEVER: Final = 1e30


class Timings:
    """Collects from the lines of a log. `kernels` are kept from build to build, `times` (milliseconds, by layer and
    tactic) are of this one.

    Of a tactic that was timed in several layouts of the tensors, the least time is kept.
    """

    def __init__(self) -> None:
        self.kernels: dict[int, str] = {}
        self.times: dict[str, dict[int, float]] = {}
        self._last_times: dict[str, dict[int, float]] = {}
        self._layer = ""

    def begin(self) -> None:
        """Another build begins."""
        for layer, times in self.times.items():
            self._last_times.setdefault(layer, {}).update(times)
        self.times = {}
        self._layer = ""

    def time(self, layer: str, tactic: int) -> float | None:
        """How long a tactic of a layer took when it was last timed; None if it never was."""
        for times in (self.times, self._last_times):
            if (found := times.get(layer, {}).get(tactic)) is not None:
                return found
        return None

    def take(self, line: str) -> None:
        """Take a line."""
        if "Tactic" not in line and "Timing" not in line:
            return
        if match := _NAME.search(line):
            tactic = _id(match[2])
            if tactic >= _LOCAL:
                self.kernels[tactic] = match[1]
        if match := _TIME.search(line):
            if self._layer and "Fastest Tactic" not in line and (time := float(match[2])) < _NEVER:
                times = self.times.setdefault(self._layer, {})
                tactic = _id(match[1])
                times[tactic] = min(time, times.get(tactic, time))
        elif match := _LAYER.search(line):
            self._layer = match[1]


def _id(text: str) -> int:
    return int(text, 0) & TACTIC_MASK
