"""The detailed layer information of one engine layer, field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.compiler.records import Choice, Tensor

# Between the ONNX layers that one engine layer was made of.
SEPARATOR = "\x1e"
PARAMETERS = {
    "conv": "Convolution", "deconv": "Deconvolution", "gemm": "MatrixMultiply", "pool": "Pooling", "softmax": "SoftMax",
    "pointwise": "PointWise", "scale": "Scale", "shuffle": "Shuffle", "copy": "Reformat", "reformat": "Reformat",
    "concat": "Concatenation", "slice": "Slice", "gather": "Gather", "reduce": "Reduce", "norm": "Normalization",
    "resize": "Resize", "topk": "TopK", "cast": "Cast", "quantize": "Quantize", "dequantize": "Dequantize",
}  # fmt: skip


def describe(choice: Choice, *, in_context: bool) -> dict[str, object]:
    """The fields in the order in which TensorRT writes them; `in_context` tells what depends on shapes."""
    origin = {"Origin": choice.origin} if choice.origin else {}
    return {
        "Name": choice.name,
        "LayerType": choice.runner,
        "Inputs": [_tensor(tensor, in_context=in_context) for tensor in choice.inputs],
        "Outputs": [_tensor(tensor, in_context=in_context) for tensor in choice.outputs],
        "ParameterType": PARAMETERS.get(choice.kind, "ElementWise"),
        **origin,
        "TacticName": choice.kernel,
        "TacticValue": choice.tactic_text,
        "StreamId": 0,
        "Metadata": SEPARATOR.join(f"[ONNX Layer: {name}]" for name in choice.nodes),
    }


def _tensor(tensor: Tensor, *, in_context: bool) -> dict[str, object]:
    unknown = -1 in tensor.shape and not in_context
    return {
        "Name": tensor.name,
        "Location": "Device",
        "Dimensions": list(tensor.shape),
        "Format/Datatype": "N/A due to dynamic shapes" if unknown else tensor.layout.long_text,
    }
