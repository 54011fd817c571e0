"""The build worker: the front door of the child process in which engines are built.

It loads the network once, and builds when it is asked to. What it prints goes to a file; lines of Polygraphy's log, and others
that Python prints, are passed on to the parent as well, which shows them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from argparse import Namespace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from polygraphy.exception import PolygraphyException
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import LoggerArgs
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs, CheckCmdArgs

from polygraphy_debug_ext.cli.build import Build
from polygraphy_debug_ext.cli.in_process import ITERATION
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.trial_options import TrialArgs
from polygraphy_debug_ext.errors import DebugExtError
from polygraphy_debug_ext.trials import protocol
from polygraphy_debug_ext.trials.processes import die_with_parent
from polygraphy_debug_ext.trt.build import EngineBuilder
from polygraphy_debug_ext.trt.logger import log_everything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_STDOUT = 1
#: These groups are about the run, and were parsed by the parent.
_OF_THE_RUN = (CheckCmdArgs, ArtifactSortArgs, IterationArgs, TrialArgs)


class Relay:
    """A text stream: each line goes to the log, and to the parent."""

    def __init__(self, log: int, send: Callable[[str], None]) -> None:
        self._log = log
        self._send = send
        self._pending = ""

    def write(self, text: str) -> int:
        """Take text; what is not a whole line waits."""
        *lines, self._pending = (self._pending + text).split("\n")
        for line in lines:
            write_log(f"{line}\n".encode(errors="replace"), self._log)
            self._send(line)
        return len(text)

    def flush(self) -> None:
        """Nothing waits but a line that is not whole."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return False

    def fileno(self) -> int:
        """The descriptor of the log."""
        return self._log


class Service:
    """Answers requests.

    Args:
        answer: Sends an answer.
    """

    def __init__(self, answer: Callable[[protocol.Answer], None]) -> None:
        self._answer = answer
        self._builder: EngineBuilder | None = None

    def serve(self, requests: IO[bytes]) -> None:
        """Answer until there are no more requests."""
        for line in requests:
            request = protocol.REQUESTS.decode(line)
            begun = time.monotonic()
            try:
                self._do(request, begun)
            except DebugExtError as error:
                seconds = time.monotonic() - begun
                self._answer(protocol.Failed(problem=error.problem, remedy=error.remedy, seconds=seconds))
            except PolygraphyException as error:
                self._answer(protocol.Failed(problem=str(error), remedy="See the lines above."))

    def _do(self, request: protocol.Request, begun: float) -> None:
        match request:
            case protocol.Load():
                environment = self._load(request.arguments)
                self._answer(protocol.Ready(environment=environment))
            case protocol.BuildTrial() if self._builder is not None:
                os.environ[ITERATION] = str(request.trial)
                # In trtexec's words: the log of a trial can be read on its own, and builds of other versions told from it.
                write_log(f"[I] TensorRT version: {_version(self._builder.environment)}\n".encode())
                force = None if request.force is None else Path(request.force)
                with G_LOGGER.indent():
                    report = self._builder.build(force, [Path(path) for path in request.caches])
                self._answer(
                    protocol.Built(
                        trial=request.trial,
                        seconds=time.monotonic() - begun,
                        not_honoured=dict(report.not_honoured),
                        void=sorted(report.void),
                    )
                )
            case _:
                raise DebugExtError("No network was loaded", "Load one first.")

    def _load(self, arguments: dict[str, Any]) -> dict[str, str]:
        tool = Build()
        tool.setup_parser()
        # The parent writes it.
        args = Namespace(**{**arguments, "log_file": None})
        groups = tool.arg_groups
        # What they have to say about the arguments, the parent has shown.
        with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
            for kind, group in groups.items():
                if kind not in (*_OF_THE_RUN, LoggerArgs):
                    group.parse(args)
        groups[LoggerArgs].parse(args)
        log_everything(write_log)
        self._builder = EngineBuilder(groups, args)
        self._builder.load()
        return self._builder.environment


def _version(environment: Mapping[str, str]) -> str:
    return environment.get("tensorrt") or environment.get("tensorrt_rtx", "")


def write_log(data: bytes, log: int = _STDOUT) -> None:
    """Write to the log at once. A full disk ends the log, not the build."""
    with contextlib.suppress(OSError):
        os.write(log, data)


def main(arguments: list[str]) -> None:
    """Serve the parent `arguments[0]` on the descriptor `arguments[1]`."""
    die_with_parent(int(arguments[0]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    descriptor = int(arguments[1])
    # What the builder starts must not hold the pipe.
    os.set_inheritable(descriptor, False)
    requests = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def answer(message: protocol.Answer) -> None:
        data = protocol.line(message)
        while data:
            data = data[os.write(descriptor, data) :]

    sys.stdout = Relay(_STDOUT, lambda text: answer(protocol.Said(text=text, error=False)))
    sys.stderr = Relay(_STDOUT, lambda text: answer(protocol.Said(text=text, error=True)))
    Service(answer).serve(requests)


if __name__ == "__main__":
    main(sys.argv[1:])
