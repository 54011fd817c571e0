"""The lines of a build log that tell something, in the words of every TensorRT from 7 to 11, behind any prefix.

Loggers put all sorts of things before a line: `[MM/DD/YYYY-HH:MM:SS] [V] [TRT]`, `[TensorRT] VERBOSE:`, an indented `[V]` in
colours, `2024-… [V:onnxruntime:…]`, `I0612 … tensorrt.cc:123]`, ` (foreignNode)`. What matters is what follows. Everything is
bytes until it is known to matter, and no pattern takes more than linear time, whatever the line is.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from polygraphy_debug_ext.model.tactic import TACTIC_MASK

#: No prefix is longer.
PREFIX_LIMIT: Final = 256

LIST: Final = b"Engine Layer Information:"
TIMING: Final = b"Timing Runner: "
COSTS: Final = b"Computing costs for "
COMBINATION: Final = b"Autotuning format combination: "
SKIPPING: Final = b"Skipping tactic"
NO_IMPLEMENTATION: Final = b"any implementation for node "
OP: Final = b"Autotuning op "
SELECTED: Final = b"The selected tactic is "
#: The builder drops the graph that it has, and tunes another one.
ANOTHER_STRATEGY: Final = b"graph using backend strategy "
VERSION: Final = b"TensorRT v"
RESOURCE: Final = b"libnvinfer_builder_resource"
RUNNING: Final = b"&&&& RUNNING TensorRT"
#: What Polygraphy says of the TensorRT that it found.
MODULE: Final = b"Loaded Module: tensorrt"
#: The runner of Myelin graphs.
MYELIN: Final = b"Myelin"
NAMED: Final = b"Set Tactic Name: "

#: What the builder calls the absence of a tactic.
NO_TACTIC: Final = 0xD15EA5EDD15EA5ED

#: Ids below are numbers of a runner's own; the ids of kernels are hashes.
_LOCAL: Final = 2**32

_ANSI: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_LINE_END: Final = re.compile(rb"\r+\n?")
_LAYER: Final = re.compile(rb"Layer\((\w+)\): ")
_ID: Final = re.compile(rb"(0x[0-9a-fA-F]{1,16}|-?\d{1,20})(?=,|\s*$)")
_TIMED_RUNNER: Final = re.compile(r"Timing Runner: (.*) \(([^()\[\]]+)(?:\[0x[0-9a-fA-F]+\])?\)$")
_SKIPPED: Final = re.compile(r"Skipping tactic ?(0x[0-9a-fA-F]{1,16}|-?\d{1,20}) due to (?:exception )?(.*)$")
_NAMED_TACTIC: Final = re.compile(rb"Tactic: (0x[0-9a-fA-F]{1,16}|-?\d{1,20})(?=\s|$)")
_NAME: Final = b"Tactic Name: "
_KERNEL: Final = re.compile(_NAME + rb"(.{1,512} Tactic: \S{1,24})")
_TIMED: Final = re.compile(rb"Tactic: (?:0x[0-9a-fA-F]{1,16}|-?\d{1,20}) Time:")
_VERSION: Final = re.compile(rb"TensorRT v(?:ersion: )?(\d{1,6}(?:\.\d{1,6}){0,4})")
_MODULE: Final = re.compile(rb"Loaded Module: tensorrt\w* +\| Version: (\d{1,6}(?:\.\d{1,6}){1,4})")
_RESOURCE: Final = re.compile(rb"libnvinfer_builder_resource\w{0,20}\.so\.(\d{1,6}(?:\.\d{1,6}){1,4})")
_FORMAT: Final = re.compile(r" \((\w{1,20})\[([^\[\]]{0,400})\]\)")
_WIDTH: Final = re.compile(r":(\d+)")

#: What may be before a line of a log: bracketed groups, and words of these forms.
_BRACKETED: Final = re.compile(rb"\[[^\]\n]{0,120}\]|\(foreignNode\)")
_WORD: Final = re.compile(rb"[A-Za-z_][\w./:-]*")
_PREFIX_WORD: Final = re.compile(
    rb"[IWEFVDTZ]\d*|(?:VERBOSE|INFO|WARN|WARNING|ERROR|DEBUG|TRACE|INTERNAL_ERROR|stdout|stderr|TRT|UTC):?|\w*[./:_-]\S*"
)


class LayerLine(NamedTuple):
    """A line of the final list: the runner, the name of the layer, the tactic (unsigned); of Myelin graphs also the tensors."""

    runner: bytes
    name: bytes
    tactic: int
    tensors: bytes


class Format(NamedTuple):
    """Data type of a tensor and, where it is vectorized, of how many elements a vector is."""

    dtype: str
    width: int


def plain(chunk: bytes) -> bytes:
    """Whole lines without colours, each ended by a line feed alone."""
    if b"\x1b" in chunk:
        chunk = _ANSI.sub(b"", chunk)
    if b"\r" in chunk:
        chunk = _LINE_END.sub(b"\n", chunk)
    return chunk


def is_alone(line: bytes, text: bytes) -> bool:
    """Whether what is before `text` in a line is nothing but what a logger puts there."""
    at = line.find(text, 0, PREFIX_LIMIT + len(text))
    if at < 0:
        return False
    words = _WORD.findall(_BRACKETED.sub(b" ", line[:at]))
    return b'"' not in line[:at] and all(_PREFIX_WORD.fullmatch(word) for word in words)


def layer_line(line: bytes) -> LayerLine | None:
    """Return what a line of the final list says.

    Raises:
        ValueError: if it is one, but is damaged.
    """
    begin = _LAYER.search(line, 0, PREFIX_LIMIT)
    if begin is None:
        return None
    # Names hold everything, commas and arrows as well: the last tactic is the one. (A tensor may be named like that, too.)
    end = len(line)
    for _ in range(8):
        at = line.rfind(b", Tactic: ", begin.end(), end)
        if at < 0:
            break
        if tactic := _ID.match(line, at + 10):
            tensors = line[tactic.end() :] if begin[1] == MYELIN else b""
            return LayerLine(begin[1], line[begin.end() : at], unsigned(tactic[1]), tensors)
        end = at
    raise ValueError(line[begin.start() : begin.start() + 100].decode(errors="replace"))


def place(line: bytes) -> tuple[str, str]:
    """Return layer and runner of a line that says what is timed next; where it tells no runner, it is empty."""
    text = line.decode(errors="replace").rstrip()
    at = text.find(TIMING.decode())
    if at >= 0 and (match := _TIMED_RUNNER.match(text, at)):
        return match[1], match[2]
    _, _, layer = text.partition(COSTS.decode())
    return layer, ""


def skipped(line: bytes) -> tuple[str, str] | None:
    """Return the tactic that was skipped, and why."""
    text = line.decode(errors="replace").rstrip()
    match = _SKIPPED.match(text, max(text.find(SKIPPING.decode()), 0))
    return None if match is None else (hexadecimal(match[1]), match[2])


def failed_node(line: bytes) -> str:
    """Return the layer for which the builder found nothing."""
    _, _, rest = line.partition(NO_IMPLEMENTATION)
    text = rest.decode(errors="replace").rstrip().partition(" due to ")[0]
    return text[:-2] if text.endswith(".)") else text.removesuffix(".")


def named_tactic(text: bytes, start: int, end: int) -> str:
    """Return the tactic that is named in a line, which begins at `start`, and is not timed up to `end`; else nothing."""
    line_end = text.find(b"\n", start, end) + 1 or end
    if (match := _NAMED_TACTIC.search(text, start, line_end)) is None or _TIMED.search(text, start, end):
        return ""
    return hexadecimal(match[1].decode())


def is_timed(text: bytes, start: int, end: int) -> bool:
    """Whether there is a line between `start` and `end` that says how long a tactic took."""
    return _TIMED.search(text, start, end) is not None


def kernels(text: bytes) -> set[bytes]:
    """Return what lines that name a kernel say, for `kernel`: one text instead of two is faster to find and to compare."""
    # A pattern is slow to find that there is none.
    return set(_KERNEL.findall(text)) if _NAME in text else set()


def kernel(written: bytes) -> tuple[str, int] | None:
    """Return a kernel and its tactic id (unsigned); None where the id says little (a number of a runner's own)."""
    name, _, text = written.rpartition(b" Tactic: ")
    match = _ID.match(text)
    tactic = NO_TACTIC if match is None else unsigned(match[1])
    return None if tactic < _LOCAL or tactic == NO_TACTIC else (name.decode(errors="replace"), tactic)


def version(line: bytes) -> str:
    """Return the version of TensorRT that a line tells: `10.16.1`; empty if it tells none."""
    if match := _VERSION.search(line):
        return _version(match[1].decode())
    match = _RESOURCE.search(line) or _MODULE.search(line)
    return "" if match is None else match[1].decode()


def _version(text: str) -> str:
    """From digits without points: 8502 is 8.5.2, 101601 is 10.16.1."""
    if "." in text:
        return text
    number = int(text)
    if len(text) == 4:  # noqa: PLR2004 - up to TensorRT 9
        return f"{number // 1000}.{number // 100 % 10}.{number % 100}"
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}" if len(text) > 4 else ""  # noqa: PLR2004


