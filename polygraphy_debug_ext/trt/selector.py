"""Algorithm selectors: one that records what TensorRT chose, one that forces what was recorded.

They exist up to TensorRT 10; TensorRT 11 removed `IAlgorithmSelector`. They are our own because Polygraphy removes its
TacticRecorder and TacticReplayer. TensorRT catches what they raise and fails the build; `raised` keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import BuildError, DebugExtError
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.trt.honour import tell
from polygraphy_debug_ext.trt.module import environment, tensorrt
from polygraphy_debug_ext.trt.recording import write_replay
from polygraphy_debug_ext.trt.tactics import FIELDS, tactic_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer

_TAB = "\n    "


class Recorder:
    """Writes what TensorRT chose to a replay."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._recorded: dict[str, Tactic] = {}

    def select(self, context: Any, choices: Sequence[Any]) -> list[int]:  # noqa: ANN401 - TensorRT has no types
        """Leave the choice to TensorRT."""
        del context
        return list(range(len(choices)))

    def report(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Write the replay: from here on it is there, whatever becomes of the build."""
        self._recorded = {
            context.name: tactic_of(context, choice)
            for context, choice in zip(contexts, choices, strict=True)
        }
        G_LOGGER.info(f"Saving tactic replay file to {self._path}")
        self._write()

    def finish(self, layers: Sequence[EngineLayer]) -> None:
        """Write the replay again, with the names of the kernels that the engine tells."""
        kernels = {layer.name: layer.kernel for layer in layers if layer.kernel is not None}
        if not self._recorded or not kernels:
            return
        self._recorded = {
            name: replace(tactic, kernel=kernels.get(name)) for name, tactic in self._recorded.items()
        }
        self._write()

    def _write(self) -> None:
        assignment = Assignment(
            layers=self._recorded, source=Source.SELECTOR, fields=FIELDS, metadata=dict(environment())
        )
        write_replay(self._path, assignment)


class Replayer:
    """Forces the tactics of a replay; what TensorRT does not offer is left free, and told at the end.

    Args:
        assignment: What to force.
        require: Whether a tactic that cannot be forced fails the build.
    """

    def __init__(self, assignment: Assignment, *, require: bool) -> None:
        self._layers = assignment.layers
        # Only what both sides record can be compared.
        self._fields = assignment.fields & FIELDS
        self._require = require
        self._problems: dict[str, str] = {}
        self._met: set[str] = set()

    def select(self, context: Any, choices: Sequence[Any]) -> list[int]:  # noqa: ANN401
        """Allow the recorded tactic only; any, if the layer was not recorded or the tactic is not offered."""
        everything = list(range(len(choices)))
        wanted = self._layers.get(context.name)
        if wanted is None:
            G_LOGGER.warning(
                f"Layer: {context.name} was not found in the tactic replay. Falling back to default tactics."
            )
            G_LOGGER.warning(
                "Has the network changed since the tactic replay file was generated?\n"
                f"Note: Layers in the tactic replay are:{_TAB}{_TAB.join(self._layers)}",
                mode=LogMode.ONCE,
            )
            return everything
        offered = [tactic_of(context, choice) for choice in choices]
        identity = wanted.identity(self._fields)
        equal = [number for number, tactic in enumerate(offered) if tactic.identity(self._fields) == identity]
        if equal:
            return equal
        problem = "Tactic in replay was not provided by TensorRT as a choice for this layer"
        if self._require:
            raise BuildError(
                f"Layer: {context.name} | {problem}",
                "Has the network or builder configuration changed since the replay file was generated?\n"
                f"Note: Tactic in replay was:{_TAB}{wanted}\nProvided choices were:{_TAB}{_TAB.join(map(str, offered))}",
            )
        self._problems[context.name] = problem
        return everything

    def report(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Hold what was chosen against what was asked for."""
        for context, choice in zip(contexts, choices, strict=True):
            wanted = self._layers.get(context.name)
            if wanted is None:
                continue
            self._met.add(context.name)
            selected = tactic_of(context, choice)
            if wanted.identity(self._fields) != selected.identity(self._fields):
                self._problems.setdefault(
                    context.name, f"TensorRT selected a tactic different than the one specified: {selected}"
                )
            else:
                self._problems.pop(context.name, None)

    def finish(self, layers: Sequence[EngineLayer]) -> None:
        """Tell what was not honoured.

        Raises:
            BuildError: if something was not, and had to be.
        """
        del layers
        for name in self._layers:
            if name not in self._met:
                self._problems[name] = "the engine has no such layer"
        tell(self._problems, len(self._layers), 0, require=self._require)


class SelectorHandler:
    """Lets a recorder or a replayer answer the questions of TensorRT's algorithm selector.

    Args:
        chooser: Who answers.
        keep_timing_cache: Whether the timing cache stays in use; with a selector it makes no sense unless one was loaded.
    """

    def __init__(self, chooser: Recorder | Replayer, *, keep_timing_cache: bool) -> None:
        self._chooser = chooser
        self._keep_timing_cache = keep_timing_cache
        self._selector = _adapt(chooser)

    @property
    def raised(self) -> Exception | None:
        """What the chooser raised: TensorRT catches it, and fails the build."""
        raised: Exception | None = self._selector.raised
        return raised

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Set the selector."""
        config.algorithm_selector = self._selector
        if not self._keep_timing_cache:
            G_LOGGER.warning("Disabling tactic timing cache because algorithm selector is enabled.")
            config.set_flag(tensorrt().BuilderFlag.DISABLE_TIMING_CACHE)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Let the chooser conclude.

        Raises:
            BuildError: if the build is of no use.
        """
        del config
        self._chooser.finish(layers)


def _adapt(chooser: Recorder | Replayer) -> Any:  # noqa: ANN401
    """Return an IAlgorithmSelector that puts TensorRT's questions to `chooser`; its `raised` is what that raised."""
    trt = tensorrt()
    base: Any = trt.IAlgorithmSelector

    class Selector(base):  # type: ignore[misc]  # there is no type to derive from
        raised: Exception | None = None

        def __init__(self) -> None:
            # Without this, a trampoline class ends in a segmentation fault.
            base.__init__(self)

        def select_algorithms(self, context: Any, choices: Any) -> list[int]:  # noqa: ANN401
            chosen: list[int] = self._noted(lambda: chooser.select(context, choices))
            return chosen

        def report_algorithms(self, contexts: Any, choices: Any) -> None:  # noqa: ANN401
            self._noted(lambda: chooser.report(contexts, choices))

        def _noted(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401
            try:
                return call()
            except Exception as error:
                self.raised = self.raised or error
                if not isinstance(error, DebugExtError):
                    G_LOGGER.error(error)
                raise

    return Selector()
