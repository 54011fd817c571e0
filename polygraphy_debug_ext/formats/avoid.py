"""Avoid lists: tactics that must not get into an engine, with the reason and the versions of TensorRT for which that holds.

    {"format_version": 1, "avoid": [{"layer": "conv4*", "kernel": "sm80_*", "tactic": "0x1d93b2a116b83eac",
      "implementation": "0x80000009", "tensorrt": {"from": "10.0", "before": "10.5"}, "reason": "...", "evidence": {...}}]}

An entry names a kernel, a tactic or an implementation, at one layer or at any; what it names must all match. `layer` and `kernel` are
shell-style patterns for the whole name, and case counts; a name that is equal matches as well, as layer names hold brackets. The range
of versions has its start, and not its end, as in the errata files of cuDNN.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import read_text_bytes
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model.tactic import IMPLEMENTATION_MASK, TACTIC_MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

FORMAT_VERSION: Final = 1

#: Bytes; a list is written by people, or by one run at a time.
SIZE_LIMIT: Final = 64 * 2**20
#: Characters of a pattern; names of fused layers can be long.
_PATTERN_LIMIT: Final = 2**16

_REMEDY: Final = "Correct the entry, or write the list again with --save-avoid."
_VERSION: Final = re.compile(r"\d{1,6}(\.\d{1,6}){0,3}")
_PROFILE: Final = re.compile(r" \[profile \d+\]$")
_NUMBER: Final = re.compile(r" #\d+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvoidEntry:
    """What to avoid. Patterns and ids that are None match anything; `tactic` and `implementation` are unsigned.

    `start` and `before` are versions of TensorRT (`10.5`), or None where the range is open. `evidence` is for people and other programs.
    """

    layer: str | None = None
    kernel: str | None = None
    tactic: int | None = None
    implementation: int | None = None
    start: str | None = None
    before: str | None = None
    reason: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Freeze the evidence, and bring ids into one form."""
        object.__setattr__(self, "evidence", MappingProxyType(dict(self.evidence)))
        if self.tactic is not None:
            object.__setattr__(self, "tactic", self.tactic & TACTIC_MASK)
        if self.implementation is not None:
            object.__setattr__(self, "implementation", self.implementation & IMPLEMENTATION_MASK)

    def applies_to(self, version: str) -> bool:
        """Whether it holds for this version of TensorRT; for one that cannot be read it does."""
        here = _parts(version)
        if not here:
            return True
        if self.start is not None and here < _parts(self.start):
            return False
        return self.before is None or here < _parts(self.before)

    def is_at(self, layer: str) -> bool:
        """Whether it is about this layer. Copies for other profiles, and repeated ones, are known by the name of the first as well."""
        if self.layer is None:
            return True
        return any(_matches(name, self.layer) for name in _names(layer))

    def matches(
        self, layer: str, *, kernel: str | None, tactic: int | None, implementation: int | None = None
    ) -> bool:
        """Whether this is to be avoided at a layer. What is not known (None) does not speak against it, if something else is.

        Avoiding too much costs time; avoiding too little costs the engine.
        """
        if not self.is_at(layer):
            return False
        answers = [
            None if self.kernel is None or kernel is None else _matches(kernel, self.kernel),
            None if self.tactic is None or tactic is None else self.tactic == tactic & TACTIC_MASK,
            None
            if self.implementation is None or implementation is None
            else self.implementation == implementation & IMPLEMENTATION_MASK,
        ]
        return True in answers and False not in answers

    def __str__(self) -> str:
        """What it names, for messages."""
        named = [
            f"layer {self.layer}" if self.layer is not None else "",
            f"kernel {self.kernel}" if self.kernel is not None else "",
            f"tactic {self.tactic:#018x}" if self.tactic is not None else "",
            f"implementation {self.implementation:#x}" if self.implementation is not None else "",
        ]
        return ", ".join(filter(None, named))

    @property
    def versions(self) -> str:
        """The range of versions, for messages; empty where it is open on both sides."""
        words = [f"from {self.start}" if self.start else "", f"before {self.before}" if self.before else ""]
        return " ".join(filter(None, words))


class _Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    start: str | None = msgspec.field(name="from", default=None)
    before: str | None = None


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    layer: str | None = None
    kernel: str | None = None
    tactic: str | int | None = None
    implementation: str | int | None = None
    tensorrt: _Range | None = None
    reason: str = ""
    evidence: dict[str, Any] = {}


class _File(msgspec.Struct, frozen=True):
    avoid: list[msgspec.Raw]
    format_version: int


_FILE_DECODER: Final = msgspec.json.Decoder(_File)
_ENTRY_DECODER: Final = msgspec.json.Decoder(_Entry)


