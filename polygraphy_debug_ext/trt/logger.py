"""Brings all that TensorRT says to the log of the build, whatever of it is shown on the terminal.

Polygraphy drops what its verbosity does not show before it is written anywhere. Where a build was when it died, only the
verbose lines tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.backend.trt import util as trt_util
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from collections.abc import Callable


def log_everything(write: Callable[[bytes], None]) -> None:
    """Let Polygraphy's TensorRT logger give to `write` what it would drop."""
    trt = tensorrt()
    shown = trt_util.get_trt_logger()
    base: Any = trt.ILogger
    # TensorRT's severity, and at which of Polygraphy's it is shown.
    quiet = {trt.ILogger.INFO: G_LOGGER.VERBOSE, trt.ILogger.VERBOSE: G_LOGGER.EXTRA_VERBOSE}
    letters = {trt.ILogger.INFO: "[V] ", trt.ILogger.VERBOSE: "[X] "}

    class EverythingLogger(base):  # type: ignore[misc]  # there is no type to derive from
        def __init__(self) -> None:
            base.__init__(self)

        def log(self, severity: Any, msg: str) -> None:  # noqa: ANN401
            level = quiet.get(severity)
            if level is not None and level < _threshold():
                write(f"{letters[severity]}{msg}\n".encode(errors="replace"))
            else:
                shown.log(severity, msg)

    trt_util.TRT_LOGGER = EverythingLogger()


def _threshold() -> int:
    """The verbosity for messages of TensorRT."""
    severity: int = G_LOGGER.module_severity.get(G_LOGGER.module_path(trt_util.__file__))
    return severity
