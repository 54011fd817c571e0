"""The network as users see it: tensors, layers, inputs and outputs, over the graph that the parser made."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from polygraphy_debug_ext.simulator.bindings.base import Bound, Dims, Stored, View
from polygraphy_debug_ext.simulator.bindings.layers import ILayer, layer_class
from polygraphy_debug_ext.simulator.compiler.dtypes import from_onnx, of_binding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.compiler.graph import Graph

ALL_FORMATS = (1 << 13) - 1


@dataclass(kw_only=True)
class Marks:
    """What the user changed about the tensors of a network, by their names."""

    outputs: list[str] = field(default_factory=list)
    debug: list[str] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)
    formats: dict[str, int] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    dimension_names: dict[tuple[str, int], str] = field(default_factory=dict)


class ITensor(Bound):
    """A tensor of a network."""

    def __init__(self, network: INetworkDefinition, name: str) -> None:
        self._network = network
        self._name = name

    name = View(lambda tensor: tensor._name)
    is_network_input = View(lambda tensor: tensor._name in tensor._network._inputs)
    is_network_output = View(lambda tensor: tensor._name in tensor._network._marks.outputs)
    is_execution_tensor = View(lambda tensor: not tensor.is_shape_tensor)

    @property
    def shape(self) -> Dims:
        """The dimensions; -1 is dynamic."""
        known = self._network._graph_or_raise().types.get(self._name)
        return self._api.new(Dims, known.shape if known is not None and known.shape is not None else ())

    @property
    def dtype(self) -> BoundEnum:
        """The data type; that of inputs and outputs can be set."""
        return self._api.enum("DataType", self._network._dtype(self._name))

    @dtype.setter
    def dtype(self, dtype: BoundEnum) -> None:
        self._network._marks.dtypes[self._name] = dtype.name

    @property
    def is_shape_tensor(self) -> bool:
        """Whether its values say how large other tensors are."""
        return self._name in self._network._graph_or_raise().shape_inputs

    @property
    def location(self) -> BoundEnum:
        """Where the values are."""
        return self._api.enum("TensorLocation", "HOST" if self.is_shape_tensor else "DEVICE")

    @property
    def allowed_formats(self) -> int:
        """A mask of the formats that an input or output may have."""
        return self._network._marks.formats.get(self._name, ALL_FORMATS)

    @allowed_formats.setter
    def allowed_formats(self, mask: int) -> None:
        self._network._marks.formats[self._name] = mask

    @property
    def dynamic_range(self) -> tuple[float, float] | None:
        """The range of the values, for INT8 without a calibrator."""
        return self._network._marks.ranges.get(self._name)

    @dynamic_range.setter
    def dynamic_range(self, bounds: tuple[float, float]) -> None:
        self._network._marks.ranges[self._name] = bounds

    def set_dynamic_range(self, min: float, max: float) -> bool:  # noqa: A002 - TensorRT's names
        """Set the range of the values."""
        self._network._marks.ranges[self._name] = (min, max)
        return True

    def reset_dynamic_range(self) -> None:
        """Forget the range."""
        self._network._marks.ranges.pop(self._name, None)

    def get_dimension_name(self, index: int) -> str:
        """The name of a dynamic dimension."""
        return self._network._marks.dimension_names.get((self._name, index), "")

    def set_dimension_name(self, index: int, name: str) -> None:
        """Name a dynamic dimension."""
        self._network._marks.dimension_names[self._name, index] = name


class INetworkDefinition(Bound):
    """A network. It is filled by the ONNX parser only."""

    def __init__(self, flags: int) -> None:
        self._flags = flags
        self._graph: Graph | None = None
        self._marks = Marks()
        self._tensors: dict[str, ITensor] = {}
        self._layers: list[ILayer] = []
        self._inputs: tuple[str, ...] = ()

    name = Stored("Unnamed Network 0")
    flags = View(lambda network: network._flags)
    has_implicit_batch_dimension = View(lambda _: False)
    num_inputs = View(lambda network: len(network._inputs))
    num_outputs = View(lambda network: len(network._marks.outputs))
    num_layers = View(lambda network: len(network._layers))

    def __getattr__(self, name: str) -> object:
        if name.startswith("add_"):
            raise AttributeError(
                f"INetworkDefinition.{name} does not exist here: the TensorRT simulator builds networks from ONNX models "
                "only. Export the network to ONNX and use OnnxParser."
            )
        raise AttributeError(f"'INetworkDefinition' object has no attribute {name!r}")

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, index: int) -> ILayer:
        return self._layers[index]

    def __iter__(self) -> Iterator[ILayer]:
        return iter(self._layers)

    def _populate(self, graph: Graph) -> None:
        """Take the graph of a parsed model."""
        self._graph = graph
        self._inputs = graph.inputs
        self._marks.outputs[:] = graph.outputs
        self._layers = [layer_class(self._api, node)(self, node) for node in graph.nodes]
        self.name = graph.model.graph.name or self.name

    def _graph_or_raise(self) -> Graph:
        if self._graph is None:
            raise RuntimeError("the network is empty: parse an ONNX model first")
        return self._graph

    def _tensor(self, name: str) -> ITensor:
        if name not in self._tensors:
            self._tensors[name] = self._api.new(ITensor, self, name)
        return self._tensors[name]

    def _dtype(self, name: str) -> str:
        if name in self._marks.dtypes:
            return self._marks.dtypes[name]
        known = self._graph_or_raise().types.get(name)
        available = frozenset(self._api.personality.enums["DataType"])
        elem_type = known.elem_type if known is not None else 1
        return of_binding(elem_type, available) or from_onnx(elem_type)

    def get_flag(self, flag: BoundEnum) -> bool:
        """Whether the network was created with this flag."""
        return bool(self._flags & (1 << int(flag)))

    def get_input(self, index: int) -> ITensor:
        """An input."""
        return self._tensor(self._inputs[index])

    def get_output(self, index: int) -> ITensor:
        """An output."""
        return self._tensor(self._marks.outputs[index])

    def get_layer(self, index: int) -> ILayer:
        """A layer."""
        return self._layers[index]

    def mark_output(self, tensor: ITensor) -> None:
        """Make a tensor an output of the network."""
        if tensor._name not in self._marks.outputs:
            self._marks.outputs.append(tensor._name)

    def unmark_output(self, tensor: ITensor) -> None:
        """Make an output an ordinary tensor."""
        self._marks.outputs.remove(tensor._name)

    def mark_debug(self, tensor: ITensor) -> bool:
        """Have a tensor reported to the debug listener."""
        if tensor._name not in self._marks.debug:
            self._marks.debug.append(tensor._name)
        return True

    def unmark_debug(self, tensor: ITensor) -> bool:
        """No longer have it reported."""
        if tensor._name not in self._marks.debug:
            return False
        self._marks.debug.remove(tensor._name)
        return True

    def is_debug_tensor(self, tensor: ITensor) -> bool:
        """Whether the tensor is reported to the debug listener."""
        return tensor._name in self._marks.debug


def strongly_typed(network: INetworkDefinition) -> bool:
    """Whether the precision follows from the types in the network alone."""
    flags = cast("dict[str, int]", network._api.personality.enums["NetworkDefinitionCreationFlag"])
    weak = network._api.personality.has("BuilderFlag", "FP16")
    return not weak or ("STRONGLY_TYPED" in flags and bool(network._flags & (1 << flags["STRONGLY_TYPED"])))
