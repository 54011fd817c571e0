"""Tactic replay files: the JSON of Polygraphy's `--save-tactics`, in every dialect since 0.27, and our superset of it.

Dialects are named by a Polygraphy version that writes them: 0.29 (old type markers), 0.33 (format and data type per
tensor), 0.43 (with strides), 0.47 (objects), 0.49 (objects without a tensor format; what we write). Ours has further
keys, which Polygraphy ignores: `kernel`, `time_ms`, `cache_key`, `witnesses` and `known_by` ("kernel" or
"tactic": what else would identify it is not known, and written as 0) of a layer; `metadata` and `timing_cache` (base64 of zlib of a serialized cache) of the file.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import position, read_text_bytes
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model import Assignment, Field, Source, Tactic, TensorInfo, Witness

if TYPE_CHECKING:
    from pathlib import Path

#: Version of the `metadata` that we write; files without it come from Polygraphy.
FORMAT_VERSION: Final = 1

#: Caches seen take up to a few megabytes; with compiled code in them, some hundred.
TIMING_CACHE_LIMIT: Final = 512 * 2**20

_CACHE_KEY: Final = re.compile(r"0x[0-9a-fA-F]{32}")

_REMEDY: Final = "Remove the file, or record it again with --save-tactics."

#: What each dialect records of a tensor.
_FIELDS: Final = {
    "0.29": frozenset({Field.DTYPE, Field.TENSOR_FORMAT}),
    "0.33": frozenset({Field.DTYPE, Field.TENSOR_FORMAT}),
    "0.43": frozenset({Field.DTYPE, Field.TENSOR_FORMAT, Field.STRIDES}),
    "0.47": frozenset(Field),
    "0.49": frozenset(Field) - {Field.TENSOR_FORMAT},
}

#: The keys with which a replay can begin, whoever wrote it.
_FIRST_KEYS: Final = (b"replay", b"polygraphy_class", b"__polygraphy_encoded_TacticReplayData")


class _TensorInfo(msgspec.Struct, frozen=True):
    dtype: str
    strides: tuple[int, ...] | None = None
    vectorized_dim: int | None = None
    components_per_element: int | None = None
    tensor_format: str | None = None


class _Algorithm(msgspec.Struct, frozen=True):
    implementation: int
    tactic: int
    # Up to 0.45 a tensor is a list: format, data type and, since 0.42.1, strides.
    inputs: list[_TensorInfo | list[str | list[int]]]
    outputs: list[_TensorInfo | list[str | list[int]]]
    kernel: str | None = None
    time_ms: float | None = None
    cache_key: str | None = None
    witnesses: list[Witness] = []
    known_by: str | None = None


class _Metadata(msgspec.Struct, frozen=True):
    format_version: int
    source: str = Source.REPLAY.value
    environment: dict[str, Any] = {}


class _File(msgspec.Struct, frozen=True):
    replay: dict[str, msgspec.Raw]
    polygraphy_class: str | None = None
    legacy_marker: str | None = msgspec.field(name="__polygraphy_encoded_TacticReplayData", default=None)
    metadata: _Metadata | None = None
    timing_cache: bytes | None = None


_FILE_DECODER: Final = msgspec.json.Decoder(_File)
_LAYER_DECODER: Final = msgspec.json.Decoder(_Algorithm)


def read(path: Path) -> Assignment:
    """Read a replay file of any dialect.

    Raises:
        NotThisFormatError: if the file is whole but something else.
        FormatError: if it cannot be read, or is a replay that is truncated, malformed or of an unknown version; the
            message names file, layer and field.
    """
    data = read_text_bytes(path)
    try:
        file = _FILE_DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise _not_decoded(path, data, error) from error
    except RecursionError as error:
        raise FormatError(path, "nested too deeply to be a tactic replay", _REMEDY) from error
    legacy = file.legacy_marker is not None
    if not legacy and file.polygraphy_class != "TacticReplayData":
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
    dialects: set[str] = set()
    layers = {name: _read_layer(path, name, bytes(raw), dialects) for name, raw in file.replay.items()}
    variant = "0.29" if legacy else _one_dialect(path, dialects)
    return Assignment(
        layers=layers,
        source=_source(path, file.metadata),
        origin=str(path),
        variant=variant,
        fields=_FIELDS[variant],
        metadata=dict(file.metadata.environment) if file.metadata else {},
        timing_cache=None if file.timing_cache is None else _inflated(path, file.timing_cache),
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


def _read_layer(path: Path, name: str, raw: bytes, dialects: set[str]) -> Tactic:
    try:
        algorithm = _LAYER_DECODER.decode(raw)
    except msgspec.ValidationError as error:
        raise FormatError(path, f"layer {name!r}: {_sentence(error)}", _REMEDY) from error
    for field, value, low, high in (
        ("implementation", algorithm.implementation, -(2**31), 2**32),
        ("tactic", algorithm.tactic, -(2**63), 2**64),
    ):
        if not low <= value < high:
            raise FormatError(path, f"layer {name!r}: {field} {value} is out of range", _REMEDY)
    if algorithm.cache_key is not None and not _CACHE_KEY.fullmatch(algorithm.cache_key):
        raise FormatError(
            path,
            f"layer {name!r}: cache_key {algorithm.cache_key!r} is not 0x and 32 hexadecimal digits",
            _REMEDY,
        )
    by_kernel = algorithm.known_by == "kernel"
    return Tactic(
        implementation=None if by_kernel or algorithm.known_by == "tactic" else algorithm.implementation,
        tactic=None if by_kernel else algorithm.tactic,
        inputs=_read_tensors(path, name, algorithm.inputs, dialects),
        outputs=_read_tensors(path, name, algorithm.outputs, dialects),
        kernel=algorithm.kernel,
        time_ms=algorithm.time_ms,
        cache_key=algorithm.cache_key,
        witnesses=frozenset(algorithm.witnesses),
    )


def _read_tensors(
    path: Path, layer: str, items: list[_TensorInfo | list[str | list[int]]], dialects: set[str]
) -> tuple[TensorInfo, ...]:
    infos = []
    for item in items:
        if isinstance(item, _TensorInfo):
            dialects.add("0.49" if item.tensor_format is None else "0.47")
            infos.append(
                TensorInfo(
                    dtype=item.dtype.removeprefix("DataType."),
                    tensor_format=item.tensor_format and item.tensor_format.removeprefix("TensorFormat."),
                    strides=item.strides,
                    vectorized_dim=item.vectorized_dim,
                    components_per_element=item.components_per_element,
                )
            )
            continue
        match item:
            case [str(tensor_format), str(dtype)]:
                strides = None
            case [str(tensor_format), str(dtype), list(values)]:
                strides = tuple(values)
            case _:
                raise FormatError(
                    path, f"layer {layer!r}: a tensor is {item}, not [format, data type, strides]", _REMEDY
                )
        dialects.add("0.33" if strides is None else "0.43")
        infos.append(
            TensorInfo(
                dtype=dtype.removeprefix("DataType."),
                tensor_format=tensor_format.removeprefix("TensorFormat."),
                strides=strides,
            )
        )
    return tuple(infos)


def _one_dialect(path: Path, dialects: set[str]) -> str:
    if len(dialects) > 1:
        raise FormatError(
            path,
            f"tensors in the dialects of several Polygraphy versions ({', '.join(sorted(dialects))})",
            _REMEDY,
        )
    return next(iter(dialects), "0.49")


def _source(path: Path, metadata: _Metadata | None) -> Source:
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
        return FormatError(path, _sentence(error), _REMEDY)
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
    return FormatError(path, f"damaged tactic replay ({where}: {_sentence(error)})", _REMEDY)


def _begins_as_replay(data: bytes) -> bool:
    match = re.match(rb'\s*\{\s*(?:"([^"]*)("?))?', data)
    if match is None:
        return False
    key = match[1] or b""
    return key in _FIRST_KEYS if match[2] else any(known.startswith(key) for known in _FIRST_KEYS)


def _sentence(error: msgspec.MsgspecError) -> str:
    text = re.sub(r" \(byte \d+\)$", "", str(error)).replace("JSON is malformed: ", "")
    match = re.fullmatch(r"(.*) - at `\$\.?(.*)`", text)
    return (f"{match[2]}: {match[1]}" if match else text).replace("`", "'")


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
