"""The graph of a network: an ONNX model made plain.

Every node has a unique name, constants are initializers, nodes whose inputs are all constant are evaluated ("folded"),
and types and shapes are known as far as they can be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import shapes, sizing
from polygraphy_debug_ext.simulator.compiler.folding import fold
from polygraphy_debug_ext.simulator.compiler.lowering import BRAIN, CAST_OPSET, has_brain, lowered
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.simulator.errors import GraphError
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    import onnx
    from numpy.typing import NDArray

    from polygraphy_debug_ext.simulator.compiler.shapes import TensorType
else:
    onnx = LazyModule("onnx")

MIN_OPSET = 9
STANDARD_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation; `inputs` are the tensors that it reads, those of its subgraphs included."""

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    proto: onnx.NodeProto

    def attribute(self, name: str, default: object = None) -> object:
        """The value of an attribute."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                value = onnx.helper.get_attribute_value(attribute)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def ints(self, name: str, default: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The value of an attribute that is a list of whole numbers."""
        value = self.attribute(name)
        return tuple(value) if isinstance(value, list) else default


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A network: `model` is the plain model, `types` the type of every tensor that is known."""

    model: onnx.ModelProto
    nodes: tuple[Node, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: frozenset[str]
    types: Mapping[str, TensorType]
    shape_inputs: tuple[str, ...] = ()
    _values: dict[str, onnx.TensorProto] = field(default_factory=dict)

    def constant(self, name: str) -> NDArray[np.generic]:
        """The value of a constant."""
        if not self._values:
            self._values.update({tensor.name: tensor for tensor in self.model.graph.initializer})
        value: NDArray[np.generic] = onnx.numpy_helper.to_array(self._values[name])
        return value


def load(model: onnx.ModelProto) -> Graph:
    """Make a model plain; the model is changed in place."""
    model = _upgrade(model)
    _name_nodes(model)
    _check_operators(model)
    _constants_to_initializers(model)
    fold(model)
    _outputs_of_constants(model)
    _check_types(model)
    _check_runnable(model)
    constants = frozenset(tensor.name for tensor in model.graph.initializer)
    inputs = tuple(value.name for value in model.graph.input if value.name not in constants)
    nodes = tuple(_node(proto) for proto in model.graph.node)
    return Graph(
        model=model,
        nodes=nodes,
        inputs=inputs,
        outputs=tuple(value.name for value in model.graph.output),
        constants=constants,
        types=sizing.symbolic(model),
        shape_inputs=shapes.shape_inputs(nodes, inputs),
    )


def _node(proto: onnx.NodeProto) -> Node:
    inputs = list(dict.fromkeys([*(name for name in proto.input if name), *captured(proto)]))
    return Node(
        name=proto.name,
        op=proto.op_type,
        inputs=tuple(inputs),
        outputs=tuple(name for name in proto.output if name),
        proto=proto,
    )


def captured(proto: onnx.NodeProto) -> Iterator[str]:
    """The tensors of the outer graph that the subgraphs of a node read."""
    for attribute in proto.attribute:
        graphs = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else list(attribute.graphs)
        for graph in graphs:
            inner = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
            inner.update(name for node in graph.node for name in node.output)
            for node in graph.node:
                yield from (name for name in (*node.input, *captured(node)) if name and name not in inner)


def _upgrade(model: onnx.ModelProto) -> onnx.ModelProto:
    """Inline local functions, and lift models that are older than what the simulator writes."""
    if model.functions:
        from onnx import inliner  # noqa: PLC0415 - a part of onnx that few models need

        model = inliner.inline_local_functions(model)
    opset = next((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), 1)
    wanted = CAST_OPSET if has_brain(model) else MIN_OPSET
    if opset < wanted:
        try:
            model = onnx.version_converter.convert_version(model, wanted)
        except Exception as error:  # noqa: BLE001 - the converter raises anything
            raise GraphError(f"Opset {opset} cannot be converted to {wanted}: {error}") from None
    return model


def _name_nodes(model: onnx.ModelProto) -> None:
    taken: set[str] = set()
    for node in model.graph.node:
        name = node.name or f"node_of_{next((output for output in node.output if output), node.op_type)}"
        unique, count = name, 0
        while unique in taken:
            count += 1
            unique = f"{name}_{count}"
        taken.add(unique)
        node.name = unique


def _check_operators(model: onnx.ModelProto) -> None:
    """Refuse what not even ONNX knows, so that the node can be named; ONNX Runtime has its own operators."""
    for index, node in enumerate(model.graph.node):
        if node.domain in STANDARD_DOMAINS and not onnx.defs.has(node.op_type):
            raise GraphError(
                f"there is no importer for operator {node.op_type}",
                node=index,
                name=node.name,
                operator=node.op_type,
            )


def _check_types(model: onnx.ModelProto) -> None:
    """Refuse BF16 that meets another float in one node: ONNX Runtime cannot tell, for it both are FP32."""
    if not has_brain(model):
        return
    types = shapes.infer(model)
    for index, node in enumerate(model.graph.node):
        if node.domain not in STANDARD_DOMAINS:
            continue
        formals = onnx.defs.get_schema(node.op_type).inputs
        # The last one stands for all others where their number is open.
        named = [
            (formals[min(place, len(formals) - 1)].type_str, name) for place, name in enumerate(node.input)
        ]
        for kind in {kind for kind, _ in named}:
            met = {types[name].elem_type for each, name in named if each == kind and name in types}
            if BRAIN in met and len(met) > 1:
                raise GraphError(
                    "BFLOAT16 and another type meet in one node",
                    node=index,
                    name=node.name,
                    operator=node.op_type,
                )


def _check_runnable(model: onnx.ModelProto) -> None:
    """ONNX Runtime has the last word on what can be run."""
    try:
        open_session(lowered(model).SerializeToString())
    except Exception as error:  # noqa: BLE001 - ONNX Runtime raises its own types, which differ by version
        text = str(error).splitlines()[0]
        for index, node in enumerate(model.graph.node):
            if f":{node.op_type}(" in text or f" {node.op_type}(" in text or f"({node.name})" in text:
                raise GraphError(
                    f"ONNX Runtime cannot run it: {text}", node=index, name=node.name, operator=node.op_type
                ) from None
        raise GraphError(f"ONNX Runtime cannot run the model: {text}") from None


def _constants_to_initializers(model: onnx.ModelProto) -> None:
    kept = []
    for node in model.graph.node:
        value = (
            _constant_value(node) if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS else None
        )
        if value is None:
            kept.append(node)
        else:
            value.name = node.output[0]
            model.graph.initializer.append(value)
    if len(kept) < len(model.graph.node):
        del model.graph.node[:]
        model.graph.node.extend(kept)


def _constant_value(node: onnx.NodeProto) -> onnx.TensorProto | None:
    attribute = node.attribute[0]
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.name == "value":
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
        return tensor
    kinds = {"value_float": 1, "value_floats": 1, "value_int": 7, "value_ints": 7}
    if attribute.name not in kinds:
        return None
    values = value if isinstance(value, list) else [value]
    return onnx.helper.make_tensor(
        "", kinds[attribute.name], [len(values)] if isinstance(value, list) else [], values
    )


def _outputs_of_constants(model: onnx.ModelProto) -> None:
    """An output that is constant still needs a layer that makes it."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for output in model.graph.output:
        if output.name in constants:
            tensor = constants[output.name]
            tensor.name = f"{output.name}__constant"
            for node in model.graph.node:
                node.input[:] = [tensor.name if name == output.name else name for name in node.input]
            model.graph.node.append(
                onnx.helper.make_node("Identity", [tensor.name], [output.name], name=f"node_of_{output.name}")
            )
