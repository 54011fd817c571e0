"""Children that leave nothing behind: each has a process group of its own, and what escapes from that is caught too.

On Linux the process becomes the *subreaper* of its descendants: what a dying child leaves behind becomes our own child, and is
found. Elsewhere the process group has to do.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TASKS = "/proc/self/task"


class Nursery:
    """Starts children and ends them, with all that they started.

    Args:
        born: Called with the id of each child's process group when it begins.
        gone: Called with it when nothing of it is left.
    """

    def __init__(
        self, born: Callable[[int], None] = lambda _: None, gone: Callable[[int], None] = lambda _: None
    ) -> None:
        self._born = born
        self._gone = gone
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        # What was there before us is not ours to end.
        self._others = _own_children()
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401 - Popen's own
        """Start a child in a session of its own.

        Raises:
            OSError: if it cannot be started.
        """
        apart: dict[str, Any] = (
            {"start_new_session": True}
            if os.name == "posix"
            else {"creationflags": getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)}
        )
        process = subprocess.Popen(command, **apart, **options)
        self._children[process.pid] = process
        self._born(process.pid)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill what is left of a child and of everything that it started, and wait for it."""
        _kill_group(process.pid)
        if process.poll() is None:
            _kill_tree(process.pid)
        process.wait()
        self._children.pop(process.pid, None)
        self._sweep()
        self._gone(process.pid)

    def end_all(self) -> None:
        """Kill all children."""
        for process in list(self._children.values()):
            self.end(process)

    def kill_all(self) -> None:
        """Kill all children without waiting: for a process that is about to end at once."""
        for pid in list(self._children):
            _kill_group(pid)
        self._sweep()

    def _sweep(self) -> None:
        """Kill what became our child because its own parent died."""
        while strays := _own_children() - self._others - set(self._children):
            for pid in strays:
                _kill_tree(pid)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent dies (on Linux). `parent` is the id that it should have."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM if os.name != "posix" else signal.SIGKILL)
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _own_children() -> set[int]:
    """The ids of our children, where that can be said cheaply (Linux)."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(_TASKS):  # noqa: PTH208 - this runs after each check
            with contextlib.suppress(OSError), open(f"{_TASKS}/{task}/children", "rb") as listing:  # noqa: PTH123
                found.update(map(int, listing.read().split()))
    return found


def _kill_group(group: int) -> None:
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _kill_tree(pid: int) -> None:
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.Error):
                each.kill()
