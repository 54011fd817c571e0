"""Layouts: how a tensor lies in memory. The names of the formats are those of TensorRT's `TensorFormat`.

A vectorized format packs `components` channels into one element; a channels-last one stores the channels innermost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

CHANNEL_AXIS = 1
IMAGE_RANK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One memory format; `text` completes the sentence of the layer information (`{0}` is the data type)."""

    components: int
    channels_last: bool
    text: str


FORMATS = {
    "LINEAR": Format(components=1, channels_last=False, text="Row major linear {0}"),
    "HWC": Format(components=1, channels_last=True, text="Channel major {0} format"),
    "HWC8": Format(components=8, channels_last=True, text="Channel major {0} format where channel % 8 == 0"),
    "HWC16": Format(
        components=16, channels_last=True, text="Channel major {0} format where channel % 16 == 0"
    ),
    "CHW2": Format(
        components=2, channels_last=False, text="Two wide channel vectorized row major {0} format"
    ),
    "CHW4": Format(
        components=4, channels_last=False, text="Four wide channel vectorized row major {0} format"
    ),
    "CHW16": Format(
        components=16, channels_last=False, text="Sixteen wide channel vectorized row major {0} format"
    ),
    "CHW32": Format(
        components=32, channels_last=False, text="Thirty-two wide channel vectorized row major {0} format"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Data type and format of one tensor."""

    dtype: str
    format: str = "LINEAR"

    @property
    def components(self) -> int:
        """Channels per element."""
        return FORMATS[self.format].components

    @property
    def vectorized_axis(self) -> int:
        """The axis that is packed, -1 if none is."""
        return CHANNEL_AXIS if self.components > 1 else -1

    def strides(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The strides in elements (an element of a vectorized format holds `components` channels)."""
        sizes = [max(1, size) for size in shape]
        if self.components > 1:
            sizes[CHANNEL_AXIS] = math.ceil(sizes[CHANNEL_AXIS] / self.components)
        strides, step = [0] * len(sizes), 1
        for axis in reversed(self._order(len(sizes))):
            strides[axis] = step
            step *= sizes[axis]
        return tuple(strides)

    def strides_text(self, shape: Sequence[int]) -> str:
        """As the autotuning lines have it: `Half(784,1:8,28,1)`."""
        return f"{DTYPES[self.dtype].text}({self._join(self.strides(shape))})"

    def dims_text(self, shape: Sequence[int]) -> str:
        """The dimensions as the final list has them: `1,64:8,28,28`."""
        return self._join(shape)

    @property
    def long_text(self) -> str:
        """As the layer information has it."""
        return FORMATS[self.format].text.format(DTYPES[self.dtype].long_text)

    @property
    def short_text(self) -> str:
        """As the layer information has it where the data type is a field of its own."""
        short = "NHWC" if FORMATS[self.format].channels_last else "Linear"
        words = FORMATS[self.format].text.format("").replace("  ", " ").strip()
        return f"({short}) {words if words.endswith('format') or '%' in words else words + ' format'}"

    def nbytes(self, shape: Sequence[int]) -> int:
        """The size of a tensor with this layout."""
        sizes = list(shape)
        if self.components > 1:
            sizes[CHANNEL_AXIS] = math.ceil(sizes[CHANNEL_AXIS] / self.components) * self.components
        return math.prod(sizes) * DTYPES[self.dtype].size

    def pack(self, values: NDArray[np.generic]) -> NDArray[np.generic]:
        """The bytes of a tensor, given in the order of its dimensions, as they lie in memory."""
        if self.format == "LINEAR":
            return np.ascontiguousarray(values)
        padding = [(0, 0)] * values.ndim
        padding[CHANNEL_AXIS] = (0, -values.shape[CHANNEL_AXIS] % self.components)
        padded = np.pad(values, padding)
        vectors = padded.shape[CHANNEL_AXIS] // self.components
        split = padded.reshape(values.shape[0], vectors, self.components, *values.shape[2:])
        axes = [*self._order(values.ndim), values.ndim]
        return np.ascontiguousarray(np.moveaxis(split, 2, -1).transpose(axes))

    def unpack(self, memory: NDArray[np.generic], shape: Sequence[int]) -> NDArray[np.generic]:
        """The tensor of `shape` whose bytes lie in `memory` (flat)."""
        if self.format == "LINEAR":
            return memory.reshape(tuple(shape))
        vectors = math.ceil(shape[CHANNEL_AXIS] / self.components)
        sizes = [shape[0], vectors, *shape[2:]]
        order = self._order(len(shape))
        stored = memory.reshape([sizes[axis] for axis in order] + [self.components])
        inverse = [order.index(axis) for axis in range(len(shape))]
        split = np.moveaxis(stored.transpose([*inverse, len(shape)]), -1, 2)
        merged = split.reshape(shape[0], vectors * self.components, *shape[2:])
        return np.ascontiguousarray(merged[:, : shape[CHANNEL_AXIS]])

    def _order(self, rank: int) -> list[int]:
        """The axes from the outermost in memory to the innermost."""
        axes = list(range(rank))
        if FORMATS[self.format].channels_last:
            axes.append(axes.pop(CHANNEL_AXIS))
        return axes

    def _join(self, numbers: Sequence[int]) -> str:
        texts = [str(number) for number in numbers]
        if self.components > 1:
            texts[CHANNEL_AXIS] += f":{self.components}"
        return ",".join(texts)
