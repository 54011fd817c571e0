"""Layer information as text: what `trtexec --dumpLayerInfo` prints, and what TensorRT-RTX logs at the end of a verbose build.

    Layers:
    Name: conv1_myl0_1, LayerType: correlation, Inputs: [ … ], …, TacticName: K, TacticValue: 0x…, StreamId: 0, Metadata: …
    (an empty line)
    I/O Tensors:

It says the same as the JSON of layer information. Layers in a Myelin graph have no TacticValue, jumps and copies no name of a
kernel. Built with less than detailed profiling verbosity, a line is the name of a layer and nothing else.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.formats import layer_information

if TYPE_CHECKING:
    from polygraphy_debug_ext.formats.layer_information import EngineLayer

_HEADER: Final = "Layers:"
_BEGIN: Final = re.compile(r"\s*Name: (?P<name>.+?), LayerType: (?P<type>[^,]*)(?:, |$)")
_KERNEL: Final = re.compile(
    r", TacticName: (?P<kernel>(?:(?!, TacticName: ).)*?)"
    r"(?:, TacticValue: (?P<tactic>0x[0-9a-fA-F]+))?(?=, StreamId: |, Metadata: |\s*$)"
)
_METADATA: Final = re.compile(r", Metadata: (?P<metadata>.*?)\s*$")


def begins(message: str) -> bool:
    """Whether a message of the log is the list of layers."""
    return message.startswith(f"{_HEADER}\n")


def parse(text: str, origin: str) -> tuple[EngineLayer, ...]:
    """Return the layers of the list, in the order of the engine. `origin` is named in errors.

    Raises:
        NotThisFormatError: if it has no tactics, because of the engine's profiling verbosity.
        FormatError: if it is damaged.
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip() == _HEADER), -1) + 1
    layers: list[object] = []
    for line in lines[start:]:
        if not line.strip():
            break
        layers.append(_layer(line))
    return layer_information.parse(json.dumps({"Layers": layers}), origin)


def _layer(line: str) -> dict[str, str] | str:
    begin = _BEGIN.match(line)
    if begin is None:
        return line.strip()
    layer = {"Name": begin["name"], "LayerType": begin["type"]}
    if kernel := _KERNEL.search(line, begin.end() - 2):
        layer["TacticName"] = kernel["kernel"]
        if kernel["tactic"]:
            layer["TacticValue"] = kernel["tactic"]
    if metadata := _METADATA.search(line, begin.end() - 2):
        layer["Metadata"] = metadata["metadata"]
    return layer
