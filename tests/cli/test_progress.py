"""The live line: which trial, what it does, what came of the others, and how long it may take yet."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from polygraphy_debug_ext.cli.progress import LiveObserver, Progress
from polygraphy_debug_ext.model import Judgement, Reason, StopReason, Summary, Trial, Verdict

if TYPE_CHECKING:
    from tests.cli.conftest import DebugBuild


def trial(index: int, verdict: Verdict, reason: Reason = Reason.CHECK_EXIT_CODE) -> Trial:
    return Trial(index=index, judgement=Judgement(verdict=verdict, reason=reason), seconds=90.0)


def test_the_line_tells_trial_phase_verdicts_and_the_rest() -> None:
    progress = Progress(40)
    progress.enter("building", 0)
    assert progress.__rich__().plain == "Iteration 1 of 40: building 0s | 0 good | 0 bad | 0 unresolved"
    progress.count(trial(0, Verdict.GOOD))
    progress.count(trial(1, Verdict.BAD))
    progress.count(trial(2, Verdict.UNRESOLVED, Reason.INTERRUPTED))
    progress.enter("checking", 3)
    assert progress.__rich__().plain == (
        "Iteration 4 of 40: checking 0s | 1 good | 1 bad | 0 unresolved | 90.0s each, about 57m 00s left"
    )


def test_where_nobody_knows_how_many_there_are_nothing_is_estimated() -> None:
    progress = Progress(None)
    progress.enter("building", 6)
    progress.count(trial(5, Verdict.GOOD))
    assert (
        progress.__rich__().plain == "Iteration 7: building 0s | 1 good | 0 bad | 0 unresolved | 90.0s each"
    )


def test_the_line_is_gone_at_the_end() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200)
    observer = LiveObserver(2, show_output=False, hide_fail_output=False, console=console)
    observer.trial_starts(0)
    observer.check_starts(["true"])
    observer.trial_ended(trial(0, Verdict.GOOD))
    observer.run_stopped(Summary(trials=(trial(0, Verdict.GOOD),), stop=StopReason.ITERATIONS_DONE))
    assert "Iteration 1 of 2" in screen.getvalue()
    # The cursor is back, and the line erased.
    assert screen.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")


ON_A_TERMINAL = """
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)
"""


def test_on_a_terminal_there_is_a_line_and_the_log_is_as_it_is_elsewhere(debug_build: DebugBuild) -> None:
    command = debug_build.command(["--until", "2"])
    debug_build.environment["TERM"] = "xterm"
    done = subprocess.run(
        [sys.executable, "-c", ON_A_TERMINAL, *command],
        cwd=debug_build.directory,
        env=debug_build.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Iteration 2 of 2: " in done.stdout
    assert debug_build.run(["--until", "2"]) == 0
    assert "Iteration 2 of 2: " not in debug_build.output
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", done.stdout)
    for line in (
        "Finished 2 iteration(s) | Passed: 2/2 | Pass Rate: 100.0%",
        "Profiling Verbosity    | Profiling",
    ):
        assert line in shown
        assert line in debug_build.output
