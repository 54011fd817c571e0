"""Runs the check command: without a shell, for a limited time, its output streamed to the log of the trial.

`{engine}`, `{iteration}` and `{artifacts_dir}` in the command are replaced; the same values are in the environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Judgement, Reason, Verdict
from polygraphy_debug_ext.trials.capture import Ends, Scan
from polygraphy_debug_ext.trials.judge import Rules, judge
from polygraphy_debug_ext.trials.ports import CheckRun
from polygraphy_debug_ext.trials.streams import chunks, wait_a_tick

if TYPE_CHECKING:
    from polygraphy_debug_ext.trials.interruption import Interruption
    from polygraphy_debug_ext.trials.logs import Logs, Sink
    from polygraphy_debug_ext.trials.processes import Nursery

#: How long the output may go on after the check itself has ended and all that it started was killed.
_DRAIN: Final = 1.0


_REMEDY: Final = "Correct the command after --check; it is run without a shell."


class CheckNotStarted(Exception):  # noqa: N818 - it is no error of the trial
    """The check command could not be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The check as the user wrote it, and the values for its placeholders."""

    words: tuple[str, ...]
    engine: str
    artifacts_dir: str

    def of(self, index: int) -> list[str]:
        """The command for a trial. Other braces stay as they are."""
        values = {
            "{engine}": self.engine,
            "{iteration}": str(index),
            "{artifacts_dir}": self.artifacts_dir,
        }
        words = list(self.words)
        for placeholder, value in values.items():
            words = [word.replace(placeholder, value) for word in words]
        return words

    def environment(self, index: int, repetition: int) -> dict[str, str]:
        """The environment of the check."""
        return {
            **os.environ,
            "POLYGRAPHY_DEBUG_ENGINE": self.engine,
            "POLYGRAPHY_DEBUG_ITERATION": str(index),
            "POLYGRAPHY_DEBUG_ARTIFACTS_DIR": self.artifacts_dir,
            "POLYGRAPHY_DEBUG_REPETITION": str(repetition),
        }

    def require_startable(self) -> None:
        """Refuse a command that cannot be started, before anything is built.

        Raises:
            UsageError: if it is empty, not found, or not executable.
        """
        if not self.words:
            raise UsageError("--check without a command", _REMEDY)
        program = self.of(0)[0]
        if shutil.which(program) is not None:
            return
        path = Path(program)
        # Without a slash only PATH counts.
        if path.name != program and path.exists():
            kind = "is a directory" if path.is_dir() else "is not executable"
            raise UsageError(f"The check command {program} {kind}", _REMEDY)
        raise UsageError(f"The check command {program} was not found", _REMEDY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Both output streams of one run, as far as they are kept, and what was looked for in them."""

    stdout: Ends
    stderr: Ends
    scans: tuple[Scan, Scan]

    def feed(self, stream: int, chunk: bytes) -> None:
        """Take a chunk of one of them."""
        (self.stdout, self.stderr)[stream].feed(chunk)
        self.scans[stream].feed(chunk)

    def matched(self, rules: Rules) -> bool:
        """Whether a regular expression of the rules occurs in the output."""
        patterns = rules.fail_regexes or ()
        if self.stdout.whole and self.stderr.whole:
            # As in Polygraphy, where one text is searched.
            text = self.stdout.text() + self.stderr.text()
            return any(pattern.search(text) for pattern in patterns)
        return any(scan.matched for scan in self.scans)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCheck:
    """A check by a command."""

    line: Command
    rules: Rules
    nursery: Nursery
    interruption: Interruption
    logs: Logs
    timeout: float | None = None
    repetitions: int = 1

    def command(self, index: int) -> list[str]:
        """The command of a trial."""
        return self.line.of(index)

    def check(self, index: int, repetition: int) -> CheckRun:
        """Run the command.

        Raises:
            CheckNotStarted: if it cannot be started.
            Interrupted: if the run is to end; nothing of the check is left then.
        """
        words = self.line.of(index)
        begun = time.monotonic()
        try:
            process = self.nursery.start(
                words,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.line.environment(index, repetition),
            )
        except OSError as error:
            raise CheckNotStarted(f"{words[0]}: {error.strerror}") from error
        try:
            with self.logs.opened(index, "check", heading=f"$ {shlex.join(words)}") as log:
                output, exit_code = self._follow(process, log)
        finally:
            self.nursery.end(process)
        seconds = time.monotonic() - begun
        if exit_code is None:
            judgement = Judgement(
                verdict=Verdict.BAD,
                reason=Reason.CHECK_TIMEOUT,
                detail=f"not finished after {self.timeout:g} s (--check-timeout)",
            )
        else:
            judgement = judge(self.rules, exit_code, matched=output.matched(self.rules))
        return CheckRun(
            judgement=judgement,
            seconds=seconds,
            exit_code=exit_code,
            stdout=output.stdout.text(),
            stderr=output.stderr.text(),
        )

    def _follow(self, process: subprocess.Popen[bytes], log: Sink) -> tuple[Output, int | None]:
        """Take the output until the check ends; the exit status is None if it did not in time."""
        patterns = self.rules.fail_regexes or ()
        output = Output(stdout=Ends(), stderr=Ends(), scans=(Scan(patterns), Scan(patterns)))
        clock = _Clock(self.timeout)
        coming = chunks(process)
        try:
            while coming.open and not clock.expired(process):
                self.interruption.check()
                came = coming.next()
                for stream, chunk in came:
                    output.feed(stream, chunk)
                    log.feed(chunk)
                if coming.open and clock.let_go(process, idle=not came):
                    # The check is over, but what it started holds the pipe.
                    self.nursery.end(process)
        finally:
            coming.close()
        while process.poll() is None and not clock.expired(process):
            self.interruption.check()
            wait_a_tick(process)
        for scan in output.scans:
            scan.feed(b"", final=True)
        return output, process.poll()


class _Clock:
    """The time that a check may take, and the time that its output may go on after its end."""

    def __init__(self, timeout: float | None) -> None:
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._ended: float | None = None
        self._let_go = False

    def expired(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether the check has run for too long, or its output has gone on for too long after its end."""
        now = time.monotonic()
        if process.poll() is None:
            return self._deadline is not None and now > self._deadline
        self._ended = self._ended or now
        return now - self._ended > 2 * _DRAIN

    def let_go(self, process: subprocess.Popen[bytes], *, idle: bool) -> bool:
        """Whether it is time (once) to kill what an ended check left behind: its output rests, or does not end."""
        if self._let_go or process.poll() is None:
            return False
        now = time.monotonic()
        self._ended = self._ended or now
        self._let_go = idle or now - self._ended > _DRAIN
        return self._let_go
