"""The inspector: what the engine knows about its layers, as JSON or as one line each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Bound, Stored
from polygraphy_debug_ext.simulator.compiler.describe import describe, describe_io

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.compiler.records import Engine

METADATA = {"Multi-Device": "Disabled"}


class EngineInspector(Bound):
    """Looks into an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    execution_context: Stored[object] = Stored(None)

    def get_layer_information(self, layer_index: int, format: BoundEnum) -> str:  # noqa: A002 - TensorRT's name
        """About one layer; how much depends on the profiling verbosity of the build."""
        return self._information(layer_index, format.name)

    def get_engine_information(self, format: BoundEnum) -> str:  # noqa: A002 - TensorRT's name
        """About all layers."""
        layers = [self._information(index, format.name) for index in range(len(self._engine.layers))]
        bindings = [binding for binding in self._engine.bindings if not binding.is_debug]
        if self._schema["io"] == "I/O Tensors":
            return self._newer(layers, [describe_io(binding) for binding in bindings], format.name)
        names = [binding.name for binding in bindings]
        if format.name == "ONELINE":
            return "\n".join([f"Layers: {layers[0]}", *layers[1:], "Bindings:", *names, ""])
        joined = "\n,".join(layers)
        return f'{{"Layers": [{joined}\n],\n"Bindings": {json.dumps(names)}}}'

    @property
    def _schema(self) -> Mapping[str, object]:
        return self._api.personality.layer_information

    def _newer(self, layers: list[str], ends: list[dict[str, object]], form: str) -> str:
        """What newer versions write: inputs and outputs with all that is known about them."""
        if form == "ONELINE":
            lines = [f" {_oneline(end)}" for end in ends]
            extra = [f" {key}: {value}" for key, value in METADATA.items()]
            return "\n".join(
                ["Layers:", *layers, "", "I/O Tensors:", *lines, "", "Engine Metadata:", *extra, ""]
            )
        fields = {
            "ProfilingVerbosity": self._engine.verbosity,
            "Layers": [json.loads(layer) for layer in layers],
            "I/O Tensors": ends,
            "Engine Metadata": METADATA,
        }
        return json.dumps(fields, indent=1)

    def _information(self, index: int, form: str) -> str:
        choice = self._engine.layers[index]
        if self._engine.verbosity == "NONE":
            return "{}" if form == "JSON" else ""
        if self._engine.verbosity != "DETAILED":
            return json.dumps(choice.name) if form == "JSON" else choice.name
        fields = describe(choice, self._schema, in_context=self.execution_context is not None)
        return json.dumps(fields, indent=2) if form == "JSON" else _oneline(fields)


def _oneline(fields: object) -> str:
    """Fields as one line: `Name: N, Inputs: [ { Name: x, ... } ], ...`."""
    if isinstance(fields, dict):
        return ", ".join(f"{key}: {_nested(value)}" for key, value in fields.items())
    return str(fields)


def _nested(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {_oneline(value)} }}"
    if isinstance(value, (list, tuple)):
        brackets = "[ {} ]" if value and isinstance(value[0], dict) else "[{}]"
        return brackets.format(",".join(_nested(entry) for entry in value))
    return str(value).lower() if isinstance(value, bool) else str(value)
