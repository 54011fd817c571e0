"""Writes the ONNX model that computes what the tactics of an engine compute.

Tensors stay FP32 in ONNX Runtime; where a layout is HALF or INT8 the values are really rounded to it. Weights are rounded
to the precision of their layer. A fault is a few nodes after the outputs of its layer, behind a switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.compiler import shapes
from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.lowering import lowered
from polygraphy_debug_ext.simulator.faults import RUN_EFFECTS, TENSOR_EFFECTS
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx
    from numpy.typing import NDArray

    from polygraphy_debug_ext.simulator.compiler.records import Choice, Engine, Tensor
    from polygraphy_debug_ext.simulator.faults import Fault
else:
    onnx = LazyModule("onnx")

MS_DOMAIN = "com.microsoft"
FLOAT, HALF, BRAIN, BOOL = (DTYPES[name].onnx for name in ("FLOAT", "HALF", "BF16", "BOOL"))
INT8_MAX = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run: `outputs` maps a binding to its ONNX tensor, `switches` a fault to the input that turns it on."""

    model: bytes
    inputs: dict[str, str]
    outputs: dict[str, str]
    switches: dict[Fault, str]
    crashes: tuple[Fault, ...]


def rewrite(engine: Engine, profile: int, faults: Sequence[Fault]) -> Program:
    """The program of one profile of an engine, with the faults that sit in its kernels."""
    return _Rewriter(engine, profile, faults).program()


