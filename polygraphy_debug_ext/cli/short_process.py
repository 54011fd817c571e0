"""Spares a process that computes for a moment what would pay in a long one: threads of linear algebra, looking for garbage."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_THREADS: Final = "OPENBLAS_NUM_THREADS"


@contextlib.contextmanager
def numpy_without_threads() -> Iterator[None]:
    """Let numpy, if it is imported here, start no threads for linear algebra, of which there is next to none.

    OpenBLAS, which comes with numpy, starts one for each processor, and they wait for work without pause for a while. What the user has
    set holds, and child processes do not see this.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Look for no garbage: records by the hundred thousand form no cycles, and to look for some takes a tenth of the time.

    Nor at the end of the process: Python would look through all that was imported, several times, before its memory is freed anyway.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
