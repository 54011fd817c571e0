"""What a candidate costs, and how a measurement of it comes out.

The true cost follows from the work of the layer and from a factor that belongs to kernel and shapes; several kernels of a layer
are nearly equally fast. A measurement adds log-normal noise, so that repeated builds choose differently.
"""

from __future__ import annotations

import math
import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.kernels import bell, fraction

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.compiler.catalogue import Candidate, Setting
    from polygraphy_debug_ext.simulator.compiler.layouts import Layout
    from polygraphy_debug_ext.simulator.settings import Settings

ITERATION = "POLYGRAPHY_DEBUG_ITERATION"
REPETITION = "POLYGRAPHY_DEBUG_REPETITION"
LAUNCH_MS = 0.003
FLOPS_PER_MS = 8e9
BYTES_PER_MS = 4e8
REFORMAT_MS = 0.0009
SPEED = {"FLOAT": 1.0, "HALF": 0.66, "BF16": 0.67, "INT8": 0.52}
# The slowest of a layer's kernels is slower than its fastest by about this share.
SPREAD = 0.35
DIGITS = 6


def true_cost(candidate: Candidate, setting: Setting) -> float:
    """Milliseconds that the candidate takes."""
    layer = setting.layer
    nbytes = sum(math.prod(setting.shape(name)) for name in (*layer.inputs, *layer.weights, *layer.outputs))
    nbytes *= DTYPES[candidate.precision].size
    work = LAUNCH_MS + _flops(setting) / FLOPS_PER_MS + nbytes / BYTES_PER_MS
    key = (candidate.kernel.name, candidate.precision, setting.signature)
    return work * SPEED[candidate.precision] * (1 + SPREAD * math.sqrt(fraction("speed", *key)) ** 3)


def reformat_cost(source: Layout, target: Layout, shape: tuple[int, ...]) -> float:
    """Milliseconds that it takes to bring a tensor from one layout to another."""
    if source == target:
        return 0.0
    return REFORMAT_MS + (source.nbytes(shape) + target.nbytes(shape)) / BYTES_PER_MS


def _flops(setting: Setting) -> float:
    layer = setting.layer
    size = sum(math.prod(setting.shape(name)) for name in layer.outputs)
    if layer.kind in {"conv", "deconv"}:
        weight = setting.shape(layer.weights[0]) if layer.weights else (1,)
        return 2.0 * size * math.prod(weight[1:])
    if layer.kind == "gemm":
        operand = setting.shape(layer.inputs[0])
        return 2.0 * size * operand[-1]
    return float(size * len(layer.nodes))


@dataclass(slots=True)
class _Counter:
    """Builds of this process since the iteration of the debug loop last changed."""

    iteration: str | None = None
    builds: int = 0

    def next(self) -> tuple[str, int]:
        iteration = os.environ.get(ITERATION, "")
        if iteration != self.iteration:
            self.iteration, self.builds = iteration, 0
        self.builds += 1
        return iteration, self.builds - 1


_COUNTER = _Counter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice:
    """The chance of one build: with a seed, the same in every run; without one, never the same."""

    root: str
    noise: float

    @staticmethod
    def of_build(settings: Settings) -> Dice:
        """Fresh dice for the next build of this process."""
        iteration, build = _COUNTER.next()
        root = secrets.token_hex(16) if settings.seed is None else f"{settings.seed}/{iteration}/{build}"
        return Dice(root=root, noise=settings.noise)

    def measured(self, cost: float, *what: object) -> float:
        """A measurement of `cost`, with as many digits as the log shows."""
        return float(f"{cost * math.exp(self.noise * bell(self.root, 'time', *what)):.{DIGITS}g}")

    def happens(self, rate: float, *what: object) -> bool:
        """Whether something of this probability happens."""
        return rate >= 1 or fraction(self.root, "rate", *what) < rate

    @property
    def nonce(self) -> str:
        """What tells the engine of this build from those of other builds."""
        return f"{fraction(self.root, 'nonce', 0) * 2**48:.0f}"
