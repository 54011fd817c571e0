"""The builder: collects what network and configuration say into a request, and has it built."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from polygraphy_debug_ext.simulator.bindings import calibration
from polygraphy_debug_ext.simulator.bindings.base import Bound, Stored, View
from polygraphy_debug_ext.simulator.bindings.config import IBuilderConfig, IOptimizationProfile
from polygraphy_debug_ext.simulator.bindings.engine import ICudaEngine
from polygraphy_debug_ext.simulator.bindings.memory import IHostMemory, host_memory
from polygraphy_debug_ext.simulator.bindings.network import INetworkDefinition, strongly_typed
from polygraphy_debug_ext.simulator.bindings.requests import (
    METHOD,
    bindings_of,
    constraints_of,
    layouts_of,
    profiles_of,
)
from polygraphy_debug_ext.simulator.bindings.selector import SelectorAdapter
from polygraphy_debug_ext.simulator.compiler.build import Request, build
from polygraphy_debug_ext.simulator.compiler.cache import TimingCache
from polygraphy_debug_ext.simulator.compiler.catalogue import PER_LEVEL, Allowance
from polygraphy_debug_ext.simulator.compiler.log import Log
from polygraphy_debug_ext.simulator.compiler.lowering import can_cast
from polygraphy_debug_ext.simulator.compiler.stopwatch import Stopwatch
from polygraphy_debug_ext.simulator.compiler.timing import Dice
from polygraphy_debug_ext.simulator.errors import BuildFailure
from polygraphy_debug_ext.simulator.execution import plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.simulator.compiler.records import Engine

PHASE = "Building Engine"
UNSIMULATED = ("FP8", "INT4", "FP4")
WEAK = ("FP16", "BF16", "INT8", *UNSIMULATED)
# What compiled code takes in a timing cache.
COMPILED = 64


class _ProgressMonitor(Protocol):
    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None: ...
    def phase_finish(self, phase_name: str) -> None: ...
    def step_complete(self, phase_name: str, step: int) -> bool: ...


class IProgressMonitor(Bound):
    """What users implement to watch a build, and to cancel it."""

    def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
        """A phase begins."""

    def phase_finish(self, phase_name: str) -> None:
        """A phase is over."""

    def step_complete(self, phase_name: str, step: int) -> bool:
        """A step is over; False cancels the build."""
        del phase_name, step
        return True


class Builder(Bound):
    """Builds engines from networks."""

    def __init__(self, logger: object) -> None:
        self._logger = logger
        self._sink = self._api.sink(logger)

    logger = View(lambda builder: builder._logger)
    max_threads = Stored(1)
    max_batch_size = Stored(1)
    num_DLA_cores = View(lambda _: 0)  # noqa: N815 - TensorRT's name
    max_DLA_batch_size = View(lambda _: 1)  # noqa: N815 - TensorRT's name
    platform_has_fast_fp16 = View(lambda _: True)
    platform_has_fast_int8 = View(lambda _: True)
    platform_has_tf32 = View(lambda _: True)

    def create_network(self, flags: int = 0) -> INetworkDefinition:
        """An empty network."""
        return self._api.new(INetworkDefinition, flags)

    def create_builder_config(self) -> IBuilderConfig:
        """A configuration with the defaults."""
        return self._api.new(IBuilderConfig, self._sink)

    def create_optimization_profile(self) -> IOptimizationProfile:
        """An empty profile."""
        return self._api.new(IOptimizationProfile)

    def reset(self) -> None:
        """Back to the defaults."""
        self.max_threads = 1

    def is_network_supported(self, network: INetworkDefinition, config: IBuilderConfig) -> bool:
        """Whether an engine can be built: what the parser accepted can be."""
        del config
        return network._graph is not None

    def build_serialized_network(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> IHostMemory | None:
        """Build an engine as bytes; None if it cannot be built, which the log explains."""
        engine = self._build(network, config)
        return (
            host_memory(self._api, plan.dump(engine, self._api.personality)) if engine is not None else None
        )

    def build_engine(self, network: INetworkDefinition, config: IBuilderConfig) -> ICudaEngine | None:
        """Build an engine; None if it cannot be built, which the log explains."""
        engine = self._build(network, config)
        return self._api.new(ICudaEngine, engine, self._sink) if engine is not None else None

    def build_engine_with_config(
        self, network: INetworkDefinition, config: IBuilderConfig
    ) -> ICudaEngine | None:
        """Build an engine; None if it cannot be built, which the log explains."""
        engine = self._build(network, config)
        return self._api.new(ICudaEngine, engine, self._sink) if engine is not None else None

    def _build(self, network: INetworkDefinition, config: IBuilderConfig) -> Engine | None:
        log = Log(personality=self._api.personality, sink=self._sink)
        selector = None
        chosen = getattr(config, "algorithm_selector", None)
        if chosen is not None:
            selector = SelectorAdapter(self._api, chosen, self._sink)
        monitor = cast("_ProgressMonitor | None", getattr(config, "progress_monitor", None))
        try:
            request = self._request(network, config, log)
            if monitor is not None:
                monitor.phase_start(PHASE, None, len(request.profiles))
            proceed = _steps(monitor) if monitor is not None else None
            engine = build(replace(request, selector=selector, proceed=proceed), self._stopwatch(config, log))
            if selector is not None:
                selector.report(engine.choices)
        except BuildFailure as failure:
            log.message(failure.kind, **failure.fields)
            return None
        if monitor is not None:
            monitor.phase_finish(PHASE)
        return engine

    def _stopwatch(self, config: IBuilderConfig, log: Log) -> Stopwatch:
        settings = self._api.settings()
        dice = Dice.of_build(settings)
        attached, cache = config._timing_cache, None
        if config._has("DISABLE_TIMING_CACHE"):
            log.verbose("Timing cache disabled.")
        elif attached is not None:
            cache = attached._cache
            log.note("Global timing cache in use. Profiling results in this builder pass will be stored.")
        else:
            cache = TimingCache(version=self._api.personality.version, device=settings.gpu)
            log.note("Local timing cache in use. Profiling results in this builder pass will not be stored.")
        if cache is not None:
            cache.code = self._compiled(config, dice)
        return Stopwatch(
            log=log,
            # The mean of several measurements is less noisy than one.
            dice=replace(dice, noise=dice.noise / math.sqrt(max(1, config.avg_timing_iterations))),
            faults=settings.faults(),
            cache=cache,
            strict=attached is not None and config._has("ERROR_ON_TIMING_CACHE_MISS"),
            editable=config._has("EDITABLE_TIMING_CACHE"),
        )

    def _compiled(self, config: IBuilderConfig, dice: Dice) -> str:
        """What the compilation cache adds to a timing cache: it is never the same, where there is one."""
        flag = "DISABLE_COMPILATION_CACHE"
        exists = self._api.personality.has("BuilderFlag", flag)
        return COMPILED * dice.nonce if exists and not config._has(flag) else ""

    def _request(self, network: INetworkDefinition, config: IBuilderConfig, log: Log) -> Request:
        if network._graph is None:
            raise BuildFailure("internal", why="the network is empty: parse an ONNX model into it first")
        precisions = {
            "FLOAT",
            *(("HALF",) if config._has("FP16") else ()),
            *(("BF16",) if config._has("BF16") else ()),
            *(("INT8",) if config._has("INT8") else ()),
        }
        asked = [flag for flag in WEAK if config._has(flag)]
        if strongly_typed(network) and asked:
            raise BuildFailure(
                "api",
                method=METHOD,
                why=f"a strongly typed network takes its precisions from its types: {asked[0]} cannot be set",
            )
        for flag in UNSIMULATED:
            if config._has(flag):
                log.caution(f"The TensorRT simulator has no tactics in {flag}: the flag has no effect.")
        if "BF16" in precisions and not can_cast(network._graph.model):
            log.caution("The TensorRT simulator has BF16 from opset 13 on only: the flag has no effect.")
            precisions.discard("BF16")
        scales = calibration.scales(network, config, log) if "INT8" in precisions else {}
        profiles, shapes, values = profiles_of(network, config)
        bindings = bindings_of(network, shapes, values)
        sources = self._api.personality.enums["TacticSource"]
        return Request(
            graph=network._graph,
            name=network.name,
            bindings=bindings,
            layouts=layouts_of(network, bindings),
            profiles=profiles,
            allowance=Allowance(
                precisions=frozenset(precisions),
                quantized=frozenset(scales),
                level=min(max(config.builder_optimization_level, 0), len(PER_LEVEL) - 1),
                sources=frozenset(name for name, value in sources.items() if config._sources & (1 << value)),
            ),
            constraints=constraints_of(network, config),
            scales=scales,
            verbosity=config.profiling_verbosity.name,
            properties={
                "engine_capability": int(config.engine_capability),
                "hardware_compatibility_level": int(config.hardware_compatibility_level),
                "num_aux_streams": config.max_aux_streams,
                "tactic_sources": config._sources,
            },
            narrow="INT64" not in self._api.personality.enums["DataType"],
        )


def _steps(monitor: _ProgressMonitor) -> Callable[[str], bool]:
    """A function that reports a step, and says whether to go on."""
    done = iter(range(1 << 30))
    return lambda _: monitor.step_complete(PHASE, next(done))