def formats(tensors: bytes) -> tuple[Format, ...]:
    """Return the formats of the tensors of a line of the final list: ` (Half[1,16:8,32,32])` after each name."""
    return tuple(
        Format(dtype, _width(dims)) for dtype, dims in _FORMAT.findall(tensors.decode(errors="replace"))
    )


def combination(line: bytes) -> tuple[Format, ...]:
    """Return the formats of a combination: `Half(784,1:8,28,1) -> Half(3136,1:8,112,4)`; strides may be formulas."""
    _, _, rest = line.partition(COMBINATION)
    found: list[Format] = []
    word = start = depth = 0
    text = rest.decode(errors="replace").partition(" where ")[0]
    for at, character in enumerate(text):
        if character == "(":
            depth += 1
            start = at if depth == 1 else start
        elif character == ")" and depth:
            depth -= 1
            if not depth:
                found.append(Format(text[word:start], _width(text[start:at])))
        if not depth and not character.isalnum():
            word = at + 1
    return tuple(found)


def unsigned(tactic: str | bytes) -> int:
    """A tactic id, printed in hexadecimal or as a signed number, as an unsigned one of 64 bits."""
    return int(tactic, 16 if tactic[1:2] in {"x", b"x"} else 10) & TACTIC_MASK


def hexadecimal(tactic: str) -> str:
    """A tactic id, however it is printed, as `0x` and 16 digits."""
    return f"0x{unsigned(tactic):016x}"


def _width(dims: str) -> int:
    match = _WIDTH.search(dims)
    return 1 if match is None else int(match[1])
