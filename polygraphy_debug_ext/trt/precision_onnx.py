"""Converts an ONNX network to FP16 or BF16 for builders that take the types of a network as they are.

ONNX Runtime's converter does the conversion. What it leaves undone is done here: ops for which ONNX allows no FP16 are kept in
FP32, and so are their weights where a converted op shares them; casts in subgraphs and the order of nodes are mended; and
the result is checked. For BF16, which the converter does not know, the result is typed anew.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import onnx

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.trt import precision_bf16
from polygraphy_debug_ext.trt.precision_graph import (
    constants,
    graphs,
    inline_functions,
    mend,
    moving,
    name_nodes,
    say_fillings,
    split_shared,
    types,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The types of 16 bits that a network can be converted to.
Half: TypeAlias = Literal["FP16", "BF16"]

_FLOAT: Final = onnx.TensorProto.FLOAT
_HALF: Final = onnx.TensorProto.FLOAT16
_TYPED: Final = {_HALF: "FP16", onnx.TensorProto.BFLOAT16: "BF16"}
#: The largest finite value of FP16, and the smallest above 0: what lies outside becomes these.
LARGEST: Final = 65504.0
SMALLEST: Final = 5.96e-08
#: protobuf holds no more in memory; larger networks go through files.
PROTOBUF_LIMIT: Final = 2**31 - 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfRange:
    """A constant with values that the type cannot hold: `large` ones were clamped, `small` ones raised to the smallest above 0."""

    name: str
    large: int
    small: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A converted network.

    `kept` are the nodes by op type that stay in FP32; `moves` stay so as they only move data from FP32 inputs to FP32 outputs.
    """

    model: Any
    kept: Mapping[str, tuple[str, ...]]
    moves: tuple[str, ...]
    out_of_range: tuple[OutOfRange, ...]


def typed(model: Any) -> str | None:  # noqa: ANN401 - onnx has no types
    """Return the type of 16 bits (FP16 or BF16) that the network already has; None if it has none."""
    for graph in graphs(model.graph):
        found = [value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)]
        found += [tensor.data_type for _, tensor in constants(graph)]
        found += [
            attribute.i
            for node in graph.node
            if node.op_type == "Cast"
            for attribute in node.attribute
            if attribute.name == "to"
        ]
        for kind in found:
            if kind in _TYPED:
                return _TYPED[kind]
    return None


def convert(model: Any, half: Half = "FP16") -> Converted:  # noqa: ANN401
    """Convert a network to a type of 16 bits; its inputs and outputs keep their types. `model` itself is used up.

    Raises:
        UsageError: if it cannot be converted.
    """
    sound = _fault(model) is None
    model = _inferred(inline_functions(model))
    float16 = _converter(half)
    blocked = _blocked(model, float16, half)
    names = name_nodes(model.graph)
    say_fillings(model.graph)
    kept = _kept(model, blocked)
    moves = moving(model, blocked)
    split_shared(model.graph, blocked, moves)
    outside = {name: _outside(name, tensor, half) for name, tensor in _named_constants(model)}
    remembered = precision_bf16.remember(model) if half == "BF16" else {}
    try:
        model = float16.convert_float_to_float16(
            model,
            min_positive_val=SMALLEST,
            max_finite_val=LARGEST,
            keep_io_types=True,
            disable_shape_infer=True,
            op_block_list=sorted(blocked),
            node_block_list=sorted(moves),
        )
    except Exception as error:
        raise _unconvertible(str(error) or type(error).__name__, half) from error
    mend(model.graph, names)
    fault = _fault(model) if sound else None
    if fault is not None:
        raise _unconvertible(fault, half)
    halves = {name for name, tensor in _named_constants(model) if tensor.data_type == _HALF}
    if half == "BF16":
        precision_bf16.retype(model, remembered)
    return Converted(
        model=model,
        kept=kept,
        moves=tuple(sorted(moves)),
        out_of_range=tuple(
            each for name, each in outside.items() if name in halves and (each.large or each.small)
        ),
    )


def _unconvertible(reason: str, half: Half) -> UsageError:
    option = f"--{half.lower()}"
    return UsageError(
        f"{option}: the network cannot be converted to {half} ({reason.strip().splitlines()[0]})",
        "Convert it yourself, for example with ModelOpt (python -m modelopt.onnx.autocast --onnx_path MODEL "
        f"--keep_io_types --low_precision_type {half.lower()}), and leave {option} out.",
    )


