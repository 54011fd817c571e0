"""Layers of a network as users see them: a class for each type, with the attributes that the ONNX node determines."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.attributes import ATTRIBUTES
from polygraphy_debug_ext.simulator.bindings.base import Api, Bound, Stored, View

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.bindings.network import INetworkDefinition, ITensor
    from polygraphy_debug_ext.simulator.compiler.graph import Node

# The layer type of each operator; where there are several, the first that the personality has.
TYPES = {
    "CONVOLUTION": "Conv", "DECONVOLUTION": "ConvTranspose", "LRN": "LRN", "SCALE": "BatchNormalization",
    "POOLING": "MaxPool AveragePool GlobalMaxPool GlobalAveragePool", "SOFTMAX": "Softmax LogSoftmax",
    "ACTIVATION": "Relu Sigmoid Tanh LeakyRelu Elu Selu Clip HardSigmoid HardSwish Softplus Softsign ThresholdedRelu Gelu "
                  "Celu Mish",
    "ELEMENTWISE": "Add Sub Mul Div Pow Max Min Mod And Or Xor Equal Greater Less GreaterOrEqual LessOrEqual",
    "UNARY": "Exp Log Sqrt Reciprocal Abs Neg Sin Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Ceil Floor Erf Not "
             "Sign Round IsNaN IsInf",
    "CONCATENATION": "Concat", "SQUEEZE": "Squeeze", "UNSQUEEZE": "Unsqueeze", "CUMULATIVE": "CumSum",
    "SHUFFLE": "Reshape Transpose Flatten Squeeze Unsqueeze DepthToSpace SpaceToDepth",
    "REDUCE": "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp",
    "TOPK": "TopK ArgMax ArgMin", "GATHER": "Gather GatherElements GatherND", "MATRIX_MULTIPLY": "MatMul Gemm",
    "IDENTITY": "Identity Dropout", "SLICE": "Slice Split Pad Tile Expand", "SHAPE": "Shape Size", "RESIZE": "Resize Upsample",
    "PARAMETRIC_RELU": "PRelu", "SELECT": "Where", "FILL": "ConstantOfShape Range RandomNormal RandomUniform",
    "QUANTIZE": "QuantizeLinear", "DEQUANTIZE": "DequantizeLinear", "SCATTER": "ScatterND ScatterElements Scatter",
    "EINSUM": "Einsum", "ONE_HOT": "OneHot", "NON_ZERO": "NonZero", "GRID_SAMPLE": "GridSample", "NMS": "NonMaxSuppression",
    "REVERSE_SEQUENCE": "ReverseSequence", "CAST": "Cast",
    "NORMALIZATION": "LayerNormalization InstanceNormalization GroupNormalization",
}  # fmt: skip
CLASSES = {
    "CONVOLUTION": "IConvolutionLayer", "DECONVOLUTION": "IDeconvolutionLayer", "LRN": "ILRNLayer", "SCALE": "IScaleLayer",
    "POOLING": "IPoolingLayer", "SOFTMAX": "ISoftMaxLayer", "ACTIVATION": "IActivationLayer",
    "ELEMENTWISE": "IElementWiseLayer", "UNARY": "IUnaryLayer", "CONCATENATION": "IConcatenationLayer",
    "SQUEEZE": "ISqueezeLayer", "UNSQUEEZE": "IUnsqueezeLayer", "CUMULATIVE": "ICumulativeLayer", "SHUFFLE": "IShuffleLayer",
    "REDUCE": "IReduceLayer", "TOPK": "ITopKLayer", "GATHER": "IGatherLayer", "MATRIX_MULTIPLY": "IMatrixMultiplyLayer",
    "IDENTITY": "IIdentityLayer", "SLICE": "ISliceLayer", "SHAPE": "IShapeLayer", "RESIZE": "IResizeLayer",
    "PARAMETRIC_RELU": "IParametricReLULayer", "SELECT": "ISelectLayer", "FILL": "IFillLayer", "QUANTIZE": "IQuantizeLayer",
    "DEQUANTIZE": "IDequantizeLayer", "SCATTER": "IScatterLayer", "EINSUM": "IEinsumLayer", "ONE_HOT": "IOneHotLayer",
    "NON_ZERO": "INonZeroLayer", "GRID_SAMPLE": "IGridSampleLayer", "NMS": "INMSLayer",
    "REVERSE_SEQUENCE": "IReverseSequenceLayer", "CAST": "ICastLayer", "NORMALIZATION": "INormalizationLayer",
}  # fmt: skip


class ILayer(Bound):
    """A layer of a network: one ONNX node."""

    _network: INetworkDefinition
    _node: Node

    def __init__(self, network: INetworkDefinition, node: Node) -> None:
        self._network = network
        self._node = node
        self._precision: BoundEnum | None = None
        self._output_types: dict[int, BoundEnum] = {}
        self.name = node.name
        self.metadata = f"[ONNX Layer: {node.name}]"

    name = Stored("")
    metadata = Stored("")
    num_inputs = View(lambda layer: len(layer._node.proto.input))
    num_outputs = View(lambda layer: len(layer._node.proto.output))
    precision_is_set = View(lambda layer: layer._precision is not None)

    def __dir__(self) -> list[str]:
        # Polygraphy shows every attribute that `dir` lists: the state of this object is none of them.
        return dir(type(self))

    @property
    def type(self) -> BoundEnum:
        """The type of the layer."""
        return self._api.enum("LayerType", layer_type(self._api, self._node.op))

    def get_input(self, index: int) -> ITensor | None:
        """An input; None if it is left out."""
        name = self._node.proto.input[index]
        return self._network._tensor(name) if name else None

    def get_output(self, index: int) -> ITensor | None:
        """An output; None if it is left out."""
        name = self._node.proto.output[index]
        return self._network._tensor(name) if name else None

    @property
    def precision(self) -> BoundEnum:
        """The precision to compute in; it counts with OBEY_ or PREFER_PRECISION_CONSTRAINTS only."""
        return self._precision if self._precision is not None else self._api.enum("DataType", "FLOAT")

    @precision.setter
    def precision(self, precision: BoundEnum) -> None:
        self._precision = precision

    def reset_precision(self) -> None:
        """Leave the precision to the builder."""
        self._precision = None

    def set_output_type(self, index: int, dtype: BoundEnum) -> None:
        """Set the type of an output; it counts with OBEY_ or PREFER_PRECISION_CONSTRAINTS only."""
        self._output_types[index] = dtype

    def get_output_type(self, index: int) -> BoundEnum:
        """The type of an output."""
        if index in self._output_types:
            return self._output_types[index]
        return self._api.enum("DataType", self._network._dtype(self._node.proto.output[index]))

    def output_type_is_set(self, index: int) -> bool:
        """Whether the type of an output was set."""
        return index in self._output_types

    def reset_output_type(self, index: int) -> None:
        """Leave the type of an output to the builder."""
        self._output_types.pop(index, None)


def layer_type(api: Api, op: str) -> str:
    """The layer type of an operator: operators without one of their own are plugins."""
    available = api.personality.enums["LayerType"]
    return next((name for name, ops in TYPES.items() if op in ops.split() and name in available), "PLUGIN")


def layer_class(api: Api, node: Node) -> type[ILayer]:
    """The class that shows a node."""
    return api.classes[CLASSES.get(layer_type(api, node.op), "ILayer")]


def make_layer_classes(api: Api) -> None:
    """Add the class of each layer type, with the attributes that the personality has and the simulator knows."""
    base = api.classes["ILayer"]
    for name in CLASSES.values():
        if name in api.personality.classes:
            known = ATTRIBUTES.get(name, {})
            views = {
                key: View(compute) for key, compute in known.items() if key in api.personality.classes[name]
            }
            api.classes[name] = type(name, (base,), {"__module__": "tensorrt", "_api": api, **views})
