"""The shapes of outputs for given inputs, without running the engine."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import sizing
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx
else:
    onnx = LazyModule("onnx")

Sizes = tuple[tuple[str, tuple[int, ...]], ...]


def infer(
    model: bytes, sizes: Mapping[str, tuple[int, ...]], values: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """The shapes that follow from shapes and values of the inputs; what depends on data stays -1."""
    return _infer(model, tuple(sizes.items()), tuple(values.items()))


@lru_cache(maxsize=64)
def _infer(model: bytes, sizes: Sizes, values: Sizes) -> dict[str, tuple[int, ...]]:
    types = sizing.concrete(onnx.load_from_string(model), dict(sizes), dict(values))
    return {name: known.shape for name, known in types.items() if known.shape is not None}
