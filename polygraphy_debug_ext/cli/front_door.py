"""Where the subtools meet the user: lines go to Polygraphy's log, and a user's mistake ends with what to do."""

from __future__ import annotations

import contextlib
import io
import os
from typing import TYPE_CHECKING

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import DebugExtError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TextIO

    from polygraphy_debug_ext.reports.lines import Line

#: Exit status of a subtool that was asked for something it cannot do, or was given files it cannot use.
STATUS_ERROR = 1


def guarded(run: Callable[[], int]) -> int:
    """Return the exit status of `run`; an error that the user can mend is told, not thrown."""
    try:
        return run()
    except DebugExtError as error:
        G_LOGGER.error(f"{error.problem}.\n{error.remedy}")
        return STATUS_ERROR


def say(lines: Iterable[Line]) -> None:
    """Log the lines of a report."""
    for line in lines:
        getattr(G_LOGGER, line.level.value)(line.text)


@contextlib.contextmanager
def whoever_reads(stream: TextIO) -> Iterator[None]:
    """Let the reader of `stream` leave early (`| head`), and have any encoding: neither is an error."""
    with contextlib.suppress(io.UnsupportedOperation, AttributeError):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # a test may put something else there
    try:
        yield
        stream.flush()
    except BrokenPipeError:
        # Python flushes again when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
