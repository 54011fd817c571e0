"""Layer information as text: what `trtexec --dumpLayerInfo` prints, and what TensorRT-RTX logs at the end of a verbose build.

    Layers:
    Name: conv1_myl0_1, LayerType: correlation, Inputs: [ … ], …, TacticName: K, TacticValue: 0x…, StreamId: 0, Metadata: …
    (an empty line)
    I/O Tensors:                                                        (before TensorRT 11 "Bindings:")

It says the same as the JSON of layer information. Layers in a Myelin graph have no TacticValue, jumps and copies no name of a
kernel. Built with less than detailed profiling verbosity, a line is the name of a layer and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.layer_information import NAMES_ONLY, EngineLayer, engine_layers, tactics
from polygraphy_debug_ext.formats.log_lines import PREFIX_LIMIT, is_alone, plain
from polygraphy_debug_ext.formats.reading import chunks
from polygraphy_debug_ext.model import Assignment, Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What the line before the layers is, after its prefix.
HEADER: Final = b"Layers:"

#: What every line of a layer with its details has.
LAYER_TYPE: Final = b", LayerType: "

_BEGIN: Final = re.compile(r"Name: (?P<name>.+?), LayerType: (?P<type>[^,]*)(?:, |$)")
_KERNEL: Final = re.compile(
    r", TacticName: (?P<kernel>(?:(?!, TacticName: ).)*?)"
    r"(?:, TacticValue: (?P<tactic>0x[0-9a-fA-F]+))?(?=, StreamId: |, Metadata: |$)"
)
_METADATA: Final = ", Metadata: "

#: Fields that a line has if it is whole, and another line of the list has them.
_LAST_FIELDS: Final = (b", TacticName: ", b", StreamId: ", b", Metadata: ")

_REMEDY: Final = "Remove the file, or export it again."


def begins(message: str) -> bool:
    """Whether a message of the log is the list of layers."""
    return message.startswith(f"{HEADER.decode()}\n")


def parse(text: str, origin: str) -> tuple[EngineLayer, ...]:
    """Return the layers of the list, in the order of the engine. `origin` is named in errors.

    Raises:
        NotThisFormatError: if it has no tactics, because of the engine's profiling verbosity.
        FormatError: if it is damaged.
    """
    lines = text.split("\n")
    start = next((number for number, line in enumerate(lines) if line.strip() == HEADER.decode()), -1) + 1
    layers: list[object] = []
    for line in lines[start:]:
        if not line.strip():
            break
        layers.append(_fields(line.strip(" \t\r")))
    return engine_layers(layers, origin)


def is_layer(line: bytes) -> bool:
    """Whether a line, with or without a prefix, is that of a layer with its details."""
    return 0 <= line.find(b"Name: ", 0, PREFIX_LIMIT) < line.find(LAYER_TYPE)


def engine_layer(line: bytes, origin: str) -> EngineLayer:
    """Return the layer of a line.

    Raises:
        FormatError: if it is damaged.
    """
    text = line[line.find(b"Name: ") :].decode(errors="replace").rstrip(" \t\r\n")
    fields = _fields(text)
    if isinstance(fields, str):
        raise FormatError(origin, f"the list of layers is damaged at {text[:100]!r}", _REMEDY)
    return engine_layers([fields], origin)[0]


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` holds such a list, whatever is before it."""
    before = b""
    for line in plain(head).split(b"\n"):
        if is_layer(line) and (is_alone(line, b"Name: ") or is_header(before)):
            return True
        before = line
    return False


def is_header(line: bytes) -> bool:
    """Whether a line, with or without a prefix, begins the list."""
    return line.rstrip().endswith(HEADER) and is_alone(line, HEADER)


def has_names_only(head: bytes) -> bool:
    """Whether there is a list of names without details in a file that begins with `head`."""
    listed = False
    for line in plain(head).split(b"\n"):
        if listed and line.strip() and not is_layer(line):
            return True
        listed = is_header(line)
    return False


def read(path: Path) -> Assignment:
    """Read a file that holds one list of layers, whatever is around it.

    Raises:
        NotThisFormatError: if there is no such list, or it has no tactics because of the engine's profiling verbosity.
        FormatError: if the file cannot be read, or the list is damaged, cut off, or not the only one.
    """
    layers = tuple(engine_layer(line, str(path)) for line in _list(path))
    return Assignment(
        layers=tactics(layers),
        source=Source.LAYER_INFORMATION,
        origin=str(path),
        variant="layer information",
        fields=frozenset(),
    )


def _list(path: Path) -> Iterator[bytes]:
    """The lines of the layers."""
    first = last = b""
    ended = False
    header = False
    for line in _lines(path):
        if is_layer(line):
            if ended:
                raise FormatError(path, "more than one list of layers", "Put each into a file of its own.")
            first, last = first or line, line
            yield line
            continue
        ended = ended or bool(first)
        if header and not first and line.strip():
            raise NotThisFormatError(path, *NAMES_ONLY)
        header = is_header(line)
    if not first:
        raise NotThisFormatError(path, "not layer information (no list of layers)", _REMEDY)
    if not ended and not last.endswith(b"\n") and any(f in first and f not in last for f in _LAST_FIELDS):
        raise FormatError(path, "the list of layers is cut off", _REMEDY)


def _lines(path: Path) -> Iterator[bytes]:
    for chunk in chunks(path):
        yield from plain(chunk).splitlines(keepends=True)


def _fields(line: str) -> dict[str, str] | str:
    """The fields of a line that begins with the name; a line without fields is a name."""
    begin = _BEGIN.match(line)
    if begin is None:
        return line
    layer = {"Name": begin["name"], "LayerType": begin["type"]}
    if kernel := _KERNEL.search(line, begin.end() - 2):
        layer["TacticName"] = kernel["kernel"]
        if kernel["tactic"]:
            layer["TacticValue"] = kernel["tactic"]
    metadata = line.find(_METADATA, begin.end() - 2)
    if metadata >= 0:
        layer["Metadata"] = line[metadata + len(_METADATA) :]
    return layer
