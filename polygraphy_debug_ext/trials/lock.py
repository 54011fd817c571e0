"""One run at a time in a directory: the operating system holds the lock, and forgets it when its holder dies.

So a stale lock cannot be: what a dead run leaves is only the note that says who it was.
"""

from __future__ import annotations

import contextlib
import os
import platform
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import filelock
import msgspec

from polygraphy_debug_ext.errors import StorageError, UsageError
from polygraphy_debug_ext.trials.journal import now

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

LOCK: Final = ".lock"
NOTE: Final = ".lock-holder.json"


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds the lock."""

    pid: int
    host: str
    since: str
    command: list[str]


@contextmanager
def locked(root: Path, command: Sequence[str]) -> Iterator[None]:
    """Hold the lock of a directory, which is made if it is not there.

    Raises:
        UsageError: if another run holds it.
        StorageError: if the directory cannot be written to.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(root / LOCK, timeout=0)
        lock.acquire()
    except filelock.Timeout as error:
        raise UsageError(
            f"Another run is using {root}: {_holder(root)}",
            "Wait for it, stop it, or name another directory with --artifacts-dir.",
        ) from error
    except OSError as error:
        raise StorageError(
            f"The artifacts directory {root} cannot be written to ({error.strerror})",
            "Mend its permissions or its disk, or name another one with --artifacts-dir.",
        ) from error
    try:
        note = Holder(pid=os.getpid(), host=platform.node(), since=now(), command=list(command))
        # The note is a courtesy: on a full disk the run must still be able to say what it has to.
        with contextlib.suppress(OSError):
            (root / NOTE).write_bytes(msgspec.json.encode(note))
        yield
        with contextlib.suppress(OSError):
            (root / NOTE).unlink()
    finally:
        lock.release()


def _holder(root: Path) -> str:
    try:
        note = msgspec.json.decode((root / NOTE).read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return "it does not say which"
    return f"process {note.pid} on {note.host}, since {note.since}: {' '.join(note.command)}"
