"""The device of this process, as far as it can break: after a sticky error everything on it fails until the process ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import NoReturn

MISALIGNED = "misaligned address"
MISALIGNED_CODE = 716
NO_KERNEL = "no kernel image is available for execution on the device"
_FOREVER = 3600.0


@dataclass(slots=True)
class Device:
    """`sticky` is the text of the error that every further call gets, empty while all is well."""

    sticky: str = ""
    inferences: int = 0

    def poison(self) -> None:
        """Get a sticky error."""
        self.sticky = MISALIGNED


DEVICE = Device()


def crash() -> None:
    """Die as a faulty kernel makes a process die, with everything written that was logged before."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> NoReturn:
    """Never come back."""
    while True:
        time.sleep(_FOREVER)
