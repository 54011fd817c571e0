"""Logs of trials: `logs/<date>_<time>_N<trial>_<what>.log` in the artifacts directory, the beginning and the end of each.

A log that cannot be written (the disk is full) never fails a trial: it only ends early.
"""

from __future__ import annotations

import contextlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

from polygraphy_debug_ext.trials.capture import Ends

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Bytes kept of the beginning of a log, and as many of its end.
LOG_KEPT: Final = 8 * 2**20


class Sink:
    """Takes what belongs into a log: the beginning goes to the file at once, the end when it is known."""

    def __init__(self, file: IO[bytes] | None, kept: int = LOG_KEPT) -> None:
        self._file = file
        self._ends = Ends(kept)

    def feed(self, chunk: bytes) -> None:
        """Take a chunk."""
        self._write(self._ends.feed(chunk))

    def close(self) -> None:
        """Write what is kept of the end."""
        self._write(self._ends.rest())
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()

    def _write(self, data: bytes) -> None:
        if self._file is not None and data:
            with contextlib.suppress(OSError):
                self._file.write(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Logs:
    """Where the logs of a run are."""

    root: Path
    stamp: str

    def path(self, index: int, what: str) -> Path:
        """The log of a trial: what its build said, or its check."""
        return self.root / "logs" / f"{self.stamp}_N{index}_{what}.log"

    @property
    def worker(self) -> Path:
        """What the build processes of the run say, one after the other; the logs of the trials are cut from it."""
        return self.root / "logs" / f"{self.stamp}_worker.log"

    @contextmanager
    def opened(self, index: int, what: str, heading: str = "") -> Iterator[Sink]:
        """Append to a log, beginning with a line that says what comes."""
        path = self.path(index, what)
        file: IO[bytes] | None = None
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Unbuffered, so that it is in the file when the process is killed.
            file = path.open("ab", buffering=0)
        sink = Sink(file)
        if heading:
            sink.feed(f"{heading}\n".encode(errors="surrogateescape"))
        try:
            yield sink
        finally:
            sink.close()