class _Rewriter:
    def __init__(self, engine: Engine, profile: int, faults: Sequence[Fault]) -> None:
        self._engine = engine
        self._choices = [layer for choice in engine.profiles[profile] for layer in choice.layers]
        self._suffix = f" [profile {profile}]" if profile else ""
        self._faults = [fault for fault in faults if fault.effect in RUN_EFFECTS]
        self._source = onnx.load_from_string(engine.model)
        self._nodes = {node.name: node for node in self._source.graph.node}
        self._weights = {tensor.name: tensor for tensor in self._source.graph.initializer}
        self._types = shapes.infer(self._source)
        self._graph = onnx.GraphProto(name="engine")
        self._graph.initializer.extend(self._source.graph.initializer)
        # The ONNX tensor that holds each tensor of the engine.
        self._held: dict[str, str] = {}
        self._switches: dict[Fault, str] = {}
        self._crashes: list[Fault] = []
        self._count = 0

    def program(self) -> Program:
        inputs = {
            binding.name: self._input(binding.name, binding.dtype)
            for binding in self._engine.bindings
            if binding.is_input
        }
        for choice in self._choices:
            if choice.nodes:
                self._layer(choice)
            else:
                self._reformat(choice)
        outputs = {
            binding.name: self._output(binding.name, binding.dtype)
            for binding in self._engine.bindings
            if not binding.is_input
        }
        model = onnx.ModelProto(ir_version=self._source.ir_version)
        model.opset_import.extend(entry for entry in self._source.opset_import if entry.domain != MS_DOMAIN)
        model.opset_import.append(onnx.helper.make_opsetid(MS_DOMAIN, 1))
        model.graph.CopyFrom(self._graph)
        return Program(
            model=lowered(model).SerializeToString(),
            inputs=inputs,
            outputs=outputs,
            switches=self._switches,
            crashes=tuple(dict.fromkeys(self._crashes)),
        )

    def _elem_type(self, value: str) -> int:
        known = self._types.get(value)
        return known.elem_type if known is not None else FLOAT

    def _input(self, name: str, dtype: str) -> str:
        """Declare an input with the type of its binding; the network reads it in its own type, under its own name."""
        native, wanted = self._elem_type(name), DTYPES[dtype].onnx
        rank = self._types[name].shape
        fed = name if native == wanted else self._fresh(name)
        dims = None if rank is None else [None] * len(rank)
        self._graph.input.append(onnx.helper.make_tensor_value_info(fed, wanted, dims))
        if fed != name:
            self._add("Cast", [fed], name, to=native)
        self._held[name + self._suffix] = name
        return fed

    def _output(self, name: str, dtype: str) -> str:
        native, wanted = self._elem_type(name), DTYPES[dtype].onnx
        result = self._held[name + self._suffix]
        # A tensor can be an output once only, and an input cannot be one: a cast or a copy makes it distinct.
        result = (
            self._add("Identity", [result]) if native == wanted else self._add("Cast", [result], to=wanted)
        )
        self._graph.output.append(onnx.helper.make_tensor_value_info(result, wanted, None))
        return result

    def _reformat(self, choice: Choice) -> None:
        source, target = choice.inputs[0], choice.outputs[0]
        self._held[target.name] = self._left_by(choice, self._held[source.name], target)

    def _layer(self, choice: Choice) -> None:
        renamed = {tensor.value: self._held[tensor.name] for tensor in choice.inputs}
        for name in choice.nodes:
            node = onnx.NodeProto()
            node.CopyFrom(self._nodes[name])
            # The builder reads the scales of a resize as they are: rounded, they would ask for another size.
            node.input[:] = [
                renamed.get(value) or (value if node.op_type == "Resize" else self._weight(value, choice))
                for value in node.input
            ]
            self._graph.node.append(node)
        for tensor in choice.outputs:
            self._held[tensor.name] = self._left_by(choice, tensor.value, tensor)

    def _left_by(self, choice: Choice, held: str, tensor: Tensor) -> str:
        """What the kernel of a layer leaves in an output, given the right values: with its faults, and rounded."""
        elem_type = self._elem_type(tensor.value)
        for fault in self._faults:
            if not fault.matches(choice.kernel, *choice.names):
                continue
            if fault.effect not in TENSOR_EFFECTS:
                self._crashes.append(fault)
            elif elem_type in {FLOAT, HALF, BRAIN}:
                # ONNX Runtime computes BF16 in FP32.
                held = self._faulty(held, fault, FLOAT if elem_type == BRAIN else elem_type)
        return self._rounded(held, tensor)

    def _rounded(self, held: str, tensor: Tensor) -> str:
        """The values as the layout of the tensor can hold them."""
        native = self._elem_type(tensor.value)
        if native == BRAIN:
            return self._add("Cast", [held], to=BRAIN)
        if native != FLOAT:
            return held
        if tensor.layout.dtype == "BF16":
            return self._add("Cast", [self._add("Cast", [held], to=BRAIN)], to=FLOAT)
        if tensor.layout.dtype == "HALF":
            half = self._add("Cast", [held], to=HALF)
            return self._add("Cast", [half], to=FLOAT)
        if tensor.layout.dtype == "INT8":
            scale = self._constant(np.float32(self._engine.scales[tensor.value]))
            zero = self._constant(np.int8(0))
            quantized = self._add("QuantizeLinear", [held, scale, zero], domain=MS_DOMAIN)
            return self._add("DequantizeLinear", [quantized, scale, zero], domain=MS_DOMAIN)
        return held

    def _weight(self, name: str, choice: Choice) -> str:
        """A constant in the precision of its layer; anything else keeps its name."""
        tensor = self._weights.get(name)
        if tensor is None or choice.precision == "FLOAT" or tensor.data_type != FLOAT:
            return name
        values = onnx.numpy_helper.to_array(tensor)
        if choice.precision == "HALF":
            with np.errstate(over="ignore"):
                return self._constant(values.astype(np.float16).astype(np.float32))
        if choice.precision == "BF16":
            return self._add("Cast", [self._add("Cast", [name], to=BRAIN)], to=FLOAT)
        return self._constant(_quantized(values)) if values.ndim > 1 else name

    def _faulty(self, held: str, fault: Fault, elem_type: int) -> str:
        """The values that a faulty kernel leaves behind, if its switch is on."""
        dtype = onnx.helper.tensor_dtype_to_np_dtype(elem_type)
        if fault.effect == "offset":
            wrong = self._shifted(held, fault, dtype)
        else:
            wrong = self._constant(np.asarray(np.nan if fault.effect == "nan" else 0.0, dtype))
        return self._add("Where", [self._switch(fault), wrong, held])

    def _shifted(self, held: str, fault: Fault, dtype: np.dtype[np.generic]) -> str:
        """Raise the lower values only: what follows may well undo a shift of all values (softmax, normalization)."""
        peak = self._add("ReduceMax", [self._add("Abs", [held])], keepdims=0)
        margin = self._add("Mul", [peak, self._constant(np.asarray(1e-3, dtype))])
        threshold = self._add("Add", [self._add("ReduceMean", [held], keepdims=0), margin])
        if fault.value is None:
            step = self._add("Max", [peak, self._constant(np.asarray(1.0, dtype))])
        else:
            step = self._constant(np.asarray(fault.value, dtype))
        return self._add(
            "Where", [self._add("Greater", [held, threshold]), held, self._add("Add", [held, step])]
        )

    def _switch(self, fault: Fault) -> str:
        if fault not in self._switches:
            name = self._fresh("fault")
            self._switches[fault] = name
            self._graph.input.append(onnx.helper.make_tensor_value_info(name, BOOL, []))
        return self._switches[fault]

    def _constant(self, value: NDArray[np.generic] | np.generic) -> str:
        name = self._fresh("constant")
        self._graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def _add(self, op: str, inputs: list[str], output: str | None = None, **attributes: object) -> str:
        name = output or self._fresh(inputs[0])
        self._graph.node.append(onnx.helper.make_node(op, inputs, [name], name=self._fresh(op), **attributes))
        return name

    def _fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem.partition('__sim')[0]}__sim{self._count}"


def _quantized(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """Weights as INT8 holds them, with one scale for each slice along the first axis."""
    floats = np.asarray(values, np.float32)
    peaks = np.abs(floats).max(axis=tuple(range(1, floats.ndim)), keepdims=True)
    scales = np.where(peaks > 0, peaks / INT8_MAX, 1.0).astype(np.float32)
    return np.asarray(np.clip(np.rint(floats / scales), -INT8_MAX, INT8_MAX) * scales, np.float32)
