"""Compressed files are read as they are, within bounds; what is wrong with them is said."""

from __future__ import annotations

import gzip
import lzma
import resource
import sys
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats.reading import LINE_LIMIT, chunks, head, read_text_bytes

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXT = b"".join(b"line %d of a text that can be told from another\n" % number for number in range(30_000))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "Zstandard": zstd.compress,
}
SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"

pytestmark = pytest.mark.parametrize("kind", COMPRESS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    # The name says something else: the content counts.
    return tmp_path / "build.log"


def test_all_ways_of_reading_give_what_was_compressed(kind: str, path: Path) -> None:
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read_text_bytes(path) == TEXT
    assert head(path, 1000) == TEXT[:1000]
    assert head(path, 10 * len(TEXT)) == TEXT
    assert b"".join(chunks(path)) == TEXT


def test_members_one_after_the_other_are_one_text(kind: str, path: Path) -> None:
    middle = SKIPPABLE if kind == "Zstandard" else b"" if kind == "gzip" else bytes(8)
    path.write_bytes(COMPRESS[kind](TEXT) + middle + COMPRESS[kind](b"") + COMPRESS[kind](b"end\n"))
    assert read_text_bytes(path) == TEXT + b"end\n"
    assert b"".join(chunks(path)) == TEXT + b"end\n"


def test_a_truncated_file_is_an_error_that_says_so(kind: str, path: Path) -> None:
    whole = COMPRESS[kind](TEXT)
    for size in (len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(FormatError, match=rf"build\.log: the {kind} file is truncated"):
            read_text_bytes(path)
        with pytest.raises(FormatError, match=f"the {kind} file is truncated"):
            list(chunks(path))
        assert head(path, 1000) == TEXT[:1000]
    path.write_bytes(whole[:7])
    with pytest.raises(FormatError, match=f"the {kind} file is truncated"):
        head(path)


def test_a_damaged_file_is_an_error_that_says_so(kind: str, path: Path) -> None:
    whole = bytearray(COMPRESS[kind](TEXT))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = bytes(40)
    path.write_bytes(whole)
    with pytest.raises(FormatError, match=f"the {kind} file is (damaged|truncated)"):
        read_text_bytes(path)
    path.write_bytes(COMPRESS[kind](TEXT) + b"something else")
    with pytest.raises(FormatError, match=f"the {kind} file is (damaged|truncated)"):
        list(chunks(path))


def test_the_limit_is_on_what_comes_out(kind: str, path: Path) -> None:
    path.write_bytes(COMPRESS[kind](TEXT))
    assert read_text_bytes(path, limit=len(TEXT)) == TEXT
    with pytest.raises(FormatError, match=f"more than the limit of {len(TEXT) - 1} bytes"):
        read_text_bytes(path, limit=len(TEXT) - 1)


def test_a_bomb_costs_no_memory(kind: str, path: Path) -> None:
    compress = COMPRESS[kind]
    # Members of 8 MiB each, which are a few kilobytes: 256 MiB in all, of one line.
    path.write_bytes(compress(b"x" * (8 * 2**20)) * 32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (chunk,) = chunks(path)
    assert chunk == b"x" * LINE_LIMIT + b"\n"
    assert len(head(path)) == 2**16
    with pytest.raises(FormatError, match="more than the limit"):
        read_text_bytes(path, limit=2**20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 2**10
