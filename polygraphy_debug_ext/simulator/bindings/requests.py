"""The parts of a build request that follow from a network and its configuration."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.build import Profile
from polygraphy_debug_ext.simulator.compiler.dtypes import FLOATS, from_onnx
from polygraphy_debug_ext.simulator.compiler.layouts import FORMATS, IMAGE_RANK, Layout
from polygraphy_debug_ext.simulator.compiler.records import Binding
from polygraphy_debug_ext.simulator.compiler.tuner import Constraints
from polygraphy_debug_ext.simulator.errors import BuildFailure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.simulator.bindings.config import IBuilderConfig, IOptimizationProfile
    from polygraphy_debug_ext.simulator.bindings.network import INetworkDefinition

Range = tuple[tuple[int, ...], ...]
METHOD = "IBuilder::buildSerializedNetwork"


def profiles_of(
    network: INetworkDefinition, config: IBuilderConfig
) -> tuple[tuple[Profile, ...], dict[str, list[Range]], dict[str, list[Range]]]:
    """The optima of all profiles; shapes and values of each input as minimum, optimum and maximum of each profile."""
    graph = network._graph_or_raise()
    shapes: dict[str, list[Range]] = {name: [] for name in graph.inputs}
    values: dict[str, list[Range]] = {name: [] for name in graph.shape_inputs}
    profiles = []
    given: list[IOptimizationProfile | None] = [*config._profiles]
    for profile in given or [None]:
        for name in graph.inputs:
            shapes[name].append(_shape_range(network, profile, name))
            if name in values:
                values[name].append(_value_range(profile, name))
        profiles.append(
            Profile(
                sizes={name: ranges[-1][1] for name, ranges in shapes.items()},
                values={name: ranges[-1][1] for name, ranges in values.items()},
            )
        )
    return tuple(profiles), shapes, values


def _shape_range(network: INetworkDefinition, profile: IOptimizationProfile | None, name: str) -> Range:
    declared = tuple(network._graph_or_raise().types[name].shape or ())
    given = profile.get_shape(name) if profile is not None else []
    if not given:
        if -1 in declared:
            raise BuildFailure(
                "api",
                method=METHOD,
                why=f"input {name} is dynamic, but no optimization profile has shapes for it",
            )
        return (declared,) * 3
    for shape in given:
        fits = len(shape) == len(declared) and all(
            size in {-1, wanted} for size, wanted in zip(declared, shape, strict=True)
        )
        if not fits:
            raise BuildFailure(
                "api",
                method=METHOD,
                why=f"the optimization profile has shape {shape} for input {name}, which has {declared}",
            )
    return tuple(tuple(shape) for shape in given)


def _value_range(profile: IOptimizationProfile | None, name: str) -> Range:
    given = profile.get_shape_input(name) if profile is not None else []
    if not given:
        raise BuildFailure(
            "api",
            method=METHOD,
            why=f"input {name} holds a shape, but no optimization profile has values for it",
        )
    return tuple(tuple(numbers) for numbers in given)


def bindings_of(
    network: INetworkDefinition, shapes: Mapping[str, list[Range]], values: Mapping[str, list[Range]]
) -> tuple[Binding, ...]:
    """The inputs and outputs of the engine."""
    graph, marks = network._graph_or_raise(), network._marks
    if not marks.outputs:
        raise BuildFailure("internal", why="the network has no outputs")
    found = []
    debug = [name for name in marks.debug if name not in marks.outputs]
    for name in dict.fromkeys((*graph.inputs, *marks.outputs, *debug)):
        known, dtype = graph.types.get(name), network._dtype(name)
        if dtype == "BF16":
            raise BuildFailure(
                "internal",
                why=f"the simulator has no inputs and outputs in BF16, which {name} is: cast it to FP32",
            )
        found.append(
            Binding(
                name=name,
                is_input=name in graph.inputs,
                dtype=dtype,
                format=_format(network, name),
                shape=known.shape if known is not None and known.shape is not None else (),
                is_shape=name in graph.shape_inputs,
                is_debug=name in debug,
                shapes=tuple(shapes.get(name, ())),
                values=tuple(values.get(name, ())),
            )
        )
    return tuple(found)


def _format(network: INetworkDefinition, name: str) -> str:
    """The first format that the user allows: plain row-major, if possible."""
    mask = network._marks.formats.get(name)
    numbers = network._api.personality.enums["TensorFormat"]
    allowed = [key for key in FORMATS if mask is None or mask & (1 << numbers[key])]
    known = network._graph_or_raise().types.get(name)
    image = known is not None and known.shape is not None and len(known.shape) == IMAGE_RANK
    fitting = [key for key in allowed if image or key == "LINEAR"]
    if not fitting:
        raise BuildFailure(
            "internal", why=f"the simulator has none of the formats that are allowed for {name}"
        )
    return fitting[0]


def layouts_of(network: INetworkDefinition, bindings: tuple[Binding, ...]) -> dict[str, Layout]:
    """How inputs and outputs lie in memory; debug tensors are taken as they come."""
    graph = network._graph_or_raise()
    found = {}
    for binding in bindings:
        if binding.is_debug:
            continue
        known = graph.types.get(binding.name)
        native = from_onnx(known.elem_type) if known is not None else binding.dtype
        # A binding of another integer type is converted on the way in or out: no layer sees it.
        dtype = binding.dtype if native in FLOATS else native
        narrow = native == "INT64" and "INT64" not in network._api.personality.enums["DataType"]
        found[binding.name] = Layout(dtype="INT32" if narrow else dtype, format=binding.format)
    return found


def constraints_of(network: INetworkDefinition, config: IBuilderConfig) -> Constraints:
    """The precisions that the user set, if the configuration gives them weight."""
    obey = config._has("OBEY_PRECISION_CONSTRAINTS")
    if not obey and not config._has("PREFER_PRECISION_CONSTRAINTS"):
        return Constraints()
    precisions, outputs = {}, {}
    for layer in network:
        if layer._precision is not None:
            precisions[layer._node.name] = layer._precision.name
        for index, dtype in layer._output_types.items():
            outputs[layer._node.proto.output[index]] = dtype.name
    return Constraints(precisions=precisions, outputs=outputs, obey=obey)
