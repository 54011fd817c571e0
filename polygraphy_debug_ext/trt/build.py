"""One build, by the options of Polygraphy: the network is loaded once, the configuration made anew for each build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygraphy import util
from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import (
    TrtConfigArgs,
    TrtLoadEngineBytesArgs,
    TrtLoadNetworkArgs,
    TrtSaveEngineBytesArgs,
)
from polygraphy.tools.args import util as args_util

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.trt import layer_information
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.selector import Recorder, Replayer, adapt

if TYPE_CHECKING:
    from collections.abc import Mapping


class EngineBuilder:
    """Builds engines of one network.

    Args:
        groups: Polygraphy's argument groups, after parsing.
        engine: Where engines are written.
    """

    def __init__(self, groups: Mapping[type, Any], engine: Path) -> None:
        self._groups = groups
        self._engine = engine
        config = groups[TrtConfigArgs]
        # Polygraphy would make its own selectors from these.
        self._save, config.save_tactics = config.save_tactics, None
        self._load, config.load_tactics = config.load_tactics, None
        self._loaded: tuple[Any, Any] | None = None

    def load(self) -> None:
        """Load the network.

        Raises:
            DebugExtError: if TensorRT cannot do what was asked for.
            PolygraphyException: if the network cannot be loaded.
        """
        tensorrt()
        if self._save or self._load:
            # Whether there are selectors is known before anything is loaded.
            self._selector()
        builder, network, _ = util.unpack_args(self._groups[TrtLoadNetworkArgs].load_network(), 3)
        self._loaded = builder, network

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

        if self._loaded is None:
            raise BuildError("No network was loaded", "Load it first.")
        builder, network = self._loaded
        chooser, selector = self._selector()
        config = self._config(builder, network)
        if selector is not None:
            self._set_selector(config, selector)
        try:
            plan = EngineBytesFromNetwork(
                (builder, network),
                config=config,
                save_timing_cache=self._groups[TrtLoadEngineBytesArgs].save_timing_cache,
            )()
        except PolygraphyException:
            if selector is not None and selector.raised is not None:
                raise _as_build_error(selector.raised) from selector.raised
            raise
        if isinstance(chooser, Recorder):
            chooser.add_kernels(layer_information.kernels(plan))
        self._groups[TrtSaveEngineBytesArgs].save_engine_bytes(plan, str(self._engine))

    def _config(self, builder: Any, network: Any) -> Any:  # noqa: ANN401 - TensorRT has no types
        options = self._groups[TrtConfigArgs]
        # `create_config` alone would make a default configuration as well, and log what that has to say.
        loader = args_util.run_script(options.add_to_script)
        return loader(builder, network) if loader else options.create_config(builder, network)

    def _selector(self) -> tuple[Recorder | Replayer | None, Any]:
        chooser: Recorder | Replayer | None = None
        if self._load:
            chooser = Replayer(replay.read(Path(self._load)))
        elif self._save:
            chooser = Recorder(Path(self._save))
        return chooser, None if chooser is None else adapt(chooser)

    def _set_selector(self, config: Any, selector: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        config.algorithm_selector = selector
        if not self._groups[TrtConfigArgs].load_timing_cache:
            G_LOGGER.warning("Disabling tactic timing cache because algorithm selector is enabled.")
            config.set_flag(tensorrt().BuilderFlag.DISABLE_TIMING_CACHE)


def _as_build_error(raised: Exception) -> BuildError:
    if isinstance(raised, BuildError):
        return raised
    return BuildError(f"{type(raised).__name__}: {raised}", "See the log of the build.")
