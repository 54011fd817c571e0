"""Algorithm selectors: what TensorRT offers for a layer is narrowed by filters, and what it chose is recorded.

They exist up to TensorRT 10; TensorRT 11 removed `IAlgorithmSelector`. They are our own because Polygraphy removes its
TacticRecorder and TacticReplayer. TensorRT catches what they raise and fails the build; `raised` keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import BuildError, DebugExtError
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.model.tactic import TACTIC_MASK
from polygraphy_debug_ext.trt.honour import tell
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.recording import write_replay
from polygraphy_debug_ext.trt.tactics import FIELDS, tactic_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer

_TAB = "\n    "


class Filter(Protocol):
    """Narrows what TensorRT may choose from."""

    def narrow(self, layer: str, offered: Sequence[Tactic], allowed: Sequence[int]) -> list[int]:
        """Return which of the offered tactics may be used, by their indices; `allowed` are those that others left."""

    def report(self, chosen: Mapping[str, Tactic]) -> None:
        """Hear what was chosen, by layer."""

    def finish(self) -> None:
        """Conclude.

        Raises:
            BuildError: if the build is of no use.
        """


class Recorder:
    """Keeps what TensorRT chose, and writes it to a replay if there is a path."""

    def __init__(self, path: Path | None, metadata: Mapping[str, object]) -> None:
        self._path = path
        self._metadata = metadata
        self._recorded: dict[str, Tactic] = {}

    @property
    def assignment(self) -> Assignment:
        """What was recorded last."""
        return Assignment(
            layers=self._recorded, source=Source.SELECTOR, fields=FIELDS, metadata=self._metadata
        )

    def report(self, chosen: Mapping[str, Tactic]) -> None:
        """Write the replay: from here on it is there, whatever becomes of the build."""
        self._recorded = dict(chosen)
        if self._path is not None:
            G_LOGGER.info(f"Saving tactic replay file to {self._path}")
            write_replay(self._path, self.assignment)

    def finish(self, layers: Sequence[EngineLayer]) -> None:
        """Write the replay again, with the names of the kernels that the engine tells."""
        kernels = {layer.name: layer.kernel for layer in layers if layer.kernel is not None}
        if not self._recorded or not kernels:
            return
        self._recorded = {
            name: replace(tactic, kernel=kernels.get(name)) for name, tactic in self._recorded.items()
        }
        if self._path is not None:
            write_replay(self._path, self.assignment)


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
        self._met: set[str] = set()
        self.problems: dict[str, str] = {}

    def narrow(self, layer: str, offered: Sequence[Tactic], allowed: Sequence[int]) -> list[int]:
        """Allow the recorded tactic only; any, if the layer was not recorded or the tactic is not offered."""
        wanted = self._layers.get(layer)
        if wanted is None:
            G_LOGGER.warning(
                f"Layer: {layer} was not found in the tactic replay. Falling back to default tactics."
            )
            G_LOGGER.warning(
                "Has the network changed since the tactic replay file was generated?\n"
                f"Note: Layers in the tactic replay are:{_TAB}{_TAB.join(self._layers)}",
                mode=LogMode.ONCE,
            )
            return list(allowed)
        identity = wanted.identity(self._fields)
        equal = [number for number in allowed if offered[number].identity(self._fields) == identity]
        if equal:
            return equal
        problem = "Tactic in replay was not provided by TensorRT as a choice for this layer"
        if self._require:
            raise BuildError(
                f"Layer: {layer} | {problem}",
                "Has the network or builder configuration changed since the replay file was generated?\n"
                f"Note: Tactic in replay was:{_TAB}{wanted}\nProvided choices were:{_TAB}{_TAB.join(map(str, offered))}",
            )
        self.problems[layer] = problem
        return list(allowed)

    def report(self, chosen: Mapping[str, Tactic]) -> None:
        """Hold what was chosen against what was asked for."""
        for name, selected in chosen.items():
            wanted = self._layers.get(name)
            if wanted is None:
                continue
            self._met.add(name)
            if wanted.identity(self._fields) != selected.identity(self._fields):
                self.problems.setdefault(
                    name, f"TensorRT selected a tactic different than the one specified: {selected}"
                )
            else:
                self.problems.pop(name, None)

    def finish(self) -> None:
        """Tell what was not honoured.

        Raises:
            BuildError: if something was not, and had to be.
        """
        for name in self._layers:
            if name not in self._met:
                self.problems[name] = "the engine has no such layer"
        tell(self.problems, len(self._layers), 0, require=self._require)


class Preference:
    """Prefers one tactic id at each layer that it knows, in whatever layout of the tensors; what is not offered is left free."""

    def __init__(self, tactics: Mapping[str, int]) -> None:
        self._tactics = tactics

    def narrow(self, layer: str, offered: Sequence[Tactic], allowed: Sequence[int]) -> list[int]:
        """Allow the preferred tactic only, if it is there."""
        wanted = self._tactics.get(layer)
        if wanted is None:
            return list(allowed)
        equal = [
            number
            for number in allowed
            if (offered[number].tactic or 0) & TACTIC_MASK == wanted & TACTIC_MASK
        ]
        return equal or list(allowed)

    def report(self, chosen: Mapping[str, Tactic]) -> None:
        """Whether it was followed is seen in the engine."""

    def finish(self) -> None:
        """Nothing is left to do."""


class SelectorHandler:
    """Lets filters, and a recorder if there is one, answer the questions of TensorRT's algorithm selector.

    Args:
        filters: Who narrows the choices, one after the other.
        recorder: Who is told what was chosen.
        keep_timing_cache: Whether the timing cache stays in use; with a selector it makes no sense unless one was loaded.
    """

    def __init__(
        self, filters: Sequence[Filter], recorder: Recorder | None, *, keep_timing_cache: bool
    ) -> None:
        self._filters = filters
        self._recorder = recorder
        self._keep_timing_cache = keep_timing_cache
        self._selector = _adapt(self)

    @property
    def raised(self) -> Exception | None:
        """What was raised in here: TensorRT catches it, and fails the build."""
        raised: Exception | None = self._selector.raised
        return raised

    def select(self, context: Any, choices: Sequence[Any]) -> list[int]:  # noqa: ANN401 - TensorRT has no types
        """Answer TensorRT: the indices of the choices that may be used."""
        allowed = list(range(len(choices)))
        if not self._filters:
            return allowed
        offered = [tactic_of(context, choice) for choice in choices]
        for each in self._filters:
            allowed = each.narrow(context.name, offered, allowed)
        return allowed

    def report(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Hear from TensorRT what was chosen."""
        chosen = {
            context.name: tactic_of(context, choice)
            for context, choice in zip(contexts, choices, strict=True)
        }
        for each in self._filters:
            each.report(chosen)
        if self._recorder is not None:
            self._recorder.report(chosen)

    def prepare(self, config: Any) -> None:  # noqa: ANN401
        """Set the selector."""
        config.algorithm_selector = self._selector
        if not self._keep_timing_cache:
            G_LOGGER.warning("Disabling tactic timing cache because algorithm selector is enabled.")
            config.set_flag(tensorrt().BuilderFlag.DISABLE_TIMING_CACHE)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Let all conclude.

        Raises:
            BuildError: if the build is of no use.
        """
        del config
        if self._recorder is not None:
            self._recorder.finish(layers)
        for each in self._filters:
            each.finish()


def _adapt(handler: SelectorHandler) -> Any:  # noqa: ANN401
    """Return an IAlgorithmSelector that puts TensorRT's questions to `handler`; its `raised` is what that raised."""
    trt = tensorrt()
    base: Any = trt.IAlgorithmSelector

    class Selector(base):  # type: ignore[misc]  # there is no type to derive from
        raised: Exception | None = None

        def __init__(self) -> None:
            # Without this, a trampoline class ends in a segmentation fault.
            base.__init__(self)

        def select_algorithms(self, context: Any, choices: Any) -> list[int]:  # noqa: ANN401
            chosen: list[int] = self._noted(lambda: handler.select(context, choices))
            return chosen

        def report_algorithms(self, contexts: Any, choices: Any) -> None:  # noqa: ANN401
            self._noted(lambda: handler.report(contexts, choices))

        def _noted(self, call: Callable[[], Any]) -> Any:  # noqa: ANN401
            try:
                return call()
            except Exception as error:
                self.raised = self.raised or error
                if not isinstance(error, DebugExtError):
                    G_LOGGER.error(error)
                raise

    return Selector()