def read(path: Path) -> tuple[AvoidEntry, ...]:
    """Read an avoid list. Unknown keys are refused: a key that is misspelt would make an entry avoid more than it says.

    Raises:
        NotThisFormatError: if the file is whole but something else.
        FormatError: if it is missing, cannot be read, is damaged or of an unknown version; the message names entry and field.
    """
    data = read_text_bytes(path, limit=SIZE_LIMIT)
    try:
        file = _FILE_DECODER.decode(data)
    except msgspec.ValidationError as error:
        raise NotThisFormatError(path, f"not an avoid list ({_sentence(error)})", _REMEDY) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(path, f"damaged avoid list ({error})", _REMEDY) from error
    if not 1 <= file.format_version <= FORMAT_VERSION:
        raise FormatError(
            path,
            f"format_version is {file.format_version}, but this version reads {FORMAT_VERSION}",
            "Upgrade polygraphy-debug-ext.",
        )
    return tuple(_read_entry(path, number, bytes(raw)) for number, raw in enumerate(file.avoid))


def write(path: Path, entries: Iterable[AvoidEntry]) -> None:
    """Write an avoid list. A file that is there is replaced.

    Raises:
        OSError: if the file cannot be written; the file that was there is whole then.
    """
    document = {
        "format_version": FORMAT_VERSION,
        "avoid": [msgspec.to_builtins(_written(entry)) for entry in entries],
    }
    write_atomically(path, msgspec.json.format(msgspec.json.encode(document), indent=4) + b"\n")


def _read_entry(path: Path, number: int, raw: bytes) -> AvoidEntry:
    where = f"avoid[{number}]"
    try:
        entry = _ENTRY_DECODER.decode(raw)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FormatError(path, f"{where}: {_sentence(error)}", _REMEDY) from error
    for name, pattern in (("layer", entry.layer), ("kernel", entry.kernel), ("reason", entry.reason)):
        if pattern is not None and (len(pattern) > _PATTERN_LIMIT or (name != "reason" and not pattern)):
            raise FormatError(path, f"{where}.{name}: empty, or too long", _REMEDY)
        if pattern is not None and any(not character.isprintable() for character in pattern):
            raise FormatError(path, f"{where}.{name}: has control characters", _REMEDY)
    if entry.kernel is None and entry.tactic is None and entry.implementation is None:
        raise FormatError(
            path, f"{where}: names no kernel, tactic or implementation: nothing could be left to use", _REMEDY
        )
    versions = entry.tensorrt or _Range()
    for name, version in (("from", versions.start), ("before", versions.before)):
        if version is not None and not _VERSION.fullmatch(version):
            raise FormatError(path, f"{where}.tensorrt.{name}: {version!r} is no version", _REMEDY)
    if versions.start and versions.before and not _parts(versions.start) < _parts(versions.before):
        raise FormatError(
            path,
            f"{where}.tensorrt: no version is from {versions.start} and before {versions.before}",
            _REMEDY,
        )
    return AvoidEntry(
        layer=entry.layer,
        kernel=entry.kernel,
        tactic=_id(path, f"{where}.tactic", entry.tactic, 64),
        implementation=_id(path, f"{where}.implementation", entry.implementation, 32),
        start=versions.start,
        before=versions.before,
        reason=entry.reason,
        evidence=entry.evidence,
    )


def _id(path: Path, where: str, value: str | int | None, bits: int) -> int | None:
    """A tactic or implementation, as a number or as text with or without `0x`; signed or not."""
    if value is None:
        return None
    if isinstance(value, str):
        if not re.fullmatch(r"-?(0x[0-9a-fA-F]{1,16}|\d{1,20})", value):
            raise FormatError(path, f"{where}: {value[:40]!r} is no number", _REMEDY)
        value = int(value, 16 if "x" in value else 10)
    if not -(2 ** (bits - 1)) <= value < 2**bits:
        raise FormatError(path, f"{where}: {value} is out of range", _REMEDY)
    mask: int = 2**bits - 1
    return value & mask


def _written(entry: AvoidEntry) -> _Entry:
    ranged = entry.start is not None or entry.before is not None
    return _Entry(
        layer=entry.layer,
        kernel=entry.kernel,
        tactic=None if entry.tactic is None else f"{entry.tactic:#018x}",
        implementation=None if entry.implementation is None else f"{entry.implementation:#x}",
        tensorrt=_Range(start=entry.start, before=entry.before) if ranged else None,
        reason=entry.reason,
        evidence=dict(entry.evidence),
    )


def _parts(version: str) -> tuple[int, ...]:
    """The numbers at the start of a version, without zeros at the end: 10.0 begins where 10 does."""
    match = _VERSION.match(version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _names(layer: str) -> tuple[str, ...]:
    plain = _NUMBER.sub("", layer)
    return (layer, plain, _PROFILE.sub("", plain))


def _matches(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern)


def _sentence(error: Exception) -> str:
    return re.sub(r" - at `\$\.?(.*)`$", r" (\1)", str(error)).replace("`", "'")
