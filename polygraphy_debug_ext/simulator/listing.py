"""The candidates of every layer of a model: what can be planted, chosen and avoided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator import personality
from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance, Setting, candidates
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion
from polygraphy_debug_ext.simulator.errors import GraphError, UsageError
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from pathlib import Path

    import onnx
else:
    onnx = LazyModule("onnx")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate of one layer."""

    layer: str
    kernel: str
    tactic: str
    precision: str


def list_kernels(model: Path, trt: str, precisions: frozenset[str]) -> tuple[Row, ...]:
    """The candidates of a model for one personality; dynamic sizes count as 1, reformat layers depend on the build."""
    personality.load(trt)
    try:
        graph = graphs.load(onnx.load(model))
    except GraphError as error:
        raise UsageError(f"{model} cannot become a network: {error}") from None
    except Exception as error:  # onnx and protobuf raise their own types
        raise UsageError(f"{model} cannot be read as an ONNX model: {error}") from error
    allowance = Allowance(precisions=precisions, quantized=frozenset(graph.types))
    rows = []
    for layer in Fusion(graph, frozenset(graph.outputs)).layers():
        for candidate in candidates(Setting(layer=layer, types=graph.types), allowance):
            kernel = candidate.kernel
            rows.append(
                Row(
                    layer=layer.name,
                    kernel=kernel.name,
                    tactic=f"0x{kernel.tactic:016x}",
                    precision=candidate.precision,
                )
            )
    return tuple(rows)
