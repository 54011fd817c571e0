"""Brings all that TensorRT says to the log of the build, whatever of it is shown on the terminal.

Polygraphy drops what its verbosity does not show before it is written anywhere. Where a build was when it died, only the
verbose lines tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.backend.trt import util as trt_util
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats.autotuning import Tables
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from polygraphy_debug_ext.formats.autotuning import TunedOp
    from polygraphy_debug_ext.trt.heard import Timings


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


class Listener:
    """Hears what TensorRT logs during a build: the autotuning tables, whether it took the timing cache, the list of layers.

    `timings` is None unless somebody wants to know them: most of a log are timing lines.
    """

    def __init__(self) -> None:
        self.timings: Timings | None = None
        self._remembered: dict[str, TunedOp] = {}
        self.begin()

    def begin(self) -> None:
        """Forget earlier builds, except for what is to be remembered."""
        self._tables = Tables()
        self.cache_refused = False
        self.layer_lines = ""
        if self.timings is not None:
            self.timings.begin()

    def remember(self, ops: Iterable[TunedOp]) -> None:
        """Know these ops in later builds as well: those that are in the timing cache are not tuned, and have no tables then."""
        self._remembered.update((op.key, op) for op in ops if op.key is not None)

    def tuned(self) -> tuple[TunedOp, ...]:
        """What was tuned in this build."""
        return self._tables.ops()

    def ops(self) -> tuple[TunedOp, ...]:
        """What was tuned in this build, and what is remembered of others."""
        tuned = self.tuned()
        keys = {op.key for op in tuned}
        return (*(op for key, op in self._remembered.items() if key not in keys), *tuned)

    def hear(self, message: str) -> None:
        """Take a message, which may have several lines."""
        if layer_lines.begins(message):
            self.layer_lines = message
            return
        for line in message.splitlines():
            self._tables.take(line)
            if self.timings is not None:
                self.timings.take(line)
        if "The timing cache will not be used!" in message:
            self.cache_refused = True


def listen() -> Listener:
    """Let a listener hear all that Polygraphy's TensorRT logger is told, from the next builder on."""
    trt = tensorrt()
    listener = Listener()
    told = trt_util.get_trt_logger()
    base: Any = trt.ILogger

    class ListenedLogger(base):  # type: ignore[misc]  # there is no type to derive from
        def __init__(self) -> None:
            base.__init__(self)

        def log(self, severity: Any, msg: str) -> None:  # noqa: ANN401
            listener.hear(msg)
            told.log(severity, msg)

    trt_util.TRT_LOGGER = ListenedLogger()
    return listener
