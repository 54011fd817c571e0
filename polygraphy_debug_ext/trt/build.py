"""One build, by the options of Polygraphy: the network is loaded once, the configuration made anew for each build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import (
    TrtConfigArgs,
    TrtLoadEngineBytesArgs,
    TrtSaveEngineBytesArgs,
)
from polygraphy.tools.args import util as args_util

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.trt import precision
from polygraphy_debug_ext.trt.capabilities import probe
from polygraphy_debug_ext.trt.handlers import TacticOptions, handler
from polygraphy_debug_ext.trt.layer_information import layers_of
from polygraphy_debug_ext.trt.logger import listen
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping

    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.trt.logger import Listener


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
        )
        # Polygraphy would make its own selectors from these.
        config.save_tactics = config.load_tactics = None
        self._loaded: tuple[Any, Any] | None = None
        self._listener: Listener | None = None
        self._forced: Assignment | None = None

    def load(self) -> None:
        """Load the network.

        Raises:
            DebugExtError: if TensorRT cannot do what was asked for.
            PolygraphyException: if the network cannot be loaded.
        """
        # Whether types and tactics can be had as asked for is known before anything is loaded.
        half = precision.take_off(self._groups, probe(tensorrt()))
        self._listener = listen()
        if self._options.load is not None:
            self._forced = replay.read(self._options.load)
        handler(self._options, self._forced, self._listener)
        self._loaded = precision.load_network(self._groups, half)

    def build(self) -> None:
        """Build an engine and write it, with the replay of its tactics where that was asked for.

        Raises:
            BuildError: if there is no engine.
        """
        if self._loaded is None:
            self.load()
        try:
            self._build()
        except (BuildError, KeyboardInterrupt):
            raise
        except PolygraphyException as error:
            raise BuildError(str(error), "See the log of the build.") from error
        except Exception as error:
            G_LOGGER.verbose(f"{type(error).__name__} in the build: {error}")
            raise BuildError(str(error) or type(error).__name__, "See the log of the build.") from error

    def _build(self) -> None:
        from polygraphy.backend.trt import EngineBytesFromNetwork  # noqa: PLC0415 - it is deferred in Polygraphy as well

        if self._loaded is None or self._listener is None:
            raise BuildError("No network was loaded", "Load it first.")
        builder, network = self._loaded
        self._listener.begin()
        tactics = handler(self._options, self._forced, self._listener)
        config = self._config(builder, network)
        if tactics is not None:
            tactics.prepare(config)
        try:
            plan = EngineBytesFromNetwork(
                (builder, network),
                config=config,
                save_timing_cache=self._groups[TrtLoadEngineBytesArgs].save_timing_cache,
            )()
        except PolygraphyException:
            raised = getattr(tactics, "raised", None)
            if raised is not None:
                raise _as_build_error(raised) from raised
            raise
        if tactics is not None:
            tactics.finish(config, layers_of(plan, self._listener.layer_lines))
        self._groups[TrtSaveEngineBytesArgs].save_engine_bytes(plan, self._engine)

    def _config(self, builder: Any, network: Any) -> Any:  # noqa: ANN401 - TensorRT has no types
        options = self._groups[TrtConfigArgs]
        # `create_config` alone would make a default configuration as well, and log what that has to say.
        loader = args_util.run_script(options.add_to_script)
        return loader(builder, network) if loader else options.create_config(builder, network)


def _as_build_error(raised: Exception) -> BuildError:
    if isinstance(raised, BuildError):
        return raised
    return BuildError(f"{type(raised).__name__}: {raised}", "See the log of the build.")
