"""The lines that the builder logs. Their wording is data of the personality where versions differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polygraphy_debug_ext.simulator.compiler.layouts import Layout
    from polygraphy_debug_ext.simulator.compiler.records import Choice, Tensor
    from polygraphy_debug_ext.simulator.personality import Personality

INVALID_TACTIC = 0xD15EA5EDD15EA5ED


class Sink(Protocol):
    """Where messages go: the user's logger, in the end."""

    def __call__(self, severity: str, text: str) -> None:
        """Take one message; the severity is a name of `ILogger.Severity`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Writes what TensorRT of this personality would write."""

    personality: Personality
    sink: Sink

    def verbose(self, text: str) -> None:
        """A line that is the same in all versions."""
        self.sink("VERBOSE", text)

    def note(self, text: str) -> None:
        """A line for everybody."""
        self.sink("INFO", text)

    def caution(self, text: str) -> None:
        """A line of warning."""
        self.sink("WARNING", text)

    def message(self, kind: str, **fields: object) -> None:
        """A line whose severity and wording differ between versions."""
        severity, template = self.personality.messages[kind]
        self.sink(severity, template.format(**fields))

    def time(self, milliseconds: float | None) -> str:
        """A time as the log has it; None is that of a tactic that does not exist."""
        return self.personality.invalid_time if milliseconds is None else f"{milliseconds:.6g}"

    def runner(self, name: str) -> str:
        """A runner as the timing lines have it."""
        return self.personality.runner_text.format(
            runner=name, implementation=self.personality.implementation(name)
        )

    def layer_information(self, choices: Iterable[Choice]) -> None:
        """The final list, as one message."""
        lines = [
            f"Layer({choice.runner}): {choice.name}, Tactic: {choice.tactic_text}, "
            f"{self._tensors(choice.inputs)} -> {self._tensors(choice.outputs)}"
            for choice in choices
        ]
        self.verbose("\n".join(["Engine Layer Information:", *lines]))

    def _tensors(self, tensors: Sequence[Tensor]) -> str:
        return ", ".join(
            self.personality.tensor_text.format(
                name=tensor.name,
                dtype=DTYPES[tensor.layout.dtype].text,
                dims=tensor.layout.dims_text(tensor.shape),
            )
            for tensor in tensors
        )


def combination(
    inputs: Sequence[Layout], outputs: Sequence[Layout], shapes: Sequence[tuple[int, ...]]
) -> str:
    """A combination of formats, such as `Half(784,1:8,28,1) -> Half(3136,1:8,112,4)`."""
    texts = [layout.strides_text(shape) for layout, shape in zip((*inputs, *outputs), shapes, strict=True)]
    return f"{', '.join(texts[: len(inputs)])} -> {', '.join(texts[len(inputs) :])}"
