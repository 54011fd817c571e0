"""Compressed files, read as they are: gzip, xz and Zstandard, told by their first bytes whatever their name is.

What comes out is bounded by what the reader asks for, so that a small file that expands to a huge one costs no memory. Several
members in one file (`cat a.gz b.gz`) are read one after the other.
"""

from __future__ import annotations

import gzip
import lzma
import sys
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from polygraphy_debug_ext.errors import FormatError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: Bytes of the beginning of a file that tell its kind.
MAGIC_SIZE: Final = 6

_GZIP: Final = b"\x1f\x8b"
_XZ: Final = b"\xfd7zXZ\x00"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
#: The last three bytes of the mark of a Zstandard frame that holds no data; the first is 0x50 to 0x5f.
_SKIPPABLE: Final = b"\x2a\x4d\x18"

#: More than `xz -9` needs (64 MiB), less than a hostile header can ask for.
_XZ_MEMORY: Final = 256 * 2**20

_INPUT: Final = 2**16

_REMEDY: Final = "Copy or download it again, or leave it out."


class Readable(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class _Decompressor(Protocol):
    """What decompressors of the standard library have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


def compression(head: bytes) -> str:
    """Return how a file that begins with `head` is compressed (`gzip`, `xz` or `Zstandard`); empty if it is not."""
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_XZ):
        return "xz"
    skippable = head[1:4] == _SKIPPABLE and head[0] & 0xF0 == 0x50  # noqa: PLR2004 - the upper half of the mark
    return "Zstandard" if head.startswith(_ZSTD) or skippable else ""


def decompressed(file: io.BufferedReader, kind: str) -> Readable:
    """Return what gives the decompressed bytes of a file of this kind, which is at its beginning."""
    if kind == "gzip":
        return gzip.GzipFile(fileobj=file)
    if kind == "xz":
        return _Members(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY))
    return _Members(file, zstd.ZstdDecompressor)


@contextmanager
def damage_named(path: Path, kind: str) -> Iterator[None]:
    """Let what is wrong with a compressed file be a `FormatError`."""
    try:
        yield
    except EOFError as error:
        raise FormatError(path, f"the {kind} file is truncated", _REMEDY) from error
    except (zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstd.ZstdError) as error:
        raise FormatError(path, f"the {kind} file is damaged ({error})", _REMEDY) from error


class _Members:
    """Reads one compressed member after the other."""

    def __init__(self, file: io.BufferedReader, new: Callable[[], _Decompressor]) -> None:
        self._file = file
        self._new = new
        self._decompressor = new()

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes; none at the end.

        Raises:
            EOFError: if the file ends within a member.
        """
        while True:
            given = b""
            if self._decompressor.eof:
                # Members may be padded with zeros.
                given = self._decompressor.unused_data.lstrip(b"\0") or self._next_member()
                if not given:
                    return b""
                self._decompressor = self._new()
            elif self._decompressor.needs_input:
                given = self._input()
                if not given:
                    raise EOFError
            if data := self._decompressor.decompress(given, size):
                return data

    def _next_member(self) -> bytes:
        while data := self._input():
            if member := data.lstrip(b"\0"):
                return member
        return b""

    def _input(self) -> bytes:
        return self._file.read(_INPUT)
