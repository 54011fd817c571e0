"""Tactic replay files: the JSON of Polygraphy's `--save-tactics`, in every dialect since 0.27, and our superset of it.

Dialects are named by a Polygraphy version that writes them: 0.29 (old type markers), 0.33 (format and data type per
tensor), 0.43 (with strides), 0.47 (objects), 0.49 (objects without a tensor format; what we write). Ours has further
keys, which Polygraphy ignores: `kernel`, `time_ms`, `cache_key`, `witnesses` and `known_by` ("kernel" or
"tactic": what else would identify it is not known, and written as 0) of a layer; `metadata` and `timing_cache` (base64 of zlib of a serialized cache) of the file.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import position, read_text_bytes
from polygraphy_debug_ext.formats.replay_members import Members
from polygraphy_debug_ext.formats.replay_records import (
    FIELDS,
    FILE_DECODER,
    REST_DECODER,
    RecordError,
    one_dialect,
    require_text,
    sentence,
    tactic_of,
    timing_cache_of,
    twice,
)
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model import Assignment, Source

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.replay_members import Scanned
    from polygraphy_debug_ext.formats.replay_records import Metadata, Rest
    from polygraphy_debug_ext.model import Tactic, TensorInfo

#: Version of the `metadata` that we write; files without it come from Polygraphy.
FORMAT_VERSION: Final = 1

#: Caches seen take up to a few megabytes; with compiled code in them, some hundred.
TIMING_CACHE_LIMIT: Final = 512 * 2**20

#: Bytes of files that are read ahead, together and each.
AHEAD_LIMIT: Final = 32 * 2**20

#: Bytes of learned layers that the cache of a processor holds beside the file that is scanned: up to these, reading one
#: file at a time is faster (by a tenth, at 1000 layers), from there on several at once (by a fifth, at 3000 layers).
IN_CACHE: Final = 16 * 2**20

_REMEDY: Final = "Remove the file, or record it again with --save-tactics."

_COMMA: Final = re.compile(rb"\A[ \t\r\n]*,")

#: The keys with which a replay can begin, whoever wrote it.
_FIRST_KEYS: Final = (b"replay", b"polygraphy_class", b"__polygraphy_encoded_TacticReplayData")


def read(path: Path) -> Assignment:
    """Read a replay file of any dialect, with the timing cache that it holds.

    Raises:
        NotThisFormatError: if the file is whole but something else.
        FormatError: if it cannot be read, or is a replay that is truncated, malformed, of an unknown version or with two
            layers of one name; the message names file, layer and field.
    """
    return _read_whole(path, read_text_bytes(path))


class Loader:
    """Reads many replays, in order to compare them: what equals something that was read before is not decoded again.

    Equal tactics are one object, in all files. What differs from build to build, and is not compared, is left out:
    `time_ms` of the tactics, and `timing_cache`.
    """

    def __init__(self) -> None:
        self._members = Members()
        self._ready: dict[Path, Assignment] = {}

    def look_ahead(self, paths: Sequence[Path]) -> None:
        """Read files that will be asked for, several at once, where that is faster; what is no ordinary replay is left alone."""
        self._ready = {}
        if self._members.size <= IN_CACHE:
            return
        found: dict[Path, bytes] = {}
        for path in paths:
            with contextlib.suppress(FormatError):
                found[path] = read_text_bytes(path, limit=AHEAD_LIMIT)
            if sum(map(len, found.values())) > AHEAD_LIMIT:
                break
        scanned = self._members.scan_all(list(found.values()))
        for (path, data), each in zip(found.items(), scanned, strict=True):
            assignment = None if each is None else _of_known_members(path, data, each)
            if assignment is not None:
                self._ready[path] = assignment

    def ordinary(self, path: Path) -> Assignment | None:
        """Return what looking ahead has read of a file, or read it, if it is an ordinary replay; None if it is anything else."""
        ready = self._ready.pop(path, None)
        if ready is not None:
            return ready
        try:
            return self._scanned(path, read_text_bytes(path))
        except FormatError:
            return None

    def read(self, path: Path) -> Assignment:
        """Read a replay file.

        Raises:
            NotThisFormatError, FormatError: as the function `read`. A timing cache may be damaged unseen, if it is a string of JSON.
        """
        data = read_text_bytes(path)
        assignment = self._scanned(path, data)
        if assignment is not None:
            return assignment
        # Whatever is wrong is named there.
        return self.interned(_read_whole(path, data, decode_cache=False))

    def _scanned(self, path: Path, data: bytes) -> Assignment | None:
        scanned = self._members.scan(data)
        return None if scanned is None else _of_known_members(path, data, scanned)

    def interned(self, assignment: Assignment) -> Assignment:
        """Return the same assignment, from whatever source, with tactics that are the same objects as equal ones of others."""
        return replace(assignment, layers=self._members.interned(assignment.layers))


def _of_known_members(path: Path, data: bytes, scanned: Scanned) -> Assignment | None:
    """Read what is not a layer; None if anything is wrong."""
    try:
        # What follows the layers is decoded as if nothing had been before it.
        file = REST_DECODER.decode(b"{" + _COMMA.sub(b"", data[scanned.end :], count=1))
        if file.replay is not msgspec.UNSET:
            return None
        return _assignment(path, file, scanned.layers, scanned.dialects)
    except (msgspec.MsgspecError, RecursionError, FormatError, RecordError):
        return None


def _read_whole(path: Path, data: bytes, *, decode_cache: bool = True) -> Assignment:
    try:
        file = FILE_DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise _not_decoded(path, data, error) from error
    except RecursionError as error:
        raise FormatError(path, "nested too deeply to be a tactic replay", _REMEDY) from error
    dialects: set[str] = set()
    _require_replay(path, file)
    layers = {name: _layer(path, name, bytes(raw), dialects) for name, raw in file.replay.items()}
    try:
        repeated = twice(data)
    except RecursionError as error:
        raise FormatError(path, "nested too deeply to be a tactic replay", _REMEDY) from error
    if repeated is not None:
        raise FormatError(path, f"{repeated} occurs twice, so that what was chosen is not known", _REMEDY)
    try:
        assignment = _assignment(path, file, layers, dialects)
    except RecordError as error:
        raise FormatError(path, str(error), _REMEDY) from error
    if not decode_cache:
        return assignment
    try:
        cache = timing_cache_of(file.timing_cache)
    except RecordError as error:
        raise FormatError(path, str(error), _REMEDY) from error
    return assignment if cache is None else replace(assignment, timing_cache=_inflated(path, cache))


def _assignment(
    path: Path, file: Rest, layers: Mapping[str, Tactic], dialects: Collection[str]
) -> Assignment:
    _require_replay(path, file)
    require_text(file.timing_cache)
    variant = "0.29" if file.legacy_marker is not None else one_dialect(dialects)
    return Assignment(
        layers=layers,
        source=_source(path, file.metadata),
        origin=str(path),
        variant=variant,
        fields=FIELDS[variant],
        metadata=dict(file.metadata.environment) if file.metadata else {},
    )


def _require_replay(path: Path, file: Rest) -> None:
    if file.legacy_marker is None and file.polygraphy_class != "TacticReplayData":
        found = (
            f"polygraphy_class is {file.polygraphy_class!r}"
            if file.polygraphy_class
            else "polygraphy_class is missing"
        )
        raise NotThisFormatError(path, f"not a tactic replay ({found})", _REMEDY)
    if file.metadata is not None and file.metadata.format_version > FORMAT_VERSION:
        raise FormatError(
            path,
            f"metadata.format_version is {file.metadata.format_version}, but this version reads up to {FORMAT_VERSION}",
            "Upgrade polygraphy-debug-ext.",
        )


def write(path: Path, assignment: Assignment) -> None:
    """Write a replay that this reader, and Polygraphy 0.46 and later, can read. A file that is there is replaced.

    Raises:
        OSError: if the file cannot be written; the file that was there is whole then.
    """
    document: dict[str, object] = {
        "replay": {name: _layer_document(tactic) for name, tactic in assignment.layers.items()},
        "metadata": {
            "format_version": FORMAT_VERSION,
            "source": assignment.source.value,
            "environment": dict(assignment.metadata),
        },
        "polygraphy_class": "TacticReplayData",
    }
    if assignment.timing_cache is not None:
        document["timing_cache"] = zlib.compress(assignment.timing_cache)
    write_atomically(path, msgspec.json.format(msgspec.json.encode(document), indent=4))


def _layer(path: Path, name: str, raw: bytes, dialects: set[str]) -> Tactic:
    try:
        return tactic_of(raw, dialects)
    except RecordError as error:
        raise FormatError(path, f"layer {name!r}: {error}", _REMEDY) from error
    except msgspec.DecodeError as error:
        raise FormatError(path, f"layer {name!r}: {sentence(error)}", _REMEDY) from error
    except RecursionError as error:
        raise FormatError(path, f"layer {name!r}: nested too deeply", _REMEDY) from error


def _source(path: Path, metadata: Metadata | None) -> Source:
    if metadata is None:
        return Source.REPLAY
    try:
        return Source(metadata.source)
    except ValueError as error:
        raise FormatError(
            path, f"metadata.source {metadata.source!r} is unknown", "Upgrade polygraphy-debug-ext."
        ) from error


def _inflated(path: Path, data: bytes) -> bytes:
    """Return the timing cache; a few bytes could stand for more than fits into memory."""
    inflater = zlib.decompressobj()
    try:
        cache = inflater.decompress(data, TIMING_CACHE_LIMIT)
    except zlib.error as error:
        raise FormatError(path, f"timing_cache: damaged ({error})", _REMEDY) from error
    if inflater.unconsumed_tail:
        raise FormatError(path, f"timing_cache: more than the limit of {TIMING_CACHE_LIMIT} bytes", _REMEDY)
    if not inflater.eof:
        raise FormatError(path, "timing_cache: truncated", _REMEDY)
    return cache


def _not_decoded(path: Path, data: bytes, error: msgspec.MsgspecError) -> FormatError:
    """Tell a damaged replay, which must not be lost, from a file of another kind, which may lie beside it."""
    if isinstance(error, msgspec.ValidationError):
        try:
            document = msgspec.json.decode(data)
        except (msgspec.MsgspecError, RecursionError):
            document = {}
        if not isinstance(document, dict) or "replay" not in document:
            return NotThisFormatError(path, "not a tactic replay (JSON without a 'replay' object)", _REMEDY)
        return FormatError(path, sentence(error), _REMEDY)
    if not data.strip() and path.suffix == ".json":
        # Nothing but the name can tell what it should have been: a replay whose build died as it was opened.
        return FormatError(path, "empty, not a tactic replay", _REMEDY)
    if not _begins_as_replay(data):
        return NotThisFormatError(path, "not a tactic replay (not JSON)", _REMEDY)
    if "truncated" in str(error):
        return FormatError(
            path, f"truncated tactic replay ({position(data, len(data))}: the file ends there)", _REMEDY
        )
    place = re.search(r"\(byte (\d+)\)", str(error))
    where = position(data, int(place[1])) if place else "somewhere"
    return FormatError(path, f"damaged tactic replay ({where}: {sentence(error)})", _REMEDY)


def _begins_as_replay(data: bytes) -> bool:
    match = re.match(rb'\s*\{\s*(?:"([^"]*)("?))?', data)
    if match is None:
        return False
    key = match[1] or b""
    return key in _FIRST_KEYS if match[2] else any(known.startswith(key) for known in _FIRST_KEYS)


def _layer_document(tactic: Tactic) -> dict[str, object]:
    document: dict[str, object] = {
        # Polygraphy needs numbers, also where there are none.
        "implementation": tactic.implementation or 0,
        "tactic": tactic.tactic or 0,
        "inputs": [_tensor_document(info) for info in tactic.inputs],
        "outputs": [_tensor_document(info) for info in tactic.outputs],
    }
    extras = {"kernel": tactic.kernel, "time_ms": tactic.time_ms, "cache_key": tactic.cache_key}
    if tactic.witnesses:
        document["witnesses"] = sorted(witness.value for witness in tactic.witnesses)
    if tactic.tactic is None:
        document["known_by"] = "kernel"
    elif tactic.implementation is None:
        document["known_by"] = "tactic"
    document.update({key: value for key, value in extras.items() if value is not None})
    document["polygraphy_class"] = "Algorithm"
    return document


def _tensor_document(info: TensorInfo) -> dict[str, object]:
    return {
        "dtype": f"DataType.{info.dtype}",
        "strides": list(info.strides or ()),
        "vectorized_dim": info.vectorized_dim,
        "components_per_element": info.components_per_element,
        "polygraphy_class": "TensorInfo",
    }
