"""Reading files that nobody vouches for: bounded, of the expected kind, and named when something is wrong."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError

if TYPE_CHECKING:
    from pathlib import Path

#: Larger than any replay seen (100 000 layers take about 150 MB), small enough to be held in memory.
SIZE_LIMIT: Final = 512 * 2**20

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OTHER_ENCODINGS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_text_bytes(path: Path, *, limit: int = SIZE_LIMIT) -> bytes:
    """Return the bytes of a regular file that should hold UTF-8 text, without its byte order mark.

    Raises:
        NotThisFormatError: if it is a directory, pipe, socket or device: it is not even opened.
        FormatError: if it does not exist, cannot be read, is larger than `limit` bytes, or is UTF-16 or UTF-32 text.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe that nobody writes to would wait for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            _require_regular(path, os.fstat(descriptor), limit)
        except FormatError:
            os.close(descriptor)
            raise
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            # The file may grow while it is read; the limit holds all the same.
            data = file.read(limit + 1)
    except OSError as error:
        raise FormatError(
            path, f"cannot be read ({error.strerror})", "Check the path, its permissions and its disk."
        ) from error
    if len(data) > limit:
        raise FormatError(path, f"more than the limit of {limit} bytes", "Split it, or leave it out.")
    for mark, encoding in _OTHER_ENCODINGS.items():
        if data.startswith(mark):
            raise FormatError(path, f"{encoding} text, but UTF-8 is expected", "Convert it to UTF-8.")
    return data.removeprefix(_BYTE_ORDER_MARK)


def _require_regular(path: Path, status: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise NotThisFormatError(path, "not a regular file", "Name a file.")
    if status.st_size > limit:
        raise FormatError(
            path, f"{status.st_size} bytes, more than the limit of {limit}", "Split it, or leave it out."
        )


def position(data: bytes, offset: int) -> str:
    """Say where byte `offset` of `data` is, as people count: line and column from 1."""
    line = data.count(b"\n", 0, offset) + 1
    column = offset - (data.rfind(b"\n", 0, offset) + 1) + 1
    return f"line {line}, column {column}"
