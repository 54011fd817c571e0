"""No file makes a reader do anything but read it or name what is wrong: mutated samples from practice, and files made to hurt."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats import (
    avoid,
    build_log,
    journal,
    layer_information,
    layer_lines,
    reading,
    replay,
)
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.formats.replay_members import Members
from polygraphy_debug_ext.model import Assignment, Source, Tactic, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CASES: Final = Path(__file__).parent.parent / "data" / "cases"
#: Larger samples only repeat what smaller ones have.
SAMPLES: Final = tuple(
    path.read_bytes()
    for path in sorted(CASES.rglob("*"))
    if path.is_file() and path.suffix != ".md" and path.stat().st_size < 40_000
)
REPLAYS: Final = tuple(sample for sample in SAMPLES if b'"replay"' in sample)

READERS: Final[tuple[Callable[[Path], object], ...]] = (
    replay.read,
    lambda path: replay.Loader().read(path),
    layer_information.read,
    layer_lines.read,
    build_log.read,
    journal.read,
    avoid.read,
    reading.head,
    lambda path: list(Reader().records(path)),
    lambda path: list(Reader(whole=True).records(path)),
)

#: What breaks readers, put where it does not belong.
SPLICES: Final = (
    *(
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\r\n",
        b"\n",
        b"\x1b[31m",
        b"\x1f\x8b",
        b"(\xb5/\xfd",
    ),
    *(b"NaN", b"Infinity", b"-Infinity", b"null", b"true", b"{}", b"[]", b'""', b"-1", b"1e999", b"1.5"),
    *(b"9" * 30, b"9" * 5000, b"-" + b"9" * 20, b"[" * 2000, b'{"a":' * 2000, b"\\ud800", b"\\u0000", b'\\"'),
    *(b'"replay": {}, ', b'"tactic": 1, ', b'"Layers": [], ', b'"time_ms": 1, ', b'"time_ms": 1e999, ', b","),
    *(
        b"Engine Layer Information:\n",
        b"Layer(",
        b", Tactic: ",
        b" -> ",
        b"Tactic: 0x",
        b"Name: ",
        b"Layers:\n",
    ),
    *(b"}", b"]", b'"', b":", b"\\", b"0xd15ea5edd15ea5ed", b"0xffffffffffffffff", b"18446744073709551616"),
)

quick = settings(max_examples=150, derandomize=True, deadline=None, database=None)


@st.composite
def mutated(draw: st.DrawFn, samples: tuple[bytes, ...]) -> bytes:
    """A sample with up to four changes."""
    data = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(0, 4))):
        data = draw(st.sampled_from(MUTATIONS))(draw, data)
    return data


def position(draw: st.DrawFn, data: bytes) -> int:
    return draw(st.integers(0, len(data)))


def truncate(draw: st.DrawFn, data: bytes) -> bytes:
    return data[: position(draw, data)]


def flip(draw: st.DrawFn, data: bytes) -> bytes:
    at = position(draw, data)
    return data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]


def splice(draw: st.DrawFn, data: bytes) -> bytes:
    at = position(draw, data)
    return data[:at] + draw(st.sampled_from(SPLICES)) + data[at + draw(st.integers(0, 8)) :]


def splice_at_a_token(draw: st.DrawFn, data: bytes) -> bytes:
    token = draw(
        st.sampled_from((b": ", b"{", b"[", b'"tactic": ', b"Tactic: ", b", ", b"\n", b'"time_ms": '))
    )
    at = data.find(token, position(draw, data)) + len(token)
    return data[:at] + draw(st.sampled_from(SPLICES)) + data[at:]


def repeat(draw: st.DrawFn, data: bytes) -> bytes:
    start, end = sorted((position(draw, data), position(draw, data)))
    return data[:end] + data[start:]


def repeat_lines(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    start, end = sorted((draw(st.integers(0, len(lines))), draw(st.integers(0, len(lines)))))
    return b"".join([*lines[:end], *lines[start:]])


def cut(draw: st.DrawFn, data: bytes) -> bytes:
    start, end = sorted((position(draw, data), position(draw, data)))
    return data[:start] + data[end:]


def cross(draw: st.DrawFn, data: bytes) -> bytes:
    other = draw(st.sampled_from(SAMPLES))
    return data[: position(draw, data)] + other[position(draw, other) :]


def without_space(_draw: st.DrawFn, data: bytes) -> bytes:
    try:
        return json.dumps(json.loads(data), separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return data


def windows(_draw: st.DrawFn, data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def utf16(_draw: st.DrawFn, data: bytes) -> bytes:
    return data.decode("latin-1").encode("utf-16")


MUTATIONS: Final = (
    *(truncate, flip, splice, splice_at_a_token, splice_at_a_token, repeat, repeat_lines),
    *(cut, cross, without_space, windows, utf16),
)


def outcome(read: Callable[[Path], object], path: Path) -> object:
    """What was read, or the error that a person would see."""
    try:
        return read(path)
    except FormatError as error:
        named = error
    assert str(path) in named.problem
    assert named.remedy
    return type(named), str(named)


@pytest.fixture(scope="module")
def path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory, "sample")


@quick
@given(data=mutated(SAMPLES))
def test_a_mutated_file_is_read_or_named(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for read in READERS:
        outcome(read, path)


def ours() -> bytes:
    """A replay with all that we write and Polygraphy does not."""
    info = TensorInfo(dtype="HALF", strides=(64, 1), vectorized_dim=-1, components_per_element=1)
    layers = {
        f'layer "{number}" + \u00e9': Tactic(
            implementation=None if number % 2 else 7,
            tactic=number,
            inputs=(info,),
            outputs=(info,),
            kernel=f"sm80_{number}",
            time_ms=0.25 + number,
            cache_key=f"0x{number:032x}",
        )
        for number in range(5)
    }
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "replay.json")
        source = Source.TIMING_CACHE
        replay.write(
            target, Assignment(layers=layers, source=source, timing_cache=b"x" * 50, metadata={"gpu": "x"})
        )
        return target.read_bytes()


def primed() -> replay.Loader:
    """A loader that has learned all samples, as they are and without spaces."""
    loader = replay.Loader()
    with tempfile.TemporaryDirectory() as directory:
        for sample in ALL_REPLAYS:
            for data in (sample, json.dumps(json.loads(sample)).encode()):
                Path(directory, "sample").write_bytes(data)
                loader.read(Path(directory, "sample"))
    return loader


ALL_REPLAYS: Final = (*REPLAYS, ours())
FAST: Final = primed()
#: It never finds anything that it knows.
SLOW: Final = replay.Loader()
SLOW._members.scan = lambda _: None  # type: ignore[method-assign, assignment]  # what is tested against


@settings(quick, max_examples=400)
@given(data=mutated(ALL_REPLAYS))
def test_what_is_known_and_what_is_decoded_are_the_same(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    assert outcome(FAST.read, path) == outcome(SLOW.read, path)


@quick
@given(files=st.lists(mutated(ALL_REPLAYS), max_size=6))
def test_files_that_are_scanned_together_are_the_same_as_one_by_one(files: list[bytes]) -> None:
    apart = Members()
    assert Members().scan_all(files) == [apart.scan(data) for data in files]


@pytest.mark.parametrize("sample", ALL_REPLAYS)
def test_an_ordinary_replay_is_found_by_its_members(sample: bytes) -> None:
    assert replay.Loader()._members.scan(sample) is not None


@given(data=st.binary(max_size=300))
@quick
def test_bytes_without_sense_are_read_or_named(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    for read in READERS:
        outcome(read, path)
