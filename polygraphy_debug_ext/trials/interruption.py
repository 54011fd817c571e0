"""SIGINT and SIGTERM: the first ends the trial in hand, and then the run; a second one ends the process at once.

A handler that raised could tear anything in two. So it only takes note, and whoever waits looks at the note (`check`); only
where nothing but waiting happens (a question to a person) may it raise.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_REASONS = {signal.SIGINT: StopReason.INTERRUPTED, signal.SIGTERM: StopReason.TERMINATED}


class Interrupted(BaseException):
    """The trial in hand is to end now."""


class Interruption:
    """Whether somebody wants the run to end."""

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        self._signal: signal.Signals | None = None
        self._raising = False
        self._at_once = at_once

    @property
    def reason(self) -> StopReason | None:
        """Why the run is to end, if it is."""
        return _REASONS[self._signal] if self._signal else None

    @property
    def exit_status(self) -> int:
        """What the process exits with when it was interrupted."""
        return 128 + int(self._signal or 0)

    def check(self) -> None:
        """Raise `Interrupted` if the run is to end."""
        if self._signal:
            raise Interrupted(self._signal.name)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let a signal raise `Interrupted` while it lasts."""
        self.check()
        self._raising = True
        try:
            yield
        finally:
            self._raising = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Handle the signals while it lasts."""
        before = {number: signal.signal(number, self._handle) for number in _REASONS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self._signal is not None:
            self._at_once()
            os._exit(128 + number)
        self._signal = signal.Signals(number)
        if self._raising:
            raise Interrupted(self._signal.name)
