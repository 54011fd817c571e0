"""Constant folding: what does not depend on the inputs of the network is computed once, by ONNX Runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.compiler import shapes
from polygraphy_debug_ext.simulator.compiler.lowering import BRAIN, brain_tensor, has_brain, lowered
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    import onnx

    from polygraphy_debug_ext.simulator.compiler.shapes import TensorType
else:
    onnx = LazyModule("onnx")

MAX_ROUNDS = 6
RANDOM = (
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)


def fold(model: onnx.ModelProto) -> None:
    """Replace constant nodes by initializers, in rounds: each may make more shapes known, and so more nodes constant."""
    for _ in range(MAX_ROUNDS):
        constant = _constant_nodes(model)
        static = (
            _static_shapes(model)
            if any(node.op_type in {"Shape", "Size"} for node in model.graph.node)
            else {}
        )
        if not constant and not static:
            return
        values = {**static, **(_evaluate(model, constant) if constant else {})}
        brains = _brains(model)
        # Nodes are told apart by what they produce: the wrappers of protobuf have no identity.
        removed = {tuple(node.output) for node in constant}
        kept = [
            node
            for node in model.graph.node
            if tuple(node.output) not in removed and node.output[0] not in static
        ]
        del model.graph.node[:]
        model.graph.node.extend(kept)
        model.graph.initializer.extend(
            brain_tensor(value, name) if name in brains else onnx.numpy_helper.from_array(value, name)
            for name, value in values.items()
        )


def _constant_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Nodes whose inputs are all constant, in order."""
    known = {tensor.name for tensor in model.graph.initializer}
    found = []
    for node in model.graph.node:
        inputs = [name for name in node.input if name]
        has_subgraph = any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute)
        foldable = inputs and not has_subgraph and node.op_type not in RANDOM
        if foldable and all(name in known for name in inputs):
            found.append(node)
            known.update(node.output)
    return found


def _brains(model: onnx.ModelProto) -> frozenset[str]:
    """The tensors that are BF16, which ONNX Runtime computes in FP32."""
    types = shapes.infer(model) if has_brain(model) else {}
    return frozenset(name for name, known in types.items() if known.elem_type == BRAIN)


def _static_shapes(model: onnx.ModelProto) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """The results of Shape and Size nodes whose input has a known shape."""
    types = shapes.infer(model)
    found = {}
    for node in model.graph.node:
        known = types.get(node.input[0]) if node.op_type in {"Shape", "Size"} else None
        if known is None or known.shape is None or -1 in known.shape:
            continue
        found[node.output[0]] = _shape_value(node, known)
    return found


def _shape_value(node: onnx.NodeProto, known: TensorType) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    shape = known.shape or ()
    if node.op_type == "Size":
        return np.array(int(np.prod(shape)), np.int64)
    bounds = {attribute.name: attribute.i for attribute in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)


def _evaluate(
    model: onnx.ModelProto, nodes: list[onnx.NodeProto]
) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]]:
    """The outputs of constant nodes that something outside of them reads."""
    inside = {tuple(node.output) for node in nodes}
    produced = [name for node in nodes for name in node.output if name]
    read = {name for node in model.graph.node if tuple(node.output) not in inside for name in _reads(node)}
    read.update(value.name for value in model.graph.output)
    wanted = [name for name in produced if name in read] or produced[-1:]
    used = {name for node in nodes for name in node.input}
    graph = onnx.helper.make_graph(
        nodes,
        "constants",
        [],
        [onnx.ValueInfoProto(name=name) for name in wanted],
        [tensor for tensor in model.graph.initializer if tensor.name in used],
    )
    part = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    results = open_session(lowered(part).SerializeToString()).run(wanted, {})
    return dict(zip(wanted, (np.asarray(result) for result in results), strict=True))


def _reads(node: onnx.NodeProto) -> list[str]:
    names = list(node.input)
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            names.extend(name for inner in attribute.g.node for name in _reads(inner))
    return names
