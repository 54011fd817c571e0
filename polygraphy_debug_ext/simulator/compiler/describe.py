"""The detailed layer information, field by field. Its schema differs between versions: that is data of the personality.

Inner layers of Myelin say less: a kernel by its name, short words for types, and no tactic id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.layouts import Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.simulator.compiler.records import Binding, Choice, Tensor

# Between the ONNX layers that one engine layer was made of.
SEPARATOR = "\x1e"
INNER_SEPARATOR = "\x1f"
UNKNOWN = "N/A due to dynamic shapes"
PARAMETERS = {
    "conv": "Convolution", "deconv": "Deconvolution", "gemm": "MatrixMultiply", "pool": "Pooling", "softmax": "SoftMax",
    "pointwise": "PointWise", "scale": "Scale", "shuffle": "Shuffle", "copy": "Reformat", "reformat": "Reformat",
    "concat": "Concatenation", "slice": "Slice", "gather": "Gather", "reduce": "Reduce", "norm": "Normalization",
    "resize": "Resize", "topk": "TopK", "cast": "Cast", "quantize": "Quantize", "dequantize": "Dequantize",
}  # fmt: skip


def describe(choice: Choice, schema: Mapping[str, object], *, in_context: bool) -> dict[str, object]:
    """The fields in the order in which TensorRT writes them; `in_context` tells what depends on shapes."""
    tensors = {
        side: [_tensor(tensor, choice, schema, in_context=in_context) for tensor in held]
        for side, held in (("Inputs", choice.inputs), ("Outputs", choice.outputs))
    }
    separator = INNER_SEPARATOR if choice.region else SEPARATOR
    end = {
        "StreamId": 0,
        "Metadata": separator.join(f"[ONNX Layer: {name}]" for name in choice.nodes),
    }
    start = {"Name": choice.name, "LayerType": choice.runner}
    if choice.region:
        constants: dict[str, object] = {"Constants": []} if schema["split"] else {}
        inputs, outputs = ({side: tensors[side]} for side in tensors)
        return {**start, **inputs, **constants, **outputs, "TacticName": choice.kernel, **end}
    origin = {"Origin": choice.origin} if choice.origin else {}
    return {
        **start,
        **tensors,
        "ParameterType": PARAMETERS.get(choice.kind, "ElementWise"),
        **origin,
        "TacticName": choice.kernel,
        "TacticValue": choice.tactic_text,
        **end,
    }


def _tensor(
    tensor: Tensor, choice: Choice, schema: Mapping[str, object], *, in_context: bool
) -> dict[str, object]:
    unknown = -1 in tensor.shape and not in_context
    where = {} if choice.region else {"Location": "Device"}
    fields = {"Name": tensor.name, **where, "Dimensions": list(tensor.shape)}
    if schema["split"]:
        layout = _strides(tensor) if not unknown else {}
        words = UNKNOWN if unknown else tensor.layout.short_text
        return {**fields, **layout, "Datatype": DTYPES[tensor.layout.dtype].text, "Format": words}
    if choice.region:
        return {**fields, "Format/Datatype": DTYPES[tensor.layout.dtype].text}
    return {**fields, "Format/Datatype": UNKNOWN if unknown else tensor.layout.long_text}


def _strides(tensor: Tensor) -> dict[str, object]:
    strides = tensor.layout.strides(tensor.optimum)
    order = sorted(range(len(strides)), key=lambda axis: (strides[axis], -axis))
    return {"Strides": list(strides), "StrideOrder": [order.index(axis) for axis in range(len(order))]}


def describe_io(binding: Binding) -> dict[str, object]:
    """An input or output of the engine, where the schema has more than its name."""
    words = f"{Layout(dtype=binding.dtype, format=binding.format).long_text} format (k{binding.format})"
    ranges = ("MinShape", "OptShape", "MaxShape")
    profiles: list[dict[str, object]] = [
        {**{key: list(shape) for key, shape in zip(ranges, shapes, strict=True)}, "Format": words}
        for shapes in binding.shapes
    ]
    return {
        "Name": binding.name,
        "IOMode": "Input" if binding.is_input else "Output",
        "DataType": DTYPES[binding.dtype].text,
        "Dimensions": list(binding.shape),
        "Location": "Host" if binding.is_shape else "Device",
        "IsShapeInferenceIO": binding.is_shape,
        "ProfileInfo": profiles or [{"Format": words}],
    }
