"""What a tactic replay is made of: a typed schema of its layers and of the rest, and from a layer's JSON to a tactic.

There is one validation, here, whoever cut the file into pieces. Errors do not know the file: who reads it names it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from polygraphy_debug_ext.model import Field, Source, Tactic, TensorInfo, Witness

if TYPE_CHECKING:
    from collections.abc import Collection

_CACHE_KEY: Final = re.compile(r"0x[0-9a-fA-F]{32}")

#: Bytes of a layer whose tensors are kept, for others that are equal.
_KEPT_LAYER: Final = 2**14

#: What each dialect records of a tensor.
FIELDS: Final = {
    "0.29": frozenset({Field.DTYPE, Field.TENSOR_FORMAT}),
    "0.33": frozenset({Field.DTYPE, Field.TENSOR_FORMAT}),
    "0.43": frozenset({Field.DTYPE, Field.TENSOR_FORMAT, Field.STRIDES}),
    "0.47": frozenset(Field),
    "0.49": frozenset(Field) - {Field.TENSOR_FORMAT},
}


class RecordError(ValueError):
    """A layer is JSON, but not what a layer should be; the text says what, without file and layer."""


class _TensorInfo(msgspec.Struct, frozen=True):
    dtype: str
    strides: tuple[int, ...] | None = None
    vectorized_dim: int | None = None
    components_per_element: int | None = None
    tensor_format: str | None = None


# Up to 0.45 a tensor is a list: format, data type and, since 0.42.1, strides.
_Tensor: TypeAlias = _TensorInfo | tuple[str | tuple[int, ...], ...]


class _Algorithm(msgspec.Struct, frozen=True):
    implementation: int
    tactic: int
    inputs: tuple[_Tensor, ...]
    outputs: tuple[_Tensor, ...]
    kernel: str | None = None
    time_ms: float | None = None
    cache_key: str | None = None
    witnesses: list[Witness] = []
    known_by: str | None = None


class Metadata(msgspec.Struct, frozen=True):
    """What we add to a replay about the whole build."""

    format_version: int
    source: str = Source.REPLAY.value
    environment: dict[str, Any] = {}


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """A replay file but for its layers. Its timing cache is not decoded: it may take megabytes, and is seldom wanted."""

    polygraphy_class: str | None = None
    legacy_marker: str | None = msgspec.field(name="__polygraphy_encoded_TacticReplayData", default=None)
    metadata: Metadata | None = None
    replay: dict[str, msgspec.Raw] | msgspec.UnsetType = msgspec.UNSET
    timing_cache: msgspec.Raw = msgspec.Raw(b"null")


class WholeFile(Rest, frozen=True, kw_only=True):
    """A replay file, the layers still in JSON."""

    replay: dict[str, msgspec.Raw]


FILE_DECODER: Final = msgspec.json.Decoder(WholeFile)
REST_DECODER: Final = msgspec.json.Decoder(Rest)
_CACHE_DECODER: Final = msgspec.json.Decoder(bytes | None)
_LAYER_DECODER: Final = msgspec.json.Decoder(_Algorithm)
_NOBODY: Final[frozenset[Witness]] = frozenset()


def tactic_of(raw: bytes | memoryview, dialects: set[str]) -> Tactic:
    """Return the tactic that the JSON of a layer stands for; add to `dialects` those that its tensors are written in.

    Raises:
        msgspec.DecodeError: if it is not JSON.
        RecordError: if it is JSON, but not of a layer; the text names the field.
    """
    try:
        algorithm = _LAYER_DECODER.decode(raw)
    except msgspec.ValidationError as error:
        raise RecordError(sentence(error)) from error
    if not -(2**31) <= algorithm.implementation < 2**32:
        raise RecordError(f"implementation {_short(algorithm.implementation)} is out of range")
    if not -(2**63) <= algorithm.tactic < 2**64:
        raise RecordError(f"tactic {_short(algorithm.tactic)} is out of range")
    if algorithm.cache_key is not None and not _CACHE_KEY.fullmatch(algorithm.cache_key):
        raise RecordError(f"cache_key {algorithm.cache_key!r} is not 0x and 32 hexadecimal digits")
    # What is no layer of TensorRT's is not kept for long.
    tensor = _tensor if len(raw) <= _KEPT_LAYER else _read_tensor
    inputs = [tensor(item) for item in algorithm.inputs]
    outputs = [tensor(item) for item in algorithm.outputs]
    for _, dialect in inputs:
        dialects.add(dialect)
    for _, dialect in outputs:
        dialects.add(dialect)
    by_kernel = algorithm.known_by == "kernel"
    return Tactic(
        implementation=None if by_kernel or algorithm.known_by == "tactic" else algorithm.implementation,
        tactic=None if by_kernel else algorithm.tactic,
        inputs=tuple([info for info, _ in inputs]),
        outputs=tuple([info for info, _ in outputs]),
        kernel=algorithm.kernel,
        time_ms=algorithm.time_ms,
        cache_key=algorithm.cache_key,
        witnesses=frozenset(algorithm.witnesses) if algorithm.witnesses else _NOBODY,
    )


def require_text(raw: msgspec.Raw) -> None:
    """See that a timing cache is text or null, and leave it at that.

    Raises:
        RecordError: if it is something else.
    """
    if memoryview(raw)[:1].tobytes() not in {b'"', b"n"}:
        timing_cache_of(raw)


def timing_cache_of(raw: msgspec.Raw) -> bytes | None:
    """Return what a timing cache in base64 stands for: it is still compressed.

    Raises:
        RecordError: if it is something else.
    """
    try:
        return _CACHE_DECODER.decode(raw)
    except msgspec.MsgspecError as error:
        raise RecordError(f"timing_cache: {sentence(error)}") from error


def twice(data: bytes) -> str | None:
    """Say what a replay file has twice: a layer, or all of the layers.

    JSON takes the last of equal keys, and does not say so. `data` is known to be JSON.

    Raises:
        RecursionError: if it is nested too deeply.
    """

    def pairs(found: list[tuple[str, object]]) -> object:
        return found

    # Text that is skipped may be anything.
    text = data.decode(errors="surrogateescape")
    document: list[tuple[str, Any]] = json.loads(
        text, object_pairs_hook=pairs, parse_int=str, parse_float=str
    )
    replays = [value for key, value in document if key == "replay"]
    if len(replays) > 1:
        return "'replay'"
    times = Counter(name for name, _ in replays[0])
    return next((f"layer {name!r}" for name, count in times.items() if count > 1), None)


def one_dialect(dialects: Collection[str]) -> str:
    """Return the dialect of a file whose tensors are written in `dialects`.

    Raises:
        RecordError: if they are several.
    """
    if len(dialects) > 1:
        raise RecordError(
            f"tensors in the dialects of several Polygraphy versions ({', '.join(sorted(dialects))})"
        )
    return next(iter(dialects), "0.49")


def sentence(error: msgspec.MsgspecError) -> str:
    """Say in our words what msgspec says, without the place in what it was given."""
    text = re.sub(r" \(byte \d+\)$", "", str(error)).replace("JSON is malformed: ", "")
    match = re.fullmatch(r"(.*) - at `\$\.?(.*)`", text, re.DOTALL)
    return (f"{match[2]}: {match[1]}" if match else text).replace("`", "'")


def _read_tensor(item: _Tensor) -> tuple[TensorInfo, str]:
    """Return the tensor, and the dialect that it is written in."""
    if isinstance(item, _TensorInfo):
        info = TensorInfo(
            dtype=item.dtype.removeprefix("DataType."),
            tensor_format=item.tensor_format and item.tensor_format.removeprefix("TensorFormat."),
            strides=item.strides,
            vectorized_dim=item.vectorized_dim,
            components_per_element=item.components_per_element,
        )
        return info, "0.49" if item.tensor_format is None else "0.47"
    strides: tuple[int, ...] | None = None
    match item:
        case (str(tensor_format), str(dtype)):
            pass
        case (str(tensor_format), str(dtype), tuple(values)):
            strides = values
        case _:
            shown = [list(part) if isinstance(part, tuple) else part for part in item]
            raise RecordError(f"a tensor is {str(shown)[:200]}, not [format, data type, strides]")
    info = TensorInfo(
        dtype=dtype.removeprefix("DataType."),
        tensor_format=tensor_format.removeprefix("TensorFormat."),
        strides=strides,
    )
    return info, "0.33" if strides is None else "0.43"


#: Tensors repeat, and take longest to make.
_tensor: Final = lru_cache(maxsize=4096)(_read_tensor)


def _short(value: int) -> str:
    """A number as text; Python refuses to print those of thousands of digits."""
    return str(value) if value.bit_length() <= 256 else f"of {value.bit_length()} bits"  # noqa: PLR2004 - 77 digits
