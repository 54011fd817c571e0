"""Fusion: which nodes of the network become one layer of the engine, and what that layer is called.

Names follow TensorRT: `conv1 + relu1`, `PWN(a, PWN(b))`. A tensor that somebody wants to see (a marked output) is never
hidden inside a layer, and neither is one with several readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.dtypes import FLOATS, from_onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polygraphy_debug_ext.simulator.compiler.graph import Graph, Node

ACTIVATIONS = (
    "Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "Selu", "Clip", "HardSigmoid", "HardSwish", "Softplus", "Softsign",
    "ThresholdedRelu", "Gelu", "PRelu", "Mish", "Celu",
)  # fmt: skip
BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod")
UNARY = (
    "Exp", "Log", "Sqrt", "Reciprocal", "Abs", "Neg", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Asin", "Acos", "Atan",
    "Asinh", "Acosh", "Atanh", "Ceil", "Floor", "Erf", "Sign", "Round",
)  # fmt: skip
POINTWISE = (*ACTIVATIONS, *BINARY, *UNARY)
SHUFFLES = ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "DepthToSpace", "SpaceToDepth")
# The kind of layer that a node becomes if it is neither pointwise nor a shuffle; any other operator is "generic".
KINDS = {
    "Conv": "conv", "ConvTranspose": "deconv", "Gemm": "gemm", "MatMul": "gemm", "BatchNormalization": "scale",
    "MaxPool": "pool", "AveragePool": "pool", "GlobalAveragePool": "pool", "GlobalMaxPool": "pool",
    "Softmax": "softmax", "LogSoftmax": "softmax", "Concat": "concat", "Identity": "copy", "Dropout": "copy",
    "Cast": "cast", "Gather": "gather", "GatherElements": "gather", "GatherND": "gather", "Slice": "slice",
    "ReduceMean": "reduce", "ReduceSum": "reduce", "ReduceMax": "reduce", "ReduceMin": "reduce",
    "ReduceProd": "reduce", "ReduceL2": "reduce", "LayerNormalization": "norm", "InstanceNormalization": "norm",
    "GroupNormalization": "norm", "LpNormalization": "norm", "Resize": "resize", "Upsample": "resize",
    "TopK": "topk", "QuantizeLinear": "quantize", "DequantizeLinear": "dequantize",
}  # fmt: skip
HEADS = ("conv", "deconv", "gemm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Nodes that run as one: `inputs` are what it reads from other layers, `weights` the constants that it holds.

    A graph that Myelin compiles has the layers that it is made of as its `parts`.
    """

    name: str
    kind: str
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: tuple[str, ...]
    parts: tuple[Layer, ...] = ()

    @property
    def head(self) -> Node:
        """The node that gives the layer its character."""
        return self.nodes[0]


