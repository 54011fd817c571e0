"""One build, by the options of Polygraphy: the network is loaded once, the configuration made anew for each build."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import (
    ModelArgs,
    TrtConfigArgs,
    TrtLoadEngineBytesArgs,
    TrtSaveEngineBytesArgs,
)
from polygraphy.tools.args import util as args_util

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.trt import precision
from polygraphy_debug_ext.trt.capabilities import probe
from polygraphy_debug_ext.trt.exploring import margin
from polygraphy_debug_ext.trt.handlers import TacticOptions
from polygraphy_debug_ext.trt.layer_information import layers_of
from polygraphy_debug_ext.trt.logger import listen
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.steering import Steering
from polygraphy_debug_ext.trt.surroundings import flags, surroundings

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.trt.handlers import Handlers
    from polygraphy_debug_ext.trt.logger import Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of tactics that were forced: layers at which they were not honoured, with the reason, and those where forcing is void."""

    not_honoured: Mapping[str, str] = field(default_factory=dict)
    void: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded:
    """The network, and who is concerned with its builds."""

    builder: Any
    network: Any
    listener: Listener
    steering: Steering


class EngineBuilder:
    """Builds engines of one network.

    Args:
        groups: Polygraphy's argument groups, after parsing.
        args: The arguments themselves.
    """

    def __init__(self, groups: Mapping[type, Any], args: Namespace) -> None:
        self._groups = groups
        self._engine = args.iter_artifact_path
        config = groups[TrtConfigArgs]
        self._options = TacticOptions(
            save=None if config.save_tactics is None else Path(config.save_tactics),
            load=None if config.load_tactics is None else Path(config.load_tactics),
            source=args.tactic_source,
            require_honoured=args.require_honoured,
            ignore_mismatch=args.ignore_timing_cache_mismatch,
            timing_cache=config.load_timing_cache is not None,
            avoid=None if getattr(args, "avoid_tactics", None) is None else Path(args.avoid_tactics),
            explore=None if getattr(args, "explore", None) is None else margin(args.explore),
        )
        # Polygraphy would make its own selectors from these.
        config.save_tactics = config.load_tactics = None
        self._half: str | None = None
        self._loaded: _Loaded | None = None
        #: What builds, as far as it is known before the first build.
        self.environment: dict[str, str] = {}

    def load(self) -> None:
        """Load the network.

        Raises:
            DebugExtError: if TensorRT cannot do what was asked for.
            PolygraphyException: if the network cannot be loaded.
        """
        # Whether types and tactics can be had as asked for is known before anything is loaded.
        self._half = half = precision.take_off(self._groups, probe(tensorrt()))
        listener = listen()
        steering = Steering(self._options, listener)
        builder, network = precision.load_network(self._groups, half)
        self._loaded = _Loaded(builder=builder, network=network, listener=listener, steering=steering)
        self.environment = surroundings(self._groups[ModelArgs].path)

    def build(self, force: Path | None = None, caches: Sequence[Path] = ()) -> Report:
        """Build an engine and write it, with the replay of its tactics where that was asked for.

        Args:
            force: A replay whose tactics are forced in this build; what the engine really has is recorded all the same.
            caches: Replays whose timing caches are put together for that.

        Raises:
            BuildError: if there is no engine.
        """
        if self._loaded is None:
            self.load()
        try:
            return self._build(force, caches)
        except (BuildError, KeyboardInterrupt):
            raise
        except PolygraphyException as error:
            raise BuildError(str(error), "See the log of the build.") from error
        except Exception as error:
            G_LOGGER.verbose(f"{type(error).__name__} in the build: {error}")
            raise BuildError(str(error) or type(error).__name__, "See the log of the build.") from error

    def _build(self, force: Path | None, caches: Sequence[Path]) -> Report:
        if self._loaded is None:
            raise BuildError("No network was loaded", "Load it first.")
        steering = self._loaded.steering
        steering.begin(force, caches)
        plan, first, again = self._once(self._loaded)
        while again:
            plan, _, again = self._once(self._loaded)
        self._groups[TrtSaveEngineBytesArgs].save_engine_bytes(plan, self._engine)
        return Report(not_honoured=first.not_honoured, void=first.void)

    def _once(self, loaded: _Loaded) -> tuple[Any, Handlers, bool]:
        """Build once; return the engine, who handled it, and whether it has to be built again."""
        from polygraphy.backend.trt import EngineBytesFromNetwork  # noqa: PLC0415 - it is deferred in Polygraphy as well

        loaded.listener.begin()
        config = self._config(loaded)
        known = {**self.environment, "flags": flags(config, converted=self._half or "")}
        handlers = loaded.steering.handlers(known)
        handlers.prepare(config)
        try:
            plan = EngineBytesFromNetwork(
                (loaded.builder, loaded.network),
                config=config,
                save_timing_cache=self._groups[TrtLoadEngineBytesArgs].save_timing_cache,
            )()
        except PolygraphyException:
            if handlers.raised is not None:
                raise _as_build_error(handlers.raised) from handlers.raised
            raise
        layers = layers_of(plan, loaded.listener.layer_lines)
        handlers.finish(config, layers)
        return plan, handlers, loaded.steering.again(handlers, layers)

    def _config(self, loaded: _Loaded) -> Any:  # noqa: ANN401 - TensorRT has no types
        options = self._groups[TrtConfigArgs]
        # `create_config` alone would make a default configuration as well, and log what that has to say.
        loader = args_util.run_script(options.add_to_script)
        if loader:
            return loader(loaded.builder, loaded.network)
        return options.create_config(loaded.builder, loaded.network)


def _as_build_error(raised: Exception) -> BuildError:
    if isinstance(raised, BuildError):
        return raised
    return BuildError(f"{type(raised).__name__}: {raised}", "See the log of the build.")
