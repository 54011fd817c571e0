"""BF16 for ONNX Runtime, which has no kernels for it on a CPU: it is computed in FP32, and rounded where it is cast.

What else is rounded (the outputs of layers), says whoever writes the model, with casts to BF16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx
    from numpy.typing import NDArray
else:
    onnx = LazyModule("onnx")

FLOAT, BRAIN = 1, 16
# From here on ONNX can cast to BF16.
CAST_OPSET = 13
SHIFT = np.uint32(16)


def has_brain(model: onnx.ModelProto) -> bool:
    """Whether a model has BF16 anywhere."""
    return any(
        any(tensor.data_type == BRAIN for tensor in _tensors(graph))
        or any(value.type.tensor_type.elem_type == BRAIN for value in (*graph.input, *graph.output))
        or any(_says_brain(attribute) for node in graph.node for attribute in node.attribute)
        for graph in _graphs(model.graph)
    )


def can_cast(model: onnx.ModelProto) -> bool:
    """Whether casts to BF16 can be written into the model."""
    return any(not entry.domain and entry.version >= CAST_OPSET for entry in model.opset_import)


def lowered(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with FP32 in place of BF16; itself if it has none."""
    if not has_brain(model):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    # Inner graphs first: nodes are copied with them.
    for graph in reversed(list(_graphs(copy.graph))):
        for tensor in _tensors(graph):
            if tensor.data_type == BRAIN:
                _widen(tensor)
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.type.tensor_type.elem_type == BRAIN:
                value.type.tensor_type.elem_type = FLOAT
        nodes = [each for node in graph.node for each in _nodes(node)]
        del graph.node[:]
        graph.node.extend(nodes)
    return copy


def brain_tensor(values: NDArray[np.generic], name: str) -> onnx.TensorProto:
    """A tensor of BF16 from values that BF16 can hold."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) >> SHIFT
    return onnx.TensorProto(
        name=name, data_type=BRAIN, dims=values.shape, raw_data=bits.astype(np.uint16).tobytes()
    )


def _nodes(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """A cast to BF16 becomes two, so that it rounds."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    kinds = [attribute for attribute in copy.attribute if _says_brain(attribute)]
    if copy.op_type == "Cast" and kinds:
        copy.output[0] = f"{node.output[0]}__bf16"
        yield copy
        yield onnx.helper.make_node(
            "Cast", [copy.output[0]], [node.output[0]], name=f"{node.name}__widened", to=FLOAT
        )
        return
    for attribute in kinds:
        attribute.i = FLOAT
    yield copy


def _says_brain(attribute: onnx.AttributeProto) -> bool:
    return attribute.name in {"to", "dtype"} and attribute.i == BRAIN


def _widen(tensor: onnx.TensorProto) -> None:
    if tensor.raw_data:
        bits = np.frombuffer(tensor.raw_data, np.uint16)
    else:
        bits = np.array(tensor.int32_data, np.int32).astype(np.uint16)
    tensor.raw_data = (bits.astype(np.uint32) << SHIFT).tobytes()
    tensor.ClearField("int32_data")
    tensor.data_type = FLOAT


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
