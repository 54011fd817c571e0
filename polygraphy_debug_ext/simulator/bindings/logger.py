"""Loggers: the interface that users implement, and the default one, which prints as TensorRT's does."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Bound

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum

SEVERITIES = {"INTERNAL_ERROR": 0, "ERROR": 1, "WARNING": 2, "INFO": 3, "VERBOSE": 4}
_LETTERS = {"INTERNAL_ERROR": "F", "ERROR": "E", "WARNING": "W", "INFO": "I", "VERBOSE": "V"}


class ILogger(Bound):
    """What users implement to receive messages. The severities are added when the class is cut to a personality."""

    def log(self, severity: BoundEnum, msg: str) -> None:
        """Take one message."""
        raise NotImplementedError("ILogger.log must be implemented by a subclass")


class Logger(ILogger):
    """Prints what is at least as severe as `min_severity`, errors and warnings to stderr."""

    def __init__(self, min_severity: BoundEnum | None = None) -> None:
        self.min_severity = (
            min_severity if min_severity is not None else self._api.enum("Severity", "WARNING")
        )

    def log(self, severity: BoundEnum, msg: str) -> None:
        """Print one message."""
        if int(severity) > int(self.min_severity):
            return
        stream = sys.stderr if int(severity) <= SEVERITIES["WARNING"] else sys.stdout
        stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
        stream.write(f"[{stamp}] [TRT] [{_LETTERS[severity.name]}] {msg}\n")
        stream.flush()
