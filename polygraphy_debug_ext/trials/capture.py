"""What is kept of an output that may be endless: its beginning and its end, and whether a pattern occurs anywhere in it."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

#: Bytes kept of the beginning, and as many of the end.
KEPT: Final = 2**20
#: Characters that a match may span where the output is searched piece by piece.
_OVERLAP: Final = 2**16


class Ends:
    """The beginning and the end of a stream of bytes, in bounded memory."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def feed(self, chunk: bytes) -> bytes:
        """Take a chunk; return the part of it that belongs to the beginning."""
        self.total += len(chunk)
        room = self._kept - len(self._head)
        into_head, rest = chunk[:room], chunk[room:]
        self._head += into_head
        self._tail += rest
        # Cutting at every chunk would copy the tail each time.
        if len(self._tail) > 2 * self._kept:
            del self._tail[: -self._kept]
        return into_head

    @property
    def whole(self) -> bool:
        """Whether nothing was left out."""
        return self.total <= 2 * self._kept

    def rest(self) -> bytes:
        """What is kept beyond the beginning, with a line that says how much is not."""
        if self.whole:
            return bytes(self._tail)
        left_out = self.total - 2 * self._kept
        return f"\n[... {left_out} bytes left out ...]\n".encode() + bytes(self._tail[-self._kept :])

    def text(self) -> str:
        """What is kept, decoded; bytes that are not UTF-8 are replaced."""
        return (bytes(self._head) + self.rest()).decode(errors="replace")


class Scan:
    """Looks for patterns in a stream that is longer than what is kept of it.

    A match that spans more than 65 536 characters may be missed.
    """

    def __init__(self, patterns: Sequence[re.Pattern[str]], block: int = 2**20) -> None:
        self._patterns = patterns
        self._block = block
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._text = ""
        self._start = 0
        self.matched = False

    def feed(self, chunk: bytes, *, final: bool = False) -> None:
        """Take a chunk; with the last one, look at all that is left."""
        if self.matched or not self._patterns:
            return
        self._text += self._decoder.decode(chunk, final)
        if final or len(self._text) >= self._block + _OVERLAP:
            self.matched = any(self._found(pattern, final=final) for pattern in self._patterns)
            self._text = self._text[-_OVERLAP:]
            # From now on the text has something before it: `^` must not match at its first character.
            self._start = 1

    def _found(self, pattern: re.Pattern[str], *, final: bool) -> bool:
        # A match at the edge may be one only because the text is cut there (`$`), or may grow.
        edge = len(self._text) - 1
        return any(final or match.end() < edge for match in pattern.finditer(self._text, self._start))
