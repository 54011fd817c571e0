"""What the layers of a network show of their ONNX nodes, by the names of TensorRT's attributes."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Dims, DimsHW

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.bindings.layers import ILayer

SPATIAL = 2
_ACTIVATIONS = {
    "Relu": "RELU", "Sigmoid": "SIGMOID", "Tanh": "TANH", "LeakyRelu": "LEAKY_RELU", "Elu": "ELU", "Selu": "SELU",
    "Clip": "CLIP", "HardSigmoid": "HARD_SIGMOID", "Softplus": "SOFTPLUS", "Softsign": "SOFTSIGN",
    "ThresholdedRelu": "THRESHOLDED_RELU", "Gelu": "GELU_ERF",
}  # fmt: skip
_ELEMENTWISE = {
    "Add": "SUM", "Sub": "SUB", "Mul": "PROD", "Div": "DIV", "Pow": "POW", "Max": "MAX", "Min": "MIN", "And": "AND",
    "Or": "OR", "Xor": "XOR", "Equal": "EQUAL", "Greater": "GREATER", "Less": "LESS",
}  # fmt: skip
_REDUCE = {
    "ReduceMean": "AVG",
    "ReduceSum": "SUM",
    "ReduceMax": "MAX",
    "ReduceMin": "MIN",
    "ReduceProd": "PROD",
}


def _enum(layer: ILayer, name: str, member: str | None) -> BoundEnum | None:
    return (
        layer._api.enum(name, member)
        if member is not None and layer._api.personality.has(name, member)
        else None
    )


def _weights(layer: ILayer, index: int) -> object:
    """A constant input as an array, None if there is none."""
    graph, inputs = layer._network._graph_or_raise(), layer._node.proto.input
    if index < len(inputs) and inputs[index] in graph.constants:
        return graph.constant(inputs[index])
    return None


def _kernel_size(layer: ILayer) -> tuple[int, ...]:
    weights = layer._network._graph_or_raise().types.get(layer._node.proto.input[1])
    size = weights.shape[SPATIAL:] if weights is not None and weights.shape is not None else ()
    return layer._node.ints("kernel_shape", size)


def _rank(layer: ILayer) -> int:
    known = layer._network._graph_or_raise().types.get(layer._node.proto.input[0])
    return len(known.shape) - SPATIAL if known is not None and known.shape is not None else SPATIAL


def _pads(layer: ILayer) -> tuple[int, ...]:
    return layer._node.ints("pads", (0,) * (2 * _rank(layer)))


def _ones(name: str) -> Callable[[ILayer], tuple[int, ...]]:
    return lambda layer: layer._node.ints(name, (1,) * _rank(layer))


def _axis(layer: ILayer) -> int:
    axis = layer._node.attribute("axis", 0)
    return axis if isinstance(axis, int) else 0


def _mask(layer: ILayer) -> int:
    """Axes as a mask; a negative axis counts from the end."""
    rank = _rank(layer) + SPATIAL
    axes = layer._node.ints("axes") or ((_axis(layer),) if layer._node.attribute("axis") is not None else ())
    return sum(1 << (axis % rank) for axis in axes) if rank else 0


def _output_maps(layer: ILayer) -> int:
    kernel = layer._network._graph_or_raise().types.get(layer._node.proto.input[1])
    return kernel.shape[0] if kernel is not None and kernel.shape else -1


def _dims(compute: Callable[[ILayer], tuple[int, ...]]) -> Callable[[ILayer], object]:
    return lambda layer: layer._api.new(Dims, compute(layer))


def _hw(compute: Callable[[ILayer], tuple[int, ...]]) -> Callable[[ILayer], object]:
    return lambda layer: layer._api.new(DimsHW, compute(layer))


_WINDOW: dict[str, Callable[[ILayer], object]] = {
    "stride_nd": _dims(_ones("strides")),
    "stride": _hw(_ones("strides")),
    "padding_nd": _dims(lambda layer: _pads(layer)[: _rank(layer)]),
    "padding": _hw(lambda layer: _pads(layer)[: _rank(layer)]),
    "pre_padding": _dims(lambda layer: _pads(layer)[: _rank(layer)]),
    "post_padding": _dims(lambda layer: _pads(layer)[_rank(layer) :]),
    "padding_mode": lambda layer: _enum(layer, "PaddingMode", "EXPLICIT_ROUND_DOWN"),
}
_CONVOLUTION: dict[str, Callable[[ILayer], object]] = {
    **_WINDOW,
    "kernel": lambda layer: _weights(layer, 1),
    "bias": lambda layer: _weights(layer, 2),
    "kernel_size_nd": _dims(_kernel_size),
    "kernel_size": _hw(_kernel_size),
    "dilation_nd": _dims(_ones("dilations")),
    "dilation": _hw(_ones("dilations")),
    "num_groups": lambda layer: layer._node.attribute("group", 1),
    "num_output_maps": _output_maps,
}
ATTRIBUTES: dict[str, dict[str, Callable[[ILayer], object]]] = {
    "IConvolutionLayer": _CONVOLUTION,
    "IDeconvolutionLayer": _CONVOLUTION,
    "IPoolingLayer": {
        **_WINDOW,
        "type": lambda layer: _enum(layer, "PoolingType", "MAX" if "Max" in layer._node.op else "AVERAGE"),
        "window_size_nd": _dims(lambda layer: layer._node.ints("kernel_shape", (1,) * _rank(layer))),
        "window_size": _hw(lambda layer: layer._node.ints("kernel_shape", (1,) * _rank(layer))),
        "average_count_excludes_padding": lambda layer: not layer._node.attribute("count_include_pad", 0),
    },
    "IActivationLayer": {
        "type": lambda layer: _enum(layer, "ActivationType", _ACTIVATIONS.get(layer._node.op)),
        "alpha": lambda layer: layer._node.attribute("alpha", 0.0),
        "beta": lambda layer: layer._node.attribute("beta", 0.0),
    },
    "IElementWiseLayer": {
        "op": lambda layer: _enum(layer, "ElementWiseOperation", _ELEMENTWISE.get(layer._node.op))
    },
    "IUnaryLayer": {
        "op": lambda layer: _enum(
            layer, "UnaryOperation", {"Reciprocal": "RECIP"}.get(layer._node.op, layer._node.op.upper())
        )
    },
    "IConcatenationLayer": {"axis": _axis},
    "IGatherLayer": {
        "axis": _axis,
        "mode": lambda layer: _enum(
            layer,
            "GatherMode",
            {"GatherElements": "ELEMENT", "GatherND": "ND"}.get(layer._node.op, "DEFAULT"),
        ),
    },
    "ISoftMaxLayer": {"axes": _mask},
    "IReduceLayer": {
        "op": lambda layer: _enum(layer, "ReduceOperation", _REDUCE.get(layer._node.op)),
        "axes": _mask,
        "keep_dims": lambda layer: bool(layer._node.attribute("keepdims", 1)),
    },
    "IMatrixMultiplyLayer": {
        "op0": lambda layer: _enum(
            layer, "MatrixOperation", "TRANSPOSE" if layer._node.attribute("transA") else "NONE"
        ),
        "op1": lambda layer: _enum(
            layer, "MatrixOperation", "TRANSPOSE" if layer._node.attribute("transB") else "NONE"
        ),
    },
    "IScaleLayer": {"mode": lambda layer: _enum(layer, "ScaleMode", "CHANNEL")},
    "ICastLayer": {"to_type": lambda layer: layer.get_output_type(0)},
    "IEinsumLayer": {"equation": lambda layer: layer._node.attribute("equation", "")},
    "INormalizationLayer": {"axes": _mask, "epsilon": lambda layer: layer._node.attribute("epsilon", 1e-5)},
    "IQuantizeLayer": {"axis": _axis},
    "IDequantizeLayer": {"axis": _axis},
    "IOneHotLayer": {"axis": _axis},
    "IScatterLayer": {
        "axis": _axis,
        "mode": lambda layer: _enum(
            layer, "ScatterMode", "ND" if layer._node.op == "ScatterND" else "ELEMENT"
        ),
    },
    "ICumulativeLayer": {
        "op": lambda layer: _enum(layer, "CumulativeOperation", "SUM"),
        "exclusive": lambda layer: bool(layer._node.attribute("exclusive", 0)),
        "reverse": lambda layer: bool(layer._node.attribute("reverse", 0)),
    },
}
