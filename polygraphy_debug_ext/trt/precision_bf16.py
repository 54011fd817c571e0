"""Makes BF16 of what the converter made FP16: where casts belong does not depend on which of the two it is, the numbers do.

The converter knows FP16 only. What it did to the weights is undone: they are rounded to BF16 from what they were in FP32.
ONNX allows BF16 for many ops (Conv, pooling, Resize) from opset 22 at the earliest, and for some never; TensorRT's parser does not
look at the opset for it. So the network is checked while it is FP16, and its opset stays: a conversion of the opset would change what
is built, for the sake of a checker that nobody runs on the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import onnx

from polygraphy_debug_ext.trt.precision_graph import graphs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

_FLOAT: Final = onnx.TensorProto.FLOAT
_HALF: Final = onnx.TensorProto.FLOAT16
_BRAIN: Final = onnx.TensorProto.BFLOAT16
#: What parser or builder of TensorRT-RTX 1.7 refuse in BF16 and take in FP32, each tried alone. TensorRT has the same parser.
REFUSED: Final = frozenset(
    {
        "Celu",
        "ConvTranspose",
        "GRU",
        "GlobalLpPool",
        "HardSwish",
        "LpNormalization",
        "LpPool",
        "MeanVarianceNormalization",
        "Mish",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Shrink",
    }
)
#: The largest finite value.
LARGEST: Final = 3.3895313892515355e38
#: Attributes that say a type.
_TYPE_ATTRIBUTES: Final = frozenset({"to", "dtype"})
#: The bits of an FP32 number but for its sign; infinity; how many bits BF16 lacks; and numbers of BF16.
_SIZE: Final = np.uint32(0x7FFFFFFF)
_INFINITY: Final = np.uint32(0x7F800000)
_GONE: Final = np.uint32(16)
_LARGEST_BITS: Final = np.uint32(0x7F7F)
_NAN_BITS: Final = np.uint32(0x7FC0)
_TAG: Final = "polygraphy_debug_ext/"


def to_bfloat16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Return the bits of values rounded to BF16 (to nearest, ties to even), of the same shape.

    Finite values stay finite: beyond the largest of BF16, 3.39e38, they become that one. Masks of attention often hold the lowest
    value of FP32, and a row of -inf makes NaN of a softmax. Infinities and NaN stay what they are.
    """
    bits: NDArray[np.uint32] = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    size = bits & _SIZE
    # Add half a unit of the last place that stays, less one if that place is even. Without the sign bit it cannot overflow.
    rounded = (size + np.uint32(0x7FFF) + ((size >> _GONE) & np.uint32(1))) >> _GONE
    rounded = np.where(size < _INFINITY, np.minimum(rounded, _LARGEST_BITS), rounded)
    # A NaN whose payload is in the bits that go would become something else.
    rounded = np.where(size > _INFINITY, _NAN_BITS, rounded)
    signed: NDArray[np.uint32] = rounded | ((bits & ~_SIZE) >> _GONE)
    return signed.astype(np.uint16).reshape(values.shape)


def remember(model: Any) -> dict[str, bytes]:  # noqa: ANN401 - onnx has no types
    """Round all FP32 tensors of a network to BF16, before the converter rounds them; the tensors are marked, not changed.

    Returns:
        The bytes of each in BF16 by the mark, which is the tensor's `doc_string`: names may change, and constants have none.
    """
    found: dict[str, bytes] = {}
    for tensor in _tensors(model):
        if tensor.data_type == _FLOAT:
            tensor.doc_string = f"{_TAG}{len(found)}"
            found[tensor.doc_string] = to_bfloat16(onnx.numpy_helper.to_array(tensor)).tobytes()
    return found


def retype(model: Any, remembered: Mapping[str, bytes]) -> None:  # noqa: ANN401
    """Turn FP16 into BF16 in a network that had neither before it was converted."""
    for tensor in _tensors(model):
        if tensor.data_type == _HALF:
            tensor.data_type = _BRAIN
            tensor.ClearField("int32_data")
            tensor.raw_data = remembered[tensor.doc_string]
        if tensor.doc_string.startswith(_TAG):
            tensor.ClearField("doc_string")
    for graph in graphs(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for kind in (value.type.tensor_type, value.type.sequence_type.elem_type.tensor_type):
                if kind.elem_type == _HALF:
                    kind.elem_type = _BRAIN
        for node in graph.node:
            _retype_node(node)


def _retype_node(node: Any) -> None:  # noqa: ANN401
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i == _HALF:
            attribute.i = _BRAIN
            # Layers show it.
            node.name = node.name.replace("_cast_to_fp16_node", "_cast_to_bf16_node")


def _tensors(model: Any) -> Iterator[Any]:  # noqa: ANN401
    for graph in graphs(model.graph):
        yield from graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield attribute.t
                yield from attribute.tensors
