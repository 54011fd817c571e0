"""Builds in a child process, so that a crash or a hang costs one trial.

The child is kept between trials and started again after a failure: a CUDA error can poison all that comes after it in the same
process. Requests go to its standard input, answers come on a pipe of their own, and what it prints goes to a file from the
start: the file survives everybody, and the log of each trial is cut from it.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Final

import msgspec

from polygraphy_debug_ext.errors import BuildError, StorageError
from polygraphy_debug_ext.formats import build_log
from polygraphy_debug_ext.model import BuildFailure, BuildResult, Reason
from polygraphy_debug_ext.trials import protocol
from polygraphy_debug_ext.trials.judge import signal_text
from polygraphy_debug_ext.trials.streams import TICK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.model import FaultSite, Proposal
    from polygraphy_debug_ext.trials.interruption import Interruption
    from polygraphy_debug_ext.trials.logs import Logs
    from polygraphy_debug_ext.trials.processes import Nursery

#: Bytes of the worker's own log after which it is emptied between two trials.
_LOG_LIMIT: Final = 64 * 2**20
_CHUNK: Final = 2**20
#: Seconds that a worker may take to load the network, if a build may not take longer.
_START_LIMIT: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How the worker is started: the command (to which the descriptor for answers is added), and what it is told first."""

    command: Sequence[str]
    arguments: Mapping[str, Any]
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedBuild:
    """What came of a build in which tactics were forced.

    `not_honoured` says by layer why the engine does not have the tactic that was asked for (all others it has), `void` are layers
    whose tactic the recorded engine did not have either: forcing it means nothing. Both are empty if there is no engine.
    """

    result: BuildResult
    not_honoured: Mapping[str, str] = field(default_factory=dict)
    void: frozenset[str] = frozenset()


