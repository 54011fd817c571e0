"""Holds the guard: if this process is killed, somebody is left to kill its children."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import uuid
from typing import Final

from polygraphy_debug_ext.trials import guard

#: The environment variable that marks all processes of a run.
MARK: Final = "POLYGRAPHY_DEBUG_RUN"


class Guard:
    """A guard for the children of this process, which get a mark in their environment.

    Raises:
        OSError: if it cannot be started.
    """

    def __init__(self) -> None:
        mark = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, f"{MARK}={mark}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        # It is not in the environment of the guard itself, and of this process only for its children.
        os.environ[MARK] = mark

    def born(self, group: int) -> None:
        """Watch a process group."""
        self._tell(f"+{group}\n")

    def gone(self, group: int) -> None:
        """Watch it no longer."""
        self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the guard kill what is left, and wait for it."""
        os.environ.pop(MARK, None)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process.stdin is not None:
            # A guard that was killed cannot be told anything; the run goes on without it.
            with contextlib.suppress(OSError):
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()
