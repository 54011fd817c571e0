"""Reading files that nobody vouches for: bounded, of the expected kind, and named when something is wrong.

Compressed files (gzip, xz, Zstandard) are read as if they were not. Small files are read whole (`read_text_bytes`); a log of
any size is streamed in chunks of whole lines (`chunks`); a look at the beginning tells what a file is (`head`).
"""

from __future__ import annotations

import io
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.decompressing import MAGIC_SIZE, compression, damage_named, decompressed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polygraphy_debug_ext.formats.decompressing import Readable

#: Larger than any replay seen (100 000 layers take about 150 MB), small enough to be held in memory.
SIZE_LIMIT: Final = 512 * 2**20

#: How much of a streamed file is held at a time: it fits into the cache of a processor, so that looking through it often is cheap.
CHUNK_SIZE: Final = 2**18

#: No line of a log that matters is longer; the rest of it is left out.
LINE_LIMIT: Final = 2**20

#: What is looked at to tell what a file is.
HEAD_SIZE: Final = 2**16

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OTHER_ENCODINGS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_text_bytes(path: Path, *, limit: int = SIZE_LIMIT) -> bytes:
    """Return the bytes of a regular file that should hold UTF-8 text, decompressed, without its byte order mark.

    Raises:
        NotThisFormatError: if it is a directory, pipe, socket or device: it is not even opened.
        FormatError: if it does not exist, cannot be read, is larger than `limit` bytes, is damaged or truncated where it is
            compressed, or is UTF-16 or UTF-32 text.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise _too_large(path, size, limit)
        # What is asked for is set aside before it is read: not more than needed. The file may grow meanwhile; the limit holds.
        data = file.read(size + 1)
        if len(data) > size:
            data += file.read(limit + 1 - len(data))
    kind = compression(data[:MAGIC_SIZE])
    if kind and len(data) <= limit:
        with damage_named(path, kind):
            data = _read_all(decompressed(io.BufferedReader(io.BytesIO(data)), kind), limit + 1)
    if len(data) > limit:
        raise FormatError(path, f"more than the limit of {limit} bytes", "Split it, or leave it out.")
    return _text(path, data)


def head(path: Path, size: int = HEAD_SIZE) -> bytes:
    """Return the first `size` bytes of a file, decompressed: as many of them as there are, or can be decompressed.

    Raises:
        NotThisFormatError, FormatError: as `read_text_bytes`, without a limit.
    """
    with _opened(path) as file:
        kind = _kind(file)
        if not kind:
            return _text(path, file.read(size))
        pieces: list[bytes] = []
        try:
            with damage_named(path, kind):
                source = decompressed(file, kind)
                while (missing := size - sum(map(len, pieces))) > 0 and (piece := source.read(missing)):
                    pieces.append(piece)
        except FormatError:
            # What a damaged file was can still be told from what there is; reading all of it names the damage.
            if not pieces:
                raise
        return _text(path, b"".join(pieces))


def chunks(path: Path, size: int = CHUNK_SIZE) -> Iterator[bytes]:
    """Yield a file, decompressed, in chunks of whole lines of about `size` bytes, however large it is.

    All but the last chunk end with a line feed. Lines that are longer than `LINE_LIMIT` are cut there.

    Raises:
        NotThisFormatError, FormatError: as `read_text_bytes`, without a limit.
    """
    with _opened(path) as file:
        kind = _kind(file)
        source: Readable = decompressed(file, kind) if kind else file
        first = True
        for chunk in _whole_lines(path, kind, source, size):
            yield _text(path, chunk) if first else chunk
            first = False


def position(data: bytes, offset: int) -> str:
    """Say where byte `offset` of `data` is, as people count: line and column from 1."""
    line = data.count(b"\n", 0, offset) + 1
    column = offset - (data.rfind(b"\n", 0, offset) + 1) + 1
    return f"line {line}, column {column}"


def _whole_lines(path: Path, kind: str, source: Readable, size: int) -> Iterator[bytes]:
    rest = b""
    cut = False
    while True:
        with damage_named(path, kind):
            data = source.read(size)
        if not data:
            break
        if cut:
            # What was cut off goes on; the line feed that ends it has been written already.
            end = data.find(b"\n") + 1
            if not end:
                continue
            data, cut = data[end:], False
        end = data.rfind(b"\n") + 1
        if end:
            yield rest + data[:end] if rest else data[:end]
            rest = data[end:]
        else:
            rest += data
        if len(rest) > LINE_LIMIT:
            yield rest[:LINE_LIMIT] + b"\n"
            rest, cut = b"", True
    if rest:
        yield rest


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a regular file; errors while it is read are named as well."""
    try:
        # Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotThisFormatError(path, "not a regular file", "Name a file.")
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            yield file
    except OSError as error:
        raise FormatError(
            path,
            f"cannot be read ({error.strerror or error})",
            "Check the path, its permissions and its disk.",
        ) from error


def _kind(file: io.BufferedReader) -> str:
    """How the file is compressed; it is at its beginning before and after."""
    kind = compression(file.read(MAGIC_SIZE))
    file.seek(0)
    return kind


def _read_all(source: Readable, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := source.read(min(limit, CHUNK_SIZE))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def _text(path: Path, data: bytes) -> bytes:
    """The beginning of a text without its byte order mark."""
    for mark, encoding in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            raise FormatError(path, f"{encoding} text, but UTF-8 is expected", "Convert it to UTF-8.")
    return data.removeprefix(_BYTE_ORDER_MARK)


def _too_large(path: Path, size: int, limit: int) -> FormatError:
    return FormatError(path, f"{size} bytes, more than the limit of {limit}", "Split it, or leave it out.")
