"""Appends to the journal of a directory.

Each event is on the disk when `append` returns: neither the death of the process nor a power cut touches it.
"""

from __future__ import annotations

import contextlib
import os
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol

from polygraphy_debug_ext.errors import StorageError
from polygraphy_debug_ext.formats import journal as form

if TYPE_CHECKING:
    from pathlib import Path


class Journal(Protocol):
    """Takes events, in order."""

    def append(self, event: form.Event) -> None:
        """Take an event; it counts when this returns."""


class MemoryJournal:
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[form.Event] = []

    def append(self, event: form.Event) -> None:
        """Take an event."""
        self.events.append(event)


class DiskJournal:
    """Writes the events to a file, after the first `size` bytes of it: what is beyond was never finished.

    Raises:
        StorageError: if the file cannot be opened.
    """

    def __init__(self, path: Path, size: int = 0) -> None:
        self._path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            self._size = size
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            raise _storage_error(path, error) from error

    def append(self, event: form.Event) -> None:
        """Write an event, and wait until it is on the disk.

        Raises:
            StorageError: if it cannot be written; the file ends with the event before it then, if possible.
        """
        line = form.encode(event)
        try:
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            written = 0
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
            # The size grows with each event: what fdatasync leaves out (times) is no loss.
            getattr(os, "fdatasync", os.fsync)(self._descriptor)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise _storage_error(self._path, error) from error
        self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def now() -> str:
    """The time, for people: durations and the order of events never depend on it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def _storage_error(path: Path, error: OSError) -> StorageError:
    return StorageError(
        f"The journal {path} cannot be written ({error.strerror})",
        "Make room or mend the permissions, then go on with --resume.",
    )