class _Died(Exception):  # noqa: N818 - it is an outcome of a build
    """The worker is gone, or does not answer in time."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text


class WorkerBuilder:
    """Builds in a worker.

    Args:
        launch: How it is started.
        nursery: Where its process lives.
        interruption: Ends the waiting for it.
        logs: Where the logs of the trials go, and its own.
        said: Called with each line for the terminal, and whether it is an error.
        timeout: The seconds that a build may take.
    """

    def __init__(
        self,
        launch: Launch,
        nursery: Nursery,
        interruption: Interruption,
        logs: Logs,
        said: Callable[[str, bool], None],
        *,
        timeout: float | None = None,
    ) -> None:
        self._launch = launch
        self._nursery = nursery
        self._interruption = interruption
        self._logs = logs
        self._said = said
        self._timeout = timeout
        self._worker: _Worker | None = None

    def start(self) -> dict[str, str]:
        """Start the worker and let it load the network.

        Raises:
            BuildError: if it cannot: nothing can be built then.
            StorageError: if its log cannot be written.
        """
        try:
            answer = self._started()
        except _Died as error:
            site = self._end(0)
            where = f", at {site}" if site else ""
            raise BuildError(
                f"The build process did not get ready ({error.reason.value}: {error.text}{where})",
                f"See its log, {self._logs.worker}.",
            ) from error
        return answer.environment

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        """Build an engine.

        Raises:
            Interrupted: if the run is to end; the worker is gone then.
            StorageError: if its log cannot be written.
        """
        del proposal
        return self._built(protocol.BuildTrial(trial=index)).result

    def build_forced(self, index: int, force: Path, caches: Sequence[Path] = ()) -> ForcedBuild:
        """Build an engine with the tactics of a replay; where tactics are saved, those that it really has are.

        Args:
            index: The trial.
            force: The replay. Layers that it does not have are free.
            caches: Replays whose timing caches are put together, after that of `force` if it has one. Where they differ, the
                first counts; tactics of `force` count before all of them.

        Raises:
            Interrupted: if the run is to end; the worker is gone then.
            StorageError: if its log cannot be written.
        """
        request = protocol.BuildTrial(trial=index, force=str(force), caches=[str(path) for path in caches])
        return self._built(request)

    def _built(self, request: protocol.BuildTrial) -> ForcedBuild:
        begun = time.monotonic()
        mark = self._log_size()
        answer: protocol.Answer | None = None
        failure = None
        try:
            if self._worker is None:
                self._started()
            answer = self._asked(request, self._timeout)
            if isinstance(answer, protocol.Failed):
                failure = BuildFailure(reason=Reason.BUILD_ERROR, text=answer.problem)
        except BuildError as error:
            failure = BuildFailure(reason=Reason.BUILD_ERROR, text=error.problem)
        except _Died as error:
            failure = BuildFailure(reason=error.reason, text=error.text)
        except BaseException:
            self._end(mark)
            raise
        seconds = time.monotonic() - begun
        if failure is not None:
            site = self._end(mark)
            failure = BuildFailure(reason=failure.reason, text=failure.text, site=site)
        self._cut(request.trial, mark)
        result = BuildResult(seconds=seconds, failure=failure)
        if not isinstance(answer, protocol.Built):
            return ForcedBuild(result=result)
        return ForcedBuild(result=result, not_honoured=dict(answer.not_honoured), void=frozenset(answer.void))

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._worker.end(self._nursery)
            self._worker = None

    def _started(self) -> protocol.Ready:
        """Start a worker; return what it says when it is ready."""
        path = self._logs.worker
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            log = path.open("ab")
        except OSError as error:
            raise StorageError(
                f"The log {path} cannot be written ({error.strerror})", "Make room or mend the permissions."
            ) from error
        with log:
            self._worker = _Worker(self._launch, self._nursery, log)
        # Loading is no build; but where somebody cares about time, it must end some day.
        limit = None if self._timeout is None else max(self._timeout, _START_LIMIT)
        answer = self._asked(protocol.Load(arguments=dict(self._launch.arguments)), limit)
        if isinstance(answer, protocol.Failed):
            self.close()
            raise BuildError(answer.problem, answer.remedy)
        if not isinstance(answer, protocol.Ready):
            raise _Died(Reason.BUILD_CRASH, f"it answered {type(answer).__name__} when it should be ready")
        return answer

    def _asked(self, request: protocol.Request, timeout: float | None) -> protocol.Answer:
        """Return the answer to a request; lines for the terminal are passed on while it lasts."""
        worker = self._worker
        if worker is None:
            raise _Died(Reason.BUILD_CRASH, "it was not started")
        deadline = None if timeout is None else time.monotonic() + timeout
        worker.send(request)
        while True:
            self._interruption.check()
            if deadline is not None and time.monotonic() > deadline:
                raise _Died(Reason.BUILD_TIMEOUT, f"no answer after {timeout:g} s (--build-timeout)")
            answer = worker.answer()
            if isinstance(answer, protocol.Said):
                self._said(answer.text, answer.error)
            elif answer is not None:
                return answer

    def _end(self, mark: int) -> FaultSite | None:
        """End the worker; say where it was, by what its log has after `mark`."""
        self.close()
        with contextlib.suppress(OSError), self._logs.worker.open("rb") as file:
            file.seek(mark)
            return build_log.failure(_lines(file)).site
        return None

    def _cut(self, index: int, mark: int) -> None:
        """Copy what the worker said since `mark` to the log of a trial."""
        with (
            contextlib.suppress(OSError),
            self._logs.worker.open("rb") as file,
            self._logs.opened(index, "build") as log,
        ):
            file.seek(mark)
            while chunk := file.read(_CHUNK):
                log.feed(chunk)
        # It is appended to, whoever writes: emptying it between two trials does no harm.
        if self._log_size() > _LOG_LIMIT:
            with contextlib.suppress(OSError):
                os.truncate(self._logs.worker, 0)

    def _log_size(self) -> int:
        try:
            return self._logs.worker.stat().st_size
        except OSError:
            return 0


class _Worker:
    """A worker that runs."""

    def __init__(self, launch: Launch, nursery: Nursery, log: IO[bytes]) -> None:
        reading, writing = os.pipe()
        try:
            self._process = nursery.start(
                [*launch.command, str(writing)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=[writing],
            )
        except OSError as error:
            os.close(reading)
            raise _Died(
                Reason.BUILD_CRASH, f"the build process cannot be started ({error.strerror})"
            ) from error
        finally:
            os.close(writing)
        self._answers = reading
        self._pending = bytearray()

    def send(self, request: protocol.Request) -> None:
        """Put a request; that nobody takes it is found out when nobody answers."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(protocol.line(request))
                self._process.stdin.flush()

    def answer(self) -> protocol.Answer | None:
        """Return the next answer; none if none came for a while.

        Raises:
            _Died: if there will be none.
        """
        line = self._line()
        if line is None:
            return None
        try:
            return protocol.ANSWERS.decode(line)
        except msgspec.MsgspecError as error:
            raise _Died(Reason.BUILD_CRASH, f"the build process does not speak sense ({error})") from error

    def end(self, nursery: Nursery) -> None:
        """Kill it, and what it started."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        nursery.end(self._process)
        os.close(self._answers)

    def _death(self) -> str:
        try:
            code = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its answers"
        if code >= 0:
            return f"exit status {code}"
        text = signal_text(-code)
        # Nobody but the kernel sends this one unasked.
        return f"{text}, as when memory runs out" if text.endswith("(SIGKILL)") else text

    def _line(self) -> bytes | None:
        """Return the next line; none if it did not come for a while."""
        end = self._pending.find(b"\n")
        if end < 0:
            if not select.select([self._answers], [], [], TICK)[0]:
                return None
            chunk = os.read(self._answers, _CHUNK)
            if not chunk:
                raise _Died(Reason.BUILD_CRASH, self._death())
            self._pending += chunk
            end = self._pending.find(b"\n")
            if end < 0:
                return None
        line = bytes(self._pending[:end])
        del self._pending[: end + 1]
        return line


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file, however long they are."""
    while line := file.readline(_CHUNK):
        yield line
