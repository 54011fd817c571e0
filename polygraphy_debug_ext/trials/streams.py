"""The output of a process as it comes, without waiting for ever: somebody else may hold the pipe when the process has ended.

POSIX can wait for several descriptors at once; elsewhere a thread reads each stream. Both give the same chunks.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import subprocess
import threading
from typing import IO, TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

#: How often a wait looks whether it is to go on.
TICK: Final = 0.05
#: How much is taken at once.
_CHUNK: Final = 2**16


class Chunks(Protocol):
    """The output of a process: stream 0 is its standard output, stream 1 its standard error."""

    @property
    def open(self) -> bool:
        """Whether there may be more."""

    def next(self) -> list[tuple[int, bytes]]:
        """Return what came; nothing if nothing did for a tick."""

    def close(self) -> None:
        """Take no more."""


def chunks(process: subprocess.Popen[bytes]) -> Chunks:
    """Return the output of a process that was started with pipes."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
    return SelectedChunks(streams) if os.name == "posix" else ThreadedChunks(streams)


class SelectedChunks:
    """Waits for all streams at once."""

    def __init__(self, streams: list[IO[bytes]]) -> None:
        self._selector = selectors.DefaultSelector()
        self._streams = streams
        for number, stream in enumerate(streams):
            self._selector.register(stream, selectors.EVENT_READ, number)

    @property
    def open(self) -> bool:
        """Whether there may be more."""
        return bool(self._selector.get_map())

    def next(self) -> list[tuple[int, bytes]]:
        """Return what came; nothing if nothing did for a tick."""
        return list(self._ready())

    def _ready(self) -> Iterator[tuple[int, bytes]]:
        for key, _ in self._selector.select(TICK):
            chunk = os.read(key.fd, _CHUNK)
            if chunk:
                yield key.data, chunk
            else:
                self._selector.unregister(key.fileobj)

    def close(self) -> None:
        """Take no more."""
        self._selector.close()
        for stream in self._streams:
            stream.close()


class ThreadedChunks:
    """Lets a thread read each stream."""

    def __init__(self, streams: list[IO[bytes]]) -> None:
        self._queue: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=32)
        self._open = len(streams)
        for number, stream in enumerate(streams):
            threading.Thread(target=self._read, args=(number, stream), daemon=True).start()

    @property
    def open(self) -> bool:
        """Whether there may be more."""
        return self._open > 0

    def next(self) -> list[tuple[int, bytes]]:
        """Return what came; nothing if nothing did for a tick."""
        try:
            stream, chunk = self._queue.get(timeout=TICK)
        except queue.Empty:
            return []
        if not chunk:
            self._open -= 1
            return []
        return [(stream, chunk)]

    def close(self) -> None:
        """Take no more; the threads end when the streams do."""

    def _read(self, number: int, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._queue.put((number, chunk))
        self._queue.put((number, b""))


def wait_a_tick(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process ends, but no longer than a tick."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=TICK)
        return
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            selector.select(TICK)
    finally:
        os.close(descriptor)
