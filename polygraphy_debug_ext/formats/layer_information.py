"""Layer information of an engine: the JSON of IEngineInspector and of `trtexec --exportLayerInfo`, TensorRT 8.2 to 11.x.

Layers of a Myelin graph (`<op>_myl3_0`: graph 3, position 0) have a kernel name but no tactic id, and the numbers in their
names change from build to build: their stable name is that of the ONNX layers in their metadata.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import read_text_bytes
from polygraphy_debug_ext.model import Assignment, Source, Tactic

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_REMEDY: Final = "Remove the file, or export it again."
#: Why layer information has no tactics, and what to do about it.
NAMES_ONLY: Final = (
    "no tactic information: built with profiling verbosity LAYER_NAMES_ONLY",
    "Rebuild with --profilingVerbosity=detailed (trtexec), or --profiling-verbosity detailed (Polygraphy).",
)
_MYELIN_SUFFIX: Final = re.compile(r"_myl[A-Za-z0-9]*_\d+$")
_ONNX_LAYER: Final = "[ONNX Layer: "
_SEPARATORS: Final = re.compile("[\x1e\x1f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayer:
    """One layer of an engine; `tactic` (unsigned) and `kernel` are None where it does not tell them."""

    name: str
    layer_type: str
    tactic: int | None
    kernel: str | None
    onnx_layers: tuple[str, ...]

    @property
    def in_myelin(self) -> bool:
        """Whether it is a layer of a Myelin graph."""
        return _MYELIN_SUFFIX.search(self.name) is not None

    @property
    def op(self) -> str:
        """Its name without the numbers that change from build to build."""
        return _MYELIN_SUFFIX.sub("", self.name)


def read(path: Path) -> Assignment:
    """Read a file of layer information.

    Raises:
        NotThisFormatError: if it is something else, or has no tactics because of the engine's profiling verbosity.
        FormatError: if it cannot be read, or is damaged; the message names file, layer and field.
    """
    layers = parse(read_text_bytes(path), str(path))
    return Assignment(
        layers=tactics(layers),
        source=Source.LAYER_INFORMATION,
        origin=str(path),
        variant="layer information",
        fields=frozenset(),
    )


def parse(data: bytes | str, origin: str) -> tuple[EngineLayer, ...]:
    """Return the layers, in the order of the engine. `origin` is named in errors.

    Raises:
        NotThisFormatError, FormatError: as `read`.
    """
    try:
        # TensorRT 8.6 writes control characters as they are.
        document = json.loads(data, strict=False)
    except (ValueError, RecursionError) as error:
        head = data[:4096] if isinstance(data, str) else data[:4096].decode(errors="replace")
        if re.match(r'\s*\{\s*"Layers"', head):
            raise FormatError(origin, f"damaged layer information ({error})", _REMEDY) from error
        raise NotThisFormatError(origin, "not layer information (not JSON)", _REMEDY) from error
    entries = document.get("Layers") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise NotThisFormatError(origin, "not layer information (JSON without a list 'Layers')", _REMEDY)
    return engine_layers(entries, origin)


def engine_layers(entries: Sequence[object], origin: str) -> tuple[EngineLayer, ...]:
    """Return the layers that objects with the fields of layer information stand for. `origin` is named in errors.

    Raises:
        NotThisFormatError: if they are names alone.
        FormatError: if a field is not what it should be.
    """
    if entries and all(isinstance(entry, str) for entry in entries):
        raise NotThisFormatError(origin, *NAMES_ONLY)
    return tuple(_layer(entry, number, origin) for number, entry in enumerate(entries))


def stable_names(layers: tuple[EngineLayer, ...]) -> list[str]:
    """Return a name for each layer that the same layer has in another build; equal ones are numbered."""
    seen: Counter[str] = Counter()
    names = []
    for layer in layers:
        name = layer.name
        if layer.in_myelin:
            name = " + ".join(layer.onnx_layers) or layer.op
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return names


def tactics(layers: tuple[EngineLayer, ...]) -> dict[str, Tactic]:
    """Return the tactic of each layer that has one, by its stable name."""
    return {
        name: Tactic(implementation=None, tactic=layer.tactic, kernel=layer.kernel)
        for name, layer in zip(stable_names(layers), layers, strict=True)
        if layer.tactic is not None or layer.kernel is not None
    }


def _layer(entry: object, number: int, origin: str) -> EngineLayer:
    if not isinstance(entry, dict):
        raise FormatError(origin, f"layer {number}: {type(entry).__name__}, not an object", _REMEDY)
    name = _text(entry, "Name", number, origin)
    if not name:
        raise FormatError(origin, f"layer {number}: Name is missing", _REMEDY)
    return EngineLayer(
        name=name,
        layer_type=_text(entry, "LayerType", number, origin),
        tactic=_tactic(entry.get("TacticValue"), name, origin),
        kernel=_text(entry, "TacticName", number, origin) or None,
        onnx_layers=_onnx_layers(_text(entry, "Metadata", number, origin)),
    )


def _onnx_layers(metadata: str) -> tuple[str, ...]:
    """The names in `[ONNX Layer: a]`, with a control character between two of them."""
    parts = [part.partition(_ONNX_LAYER)[2] for part in _SEPARATORS.split(metadata) if part.endswith("]")]
    return tuple(part[:-1] for part in parts if part)


def _text(entry: dict[str, Any], field: str, number: int, origin: str) -> str:
    value = entry.get(field, "")
    if not isinstance(value, str):
        layer = entry.get("Name", number)
        raise FormatError(origin, f"layer {layer!r}: {field} is {type(value).__name__}, not text", _REMEDY)
    return value


def _tactic(value: object, layer: str, origin: str) -> int | None:
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value):
        raise FormatError(
            origin, f"layer {layer!r}: TacticValue is {value!r}, not 0x and up to 16 digits", _REMEDY
        )
    return int(value, 16)
