"""One build: from a network and what the user asked for to an engine."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import sizing
from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.foreign import ForeignTuner
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion
from polygraphy_debug_ext.simulator.compiler.myelin import partition
from polygraphy_debug_ext.simulator.compiler.records import Engine
from polygraphy_debug_ext.simulator.compiler.shapes import TensorType
from polygraphy_debug_ext.simulator.compiler.tuner import Constraints, Selector, Tuner
from polygraphy_debug_ext.simulator.errors import BuildFailure
from polygraphy_debug_ext.simulator.execution.device import DEVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance
    from polygraphy_debug_ext.simulator.compiler.graph import Graph
    from polygraphy_debug_ext.simulator.compiler.layouts import Layout
    from polygraphy_debug_ext.simulator.compiler.records import Binding, Choice
    from polygraphy_debug_ext.simulator.compiler.stopwatch import Stopwatch


INT32, INT64 = (DTYPES[name].onnx for name in ("INT32", "INT64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The optimum of one optimization profile: shapes of inputs, and values of inputs that hold shapes."""

    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be built. `proceed` is called before each profile, and may stop the build; `narrow` shows INT64 as INT32."""

    graph: Graph
    name: str
    bindings: tuple[Binding, ...]
    layouts: Mapping[str, Layout]
    profiles: tuple[Profile, ...]
    allowance: Allowance
    constraints: Constraints
    scales: Mapping[str, float] = field(default_factory=dict)
    selector: Selector | None = None
    verbosity: str = "LAYER_NAMES_ONLY"
    properties: Mapping[str, int] = field(default_factory=dict)
    proceed: Callable[[str], bool] | None = None
    narrow: bool = False


def build(request: Request, stopwatch: Stopwatch) -> Engine:
    """Build an engine, or raise `BuildFailure`."""
    log, started = stopwatch.log, time.perf_counter()
    if DEVICE.sticky:
        log.message("cuda", why=DEVICE.sticky)
    outputs = frozenset(binding.name for binding in request.bindings if not binding.is_input)
    fused = Fusion(request.graph, outputs).layers()
    layers = partition(fused, log.personality.myelin, outputs)
    if not layers:
        raise BuildFailure("internal", why="the network has no layers")
    log.verbose(f"After dead-layer removal and fusions: {len(layers)} layers")
    foreign = ForeignTuner(stopwatch, request.allowance, request.constraints)
    profiles: list[tuple[Choice, ...]] = []
    for index, profile in enumerate(request.profiles):
        log.verbose(
            f"Constructing optimization profile number {index} [{index + 1}/{len(request.profiles)}]."
        )
        if request.proceed is not None and not request.proceed(f"profile {index}"):
            raise BuildFailure("internal", why="the build was cancelled by the progress monitor")
        tuner = Tuner(
            layers=layers,
            types=_seen(sizing.concrete(request.graph.model, profile.sizes, profile.values), request),
            symbolic=_seen(request.graph.types, request),
            bindings=request.layouts,
            allowance=request.allowance,
            constraints=request.constraints,
            stopwatch=stopwatch,
            foreign=foreign,
            selector=request.selector,
            suffix=f" [profile {index}]" if index else "",
            outputs=outputs,
        )
        profiles.append(tuner.run())
    engine = Engine(
        name=request.name,
        model=request.graph.model.SerializeToString(),
        bindings=request.bindings,
        profiles=tuple(profiles),
        scales=request.scales,
        nonce=stopwatch.dice.nonce,
        verbosity=request.verbosity,
        properties=request.properties,
    )
    seconds = time.perf_counter() - started
    log.verbose(f"Formats and tactics selection completed in {seconds:.6g} seconds.")
    log.verbose(f"After reformat layers: {len(engine.choices)} layers")
    log.note(f"Engine generation completed in {seconds:.6g} seconds.")
    log.layer_information(engine.choices)
    return engine


def _seen(types: Mapping[str, TensorType], request: Request) -> Mapping[str, TensorType]:
    """The types as this TensorRT has them."""
    if not request.narrow:
        return types
    return {
        name: TensorType(elem_type=INT32, shape=known.shape) if known.elem_type == INT64 else known
        for name, known in types.items()
    }
