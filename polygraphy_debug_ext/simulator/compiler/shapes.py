"""Types and shapes of tensors. Inference works on a *skeleton*: the model without its large weights, which it does not need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

    from polygraphy_debug_ext.simulator.compiler.graph import Node
else:
    onnx = LazyModule("onnx")

LARGE = 1024
# Where an input says what shape, range or count the output has.
SHAPE_POSITIONS = {
    "Reshape": (1,), "Expand": (1,), "ConstantOfShape": (0,), "Tile": (1,), "Range": (0, 1, 2), "OneHot": (1,),
    "Slice": (1, 2, 4), "Pad": (1,), "TopK": (1,), "Resize": (3,), "Unsqueeze": (1,), "Squeeze": (1,),
}  # fmt: skip
PASSES_VALUES = (
    "Cast",
    "Gather",
    "Concat",
    "Unsqueeze",
    "Squeeze",
    "Slice",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Identity",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """Element type (of ONNX) and shape of a tensor: -1 is an unknown size, a shape of None an unknown rank."""

    elem_type: int
    shape: tuple[int, ...] | None


def infer(
    model: onnx.ModelProto,
    sizes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, TensorType]:
    """The types of all tensors, given shapes for some inputs, and values for inputs that hold shapes."""
    skeleton = skeleton_of(model, sizes or {}, values or {})
    try:
        inferred = onnx.shape_inference.infer_shapes(skeleton, data_prop=True)
    except Exception:  # noqa: BLE001 - inference fails for operators that only ONNX Runtime knows: less is known then
        inferred = skeleton
    graph = inferred.graph
    types = {
        tensor.name: TensorType(elem_type=tensor.data_type, shape=tuple(tensor.dims))
        for tensor in model.graph.initializer
    }
    for value in (*graph.value_info, *graph.output, *graph.input):
        if value.type.WhichOneof("value") == "tensor_type":
            types[value.name] = _type_of(value.type.tensor_type)
    for value in model.graph.output:
        declared = _type_of(value.type.tensor_type)
        if not sizes and (value.name not in types or types[value.name].shape is None):
            types[value.name] = declared
    for value in model.graph.input:
        given = (sizes or {}).get(value.name)
        if given is not None:
            types[value.name] = TensorType(elem_type=value.type.tensor_type.elem_type, shape=tuple(given))
    return types


def _type_of(proto: onnx.TypeProto.Tensor) -> TensorType:
    if not proto.HasField("shape"):
        return TensorType(elem_type=proto.elem_type, shape=None)
    dims = tuple(dim.dim_value if dim.HasField("dim_value") else -1 for dim in proto.shape.dim)
    return TensorType(elem_type=proto.elem_type, shape=dims)


def skeleton_of(
    model: onnx.ModelProto, sizes: Mapping[str, Sequence[int]], values: Mapping[str, Sequence[int]]
) -> onnx.ModelProto:
    """A model with the same types and shapes, without large weights, and with shapes and values of inputs put in."""
    source = model.graph
    graph = onnx.GraphProto(name=source.name or "graph")
    graph.node.extend(source.node)
    small = {
        tensor.name: tensor
        for tensor in source.initializer
        if int(np.prod(tensor.dims, dtype=np.int64)) <= LARGE
    }
    graph.initializer.extend(small.values())
    for value in source.input:
        if value.name in small:
            continue
        given = values.get(value.name)
        if given is not None:
            array = np.asarray(given, onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
            dims = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
            graph.initializer.append(onnx.numpy_helper.from_array(array.reshape(dims or ()), value.name))
            continue
        copy = graph.input.add()
        copy.CopyFrom(value)
        if value.name in sizes:
            _set_shape(copy, sizes[value.name])
    known = {value.name for value in graph.input} | set(small)
    for tensor in source.initializer:
        if tensor.name not in known:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    # The shapes of the outputs follow from those of the inputs: what the file says may be symbolic.
    for value in source.output:
        output = graph.output.add(name=value.name)
        if value.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.elem_type = value.type.tensor_type.elem_type
    skeleton = onnx.ModelProto(ir_version=model.ir_version)
    skeleton.opset_import.extend(model.opset_import)
    skeleton.graph.CopyFrom(graph)
    return skeleton


def _set_shape(value: onnx.ValueInfoProto, sizes: Sequence[int]) -> None:
    del value.type.tensor_type.shape.dim[:]
    for size in sizes:
        value.type.tensor_type.shape.dim.add(dim_value=int(size))


def shape_inputs(nodes: Sequence[Node], inputs: Sequence[str]) -> tuple[str, ...]:
    """The inputs of the network whose values say how large other tensors are."""
    wanted: set[str] = set()
    for node in reversed(nodes):
        positions = SHAPE_POSITIONS.get(node.op, ())
        wanted.update(node.proto.input[index] for index in positions if index < len(node.proto.input))
        if node.op in PASSES_VALUES and wanted.intersection(node.outputs):
            wanted.update(node.inputs)
    return tuple(name for name in inputs if name in wanted)
