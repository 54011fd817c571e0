"""Algorithm selectors: one that records what TensorRT chose, one that forces what was recorded.

They exist up to TensorRT 10; TensorRT 11 removed `IAlgorithmSelector`. They are our own because Polygraphy removes its
TacticRecorder and TacticReplayer. TensorRT catches what they raise and fails the build; `raised` keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import BuildError, DebugExtError, UsageError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.tactics import FIELDS, tactic_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_TAB = "\n    "


class Recorder:
    """Writes what TensorRT chose to a replay."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.recorded: Assignment | None = None

    def select(self, context: Any, choices: Sequence[Any]) -> list[int]:  # noqa: ANN401 - TensorRT has no types
        """Leave the choice to TensorRT."""
        del context
        return list(range(len(choices)))

    def report(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Write the replay: from here on it is there, whatever becomes of the build."""
        layers = {
            context.name: tactic_of(context, choice)
            for context, choice in zip(contexts, choices, strict=True)
        }
        self.recorded = Assignment(layers=layers, source=Source.SELECTOR, fields=FIELDS)
        G_LOGGER.info(f"Saving tactic replay file to {self._path}")
        self._write(self.recorded)

    def add_kernels(self, kernels: dict[str, str]) -> None:
        """Write the replay again, with the names of the kernels by layer."""
        if self.recorded is None or not kernels:
            return
        layers = {
            name: _with_kernel(tactic, kernels.get(name)) for name, tactic in self.recorded.layers.items()
        }
        self._write(Assignment(layers=layers, source=Source.SELECTOR, fields=FIELDS))

    def _write(self, assignment: Assignment) -> None:
        try:
            replay.write(self._path, assignment)
        except OSError as error:
            raise BuildError(
                f"The tactic replay {self._path} cannot be written ({error.strerror})",
                "Make room or mend the permissions.",
            ) from error


class Replayer:
    """Forces the tactics of a replay, in the words of Polygraphy's."""

    def __init__(self, assignment: Assignment) -> None:
        self._layers = assignment.layers
        # Only what both sides record can be compared.
        self._fields = assignment.fields & FIELDS

    def select(self, context: Any, choices: Sequence[Any]) -> list[int]:  # noqa: ANN401
        """Allow the recorded tactic only; any, if the layer was not recorded."""
        everything = list(range(len(choices)))
        if not self._layers:
            return everything
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
        if not equal:
            raise BuildError(
                f"Layer: {context.name} | Tactic in replay was not provided by TensorRT as a choice for this layer",
                "Has the network or builder configuration changed since the replay file was generated?\n"
                f"Note: Tactic in replay was:{_TAB}{wanted}\nProvided choices were:{_TAB}{_TAB.join(map(str, offered))}",
            )
        return equal

    def report(self, contexts: Sequence[Any], choices: Sequence[Any]) -> None:
        """Refuse an engine that does not have what was asked for."""
        for context, choice in zip(contexts, choices, strict=True):
            wanted = self._layers.get(context.name)
            selected = tactic_of(context, choice)
            if wanted is not None and wanted.identity(self._fields) != selected.identity(self._fields):
                raise BuildError(
                    f"Layer: {context.name} | TensorRT selected a tactic different than the one specified in the tactic replay",
                    f"Note: Tactic in replay was:{_TAB}{wanted}, but TensorRT selected:{_TAB}{selected}",
                )


def adapt(chooser: Recorder | Replayer) -> Any:  # noqa: ANN401
    """Return an IAlgorithmSelector that puts TensorRT's questions to `chooser`; its `raised` is what that raised.

    Raises:
        UsageError: if this TensorRT has no algorithm selectors.
    """
    trt = tensorrt()
    base: Any = getattr(trt, "IAlgorithmSelector", None)
    if base is None:
        raise UsageError(
            f"{trt.__name__} {trt.__version__} has no algorithm selectors (IAlgorithmSelector was removed in TensorRT 11), so "
            "tactics can be neither recorded with --save-tactics nor forced with --load-tactics",
            "Use TensorRT 8.5 to 10.x, or leave these options out; recording through the editable timing cache, which "
            "replaces them, is not supported yet.",
        )

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


def _with_kernel(tactic: Tactic, kernel: str | None) -> Tactic:
    return Tactic(
        implementation=tactic.implementation,
        tactic=tactic.tactic,
        inputs=tactic.inputs,
        outputs=tactic.outputs,
        kernel=kernel,
        time_ms=tactic.time_ms,
    )
