"""A process that outlives its parent for a moment, to kill what that leaves behind. It is run as a script, with `-I -S`.

The parent names process groups on its input (`+ID`, `-ID` a line). When the input ends, the parent is gone, or done: the groups
that are left are killed, and on Linux every process with the run's mark in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Wait for the end of the input."""
    mark = sys.argv[1].encode()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin.buffer:
        group = int(line[1:])
        if line.startswith(b"+"):
            groups.add(group)
        else:
            groups.discard(group)
    for group in groups:
        _kill(getattr(os, "killpg", os.kill), group)
    # What is being started while it is looked for is found the next time.
    for _ in range(3):
        marked = _marked(mark)
        for pid in marked:
            _kill(os.kill, pid)
        if not marked:
            break


def _marked(mark: bytes) -> list[int]:
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        pid = int(directory.name)
        try:
            if pid != os.getpid() and mark in (directory / "environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


#: Windows knows neither this signal nor groups.
_SIGNAL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _kill(call: Callable[[int, int], None], target: int) -> None:
    with contextlib.suppress(OSError):
        call(target, _SIGNAL)


if __name__ == "__main__":
    main()
