"""Data types by the names of TensorRT's `DataType`, and what they are in ONNX, in NumPy and in the build log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dtype:
    """One data type: `onnx` is the element type of a TensorProto, `text` the word of the log."""

    name: str
    onnx: int
    numpy: str
    size: int
    text: str
    long_text: str


_ROWS = (
    ("FLOAT", 1, "float32", 4, "Float", "FP32"),
    ("HALF", 10, "float16", 2, "Half", "FP16"),
    # NumPy has none: inputs and outputs cannot have it.
    ("BF16", 16, "", 2, "BFloat16", "BF16"),
    ("INT8", 3, "int8", 1, "Int8", "Int8"),
    ("INT32", 6, "int32", 4, "Int32", "INT32"),
    ("INT64", 7, "int64", 8, "Int64", "INT64"),
    ("BOOL", 9, "bool", 1, "Bool", "BOOL"),
    ("UINT8", 2, "uint8", 1, "UInt8", "UINT8"),
)
DTYPES = {
    row[0]: Dtype(name=row[0], onnx=row[1], numpy=row[2], size=row[3], text=row[4], long_text=row[5])
    for row in _ROWS
}
_BY_ONNX = {dtype.onnx: dtype.name for dtype in DTYPES.values()}
# TensorRT has no type for these: tensors inside the network are treated as the nearest one.
_NEAREST = {11: "FLOAT", 5: "INT32", 4: "INT32", 12: "INT32", 13: "INT64"}
# The floats of 16 bits, and all floats.
HALVES = ("HALF", "BF16")
FLOATS = ("FLOAT", *HALVES)


def from_onnx(elem_type: int) -> str:
    """The data type of a tensor inside the network."""
    return _BY_ONNX.get(elem_type) or _NEAREST.get(elem_type, "FLOAT")


def of_binding(elem_type: int, available: frozenset[str]) -> str | None:
    """The data type of a network input or output, or None if there is none; INT64 falls back to INT32."""
    name = _BY_ONNX.get(elem_type)
    if name == "INT64" and name not in available:
        return "INT32"
    return name if name in available and DTYPES[name].numpy else None