class Fusion:
    """Groups the nodes of one graph; `visible` are the tensors that must exist in the engine."""

    def __init__(self, graph: Graph, visible: frozenset[str]) -> None:
        self._graph = graph
        self._visible = visible
        self._position = {id(node): index for index, node in enumerate(graph.nodes)}
        self._readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)

    def layers(self) -> tuple[Layer, ...]:
        """The layers, in an order in which they can run."""
        live = self._live()
        taken: set[int] = set()
        groups: list[tuple[str, tuple[Node, ...]]] = []
        # The heads go first: a residual Add belongs to its convolution, not to the pointwise chain before it.
        for wanted in (self._heads, self._others):
            for node in self._graph.nodes:
                if id(node) not in live or id(node) in taken:
                    continue
                group = wanted(node, lambda other: id(other) not in taken)
                if group is not None:
                    groups.append(group)
                    taken.update(id(member) for member in group[1])
        groups.sort(key=lambda group: self._position[id(group[1][-1])])
        return tuple(self._layer(kind, nodes) for kind, nodes in groups)

    def _live(self) -> set[int]:
        """The nodes that something visible depends on."""
        needed, live = set(self._visible) | set(self._graph.outputs), set()
        for node in reversed(self._graph.nodes):
            if needed.intersection(node.outputs):
                live.add(id(node))
                needed.update(node.inputs)
        return live

    def _heads(self, node: Node, free: Callable[[Node], bool]) -> tuple[str, tuple[Node, ...]] | None:
        kind = KINDS.get(node.op)
        if kind not in HEADS or not self._is_float(node):
            return None
        nodes = [node]
        self._follow(nodes, free, lambda other, _: kind != "gemm" and other.op == "BatchNormalization")
        self._follow(
            nodes, free, lambda other, source: other.op == "Add" and self._can_add(node, other, source)
        )
        self._follow(nodes, free, lambda other, _: other.op in ACTIVATIONS and other.op != "PRelu")
        return kind, tuple(nodes)

    def _can_add(self, head: Node, add: Node, source: str) -> bool:
        """A bias, or for convolutions the other branch of a residual connection of the same shape."""
        other = next((name for name in add.inputs if name != source), source)
        if other in self._graph.constants:
            return True
        mine, its = self._graph.types.get(source), self._graph.types.get(other)
        same = mine is not None and its is not None and mine.shape == its.shape
        return head.op == "Conv" and other != source and same

    def _others(self, node: Node, free: Callable[[Node], bool]) -> tuple[str, tuple[Node, ...]]:
        nodes = [node]
        if node.op == "BatchNormalization":
            self._follow(nodes, free, lambda other, _: other.op in ACTIVATIONS)
            return "scale", tuple(nodes)
        if node.op in SHUFFLES:
            while self._follow(nodes, free, lambda other, _: other.op in SHUFFLES):
                pass
            return "shuffle", tuple(nodes)
        if node.op in POINTWISE and self._is_float(node):
            while self._follow(nodes, free, lambda other, _: other.op in POINTWISE and self._is_float(other)):
                pass
            return "pointwise", tuple(nodes)
        return KINDS.get(node.op, "generic"), tuple(nodes)

    def _follow(
        self, nodes: list[Node], free: Callable[[Node], bool], accept: Callable[[Node, str], bool]
    ) -> bool:
        """Append the only reader of the last node, if it is acceptable."""
        last = nodes[-1]
        if (
            len(last.outputs) != 1
            or last.outputs[0] in self._visible
            or last.outputs[0] in self._graph.outputs
        ):
            return False
        readers = self._readers.get(last.outputs[0], [])
        if len(readers) != 1 or not free(readers[0]) or not accept(readers[0], last.outputs[0]):
            return False
        nodes.append(readers[0])
        return True

    def _is_float(self, node: Node) -> bool:
        known = self._graph.types.get(node.outputs[0])
        return known is None or from_onnx(known.elem_type) in FLOATS

    def _layer(self, kind: str, nodes: tuple[Node, ...]) -> Layer:
        inner = {name for node in nodes for name in node.outputs}
        reads = list(dict.fromkeys(name for node in nodes for name in node.inputs if name not in inner))
        members = {id(node) for node in nodes}
        return Layer(
            name=_name(kind, nodes),
            kind=kind,
            nodes=nodes,
            inputs=tuple(name for name in reads if name not in self._graph.constants),
            outputs=tuple(name for name in self._outputs(nodes, members)),
            weights=tuple(name for name in reads if name in self._graph.constants),
        )

    def _outputs(self, nodes: tuple[Node, ...], members: set[int]) -> Iterator[str]:
        for node in nodes:
            for name in node.outputs:
                seen = name in self._visible or name in self._graph.outputs
                if seen or any(id(reader) not in members for reader in self._readers.get(name, [])):
                    yield name


def _name(kind: str, nodes: tuple[Node, ...]) -> str:
    if kind == "pointwise":
        return _pointwise_name([node.name for node in nodes])
    return " + ".join(node.name for node in nodes)


def _pointwise_name(names: list[str]) -> str:
    inner = f"PWN({names[-1]})"
    for name in reversed(names[:-1]):
        inner = f"PWN({name}, {inner})"
    return inner