def _converter(half: Half) -> Any:  # noqa: ANN401
    path = list(sys.path)
    try:
        from onnxruntime.transformers import float16  # noqa: PLC0415 - it takes its time, and few need it
    except ImportError as error:
        option = f"--{half.lower()}"
        raise UsageError(
            f"{option}: the converter of ONNX Runtime cannot be imported ({error})",
            f"Install a newer onnxruntime, or convert the network yourself and leave {option} out.",
        ) from error
    finally:
        # The package puts its own directory there.
        sys.path[:] = path
    return float16


def _blocked(model: Any, float16: Any, half: Half) -> frozenset[str]:  # noqa: ANN401
    """Return the op types to keep: those of the converter, those for which this opset has no FP16, those refused in BF16."""
    versions = {entry.domain: entry.version for entry in model.opset_import}
    # The converter knows that some inputs of these are always FP32.
    mixed = set(float16.ALWAYS_FLOAT_INPUTS)
    found = {
        node.op_type
        for graph in graphs(model.graph)
        for node in graph.node
        if node.op_type not in mixed and not _takes_half(node, versions, half)
    }
    refused = precision_bf16.REFUSED if half == "BF16" else frozenset()
    return frozenset(found) | frozenset(float16.DEFAULT_OP_BLOCK_LIST) | refused


def _takes_half(node: Any, versions: Mapping[str, int], half: Half) -> bool:  # noqa: ANN401
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        # A plugin: what it takes, only the builder knows.
        return True
    # Means and deviations of LayerNormalization are never FP16, which does not matter where nobody asks for them.
    count = len(node.output) if half == "BF16" else len(schema.outputs)
    asked = {formal.type_str for formal in (*schema.inputs, *schema.outputs[:count])}
    allowed = [
        set(constraint.allowed_type_strs)
        for constraint in schema.type_constraints
        if constraint.type_param_str in asked
    ]
    fixed = {formal.type_str for formal in (*schema.inputs, *schema.outputs)}
    return "tensor(float)" not in fixed and all(
        "tensor(float16)" in each for each in allowed if "tensor(float)" in each
    )


def _kept(model: Any, blocked: frozenset[str]) -> dict[str, tuple[str, ...]]:  # noqa: ANN401
    kinds = types(model)
    kept: defaultdict[str, list[str]] = defaultdict(list)
    for graph in graphs(model.graph):
        for node in graph.node:
            if node.op_type in blocked and any(
                kinds.get(name) == _FLOAT for name in (*node.input, *node.output)
            ):
                kept[node.op_type].append(node.name)
    return {op_type: tuple(names) for op_type, names in sorted(kept.items())}


def _named_constants(model: Any) -> list[tuple[str, Any]]:  # noqa: ANN401
    return [each for graph in graphs(model.graph) for each in constants(graph)]


def _outside(name: str, tensor: Any, half: Half) -> OutOfRange:  # noqa: ANN401
    if tensor.data_type != _FLOAT:
        return OutOfRange(name=name, large=0, small=0)
    size = np.abs(onnx.numpy_helper.to_array(tensor))
    if half == "BF16":
        # It has the range of FP32 but for the last half step.
        large = np.count_nonzero(np.isfinite(size) & (size > precision_bf16.LARGEST))
        return OutOfRange(name=name, large=int(large), small=0)
    return OutOfRange(
        name=name,
        large=int(np.count_nonzero(np.isfinite(size) & (size > LARGEST))),
        small=int(np.count_nonzero((size > 0) & (size < SMALLEST))),
    )


def _inferred(model: Any) -> Any:  # noqa: ANN401
    """Infer the types of all tensors: without them, nothing tells where a cast is needed."""
    if model.ByteSize() < PROTOBUF_LIMIT:
        return onnx.shape_inference.infer_shapes(model)
    with TemporaryDirectory() as directory:
        path, inferred = Path(directory) / "model.onnx", Path(directory) / "inferred.onnx"
        save(model, path)
        onnx.shape_inference.infer_shapes_path(str(path), str(inferred))
        return onnx.load(str(inferred))


def _fault(model: Any) -> str | None:  # noqa: ANN401
    """What ONNX finds wrong with a network."""
    if model.ByteSize() >= PROTOBUF_LIMIT:
        return None
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        return str(error) or type(error).__name__
    return None


def save(model: Any, path: Path) -> None:  # noqa: ANN401
    """Write a network; one that is too large for a file of its own, with its weights beside it."""
    large = model.ByteSize() >= PROTOBUF_LIMIT
    if large:
        onnx.save_model(model, str(path), save_as_external_data=True, location=f"{path.name}.data")
    else:
        onnx.save_model(model, str(path))
