"""The candidates of every layer of a model: what can be planted, chosen and avoided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator import personality
from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.autotune import tactics
from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance, Setting, candidates
from polygraphy_debug_ext.simulator.compiler.foreign import Planner
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion
from polygraphy_debug_ext.simulator.compiler.inner import tuned
from polygraphy_debug_ext.simulator.compiler.myelin import partition
from polygraphy_debug_ext.simulator.compiler.tuner import Constraints
from polygraphy_debug_ext.simulator.errors import GraphError, UsageError
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import onnx

    from polygraphy_debug_ext.simulator.compiler.fusion import Layer
    from polygraphy_debug_ext.simulator.compiler.graph import Graph
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
    """The candidates of a model for one personality; dynamic sizes count as 1, reformat layers depend on the build.

    Ops inside Myelin are listed by their own names, generated code under the name that it has there.
    """
    chosen = personality.load(trt)
    try:
        graph = graphs.load(onnx.load(model))
    except GraphError as error:
        raise UsageError(f"{model} cannot become a network: {error}") from None
    except Exception as error:  # onnx and protobuf raise their own types
        raise UsageError(f"{model} cannot be read as an ONNX model: {error}") from error
    sources = frozenset(chosen.enums["TacticSource"])
    allowance = Allowance(precisions=precisions, quantized=frozenset(graph.types), sources=sources)
    outputs = frozenset(graph.outputs)
    rows: dict[Row, None] = {}
    for layer in partition(Fusion(graph, outputs).layers(), chosen.myelin, outputs):
        found = _inner(layer, graph, allowance) if layer.parts else _outer(layer, graph, allowance)
        rows.update(dict.fromkeys(found))
    return tuple(rows)


def _outer(layer: Layer, graph: Graph, allowance: Allowance) -> Iterator[Row]:
    for candidate in candidates(Setting(layer=layer, types=graph.types), allowance):
        kernel = candidate.kernel
        tactic = f"0x{kernel.tactic:016x}"
        yield Row(layer=layer.name, kernel=kernel.name, tactic=tactic, precision=candidate.precision)


def _inner(region: Layer, graph: Graph, allowance: Allowance) -> Iterator[Row]:
    for foreign in Planner(allowance, Constraints()).plans(region, graph.types):
        for index, part in tuned(foreign.inners):
            op = foreign.op(index, part)
            for tactic in tactics(op, allowance):
                text = f"0x{tactic.hash:x}"
                yield Row(layer=op.name, kernel=tactic.kernel.name, tactic=text, precision=op.precision)
        for inner in foreign.inners:
            if inner.op is None:
                precision = foreign.precision(inner)
                kernel = inner.generated_kernel(foreign.setting, precision)
                yield Row(layer=inner.layers[-1].head.name, kernel=kernel, tactic="0x0", precision=precision)
