"""Tells people what happens in a run: in Polygraphy's log, in its words, at its levels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.model import Reason, StopReason, Verdict
from polygraphy_debug_ext.reports.lines import count, listed, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import BuildFailure, Summary, Trial
    from polygraphy_debug_ext.trials.ports import CheckRun


#: Ways of failing that are told one by one, and iterations that are named for each.
_NAMED = 10


class LogObserver:
    """Writes to Polygraphy's log.

    Args:
        show_output: Show the output of checks that pass.
        hide_fail_output: Do not show that of checks that fail.
    """

    def __init__(self, *, show_output: bool, hide_fail_output: bool) -> None:
        self._show_output = show_output
        self._hide_fail_output = hide_fail_output

    def said(self, text: str, error: bool) -> None:  # noqa: FBT001 - it comes so from the worker
        """Show a line of the build process as it is: it went through Polygraphy's log there."""
        print(text, file=sys.stderr if error else sys.stdout)
        log_file = getattr(G_LOGGER, "_log_file", None)
        if log_file is not None:
            log_file.write(f"{text}\n")
            log_file.flush()

    def trial_starts(self, index: int) -> None:
        """Say so."""
        with G_LOGGER.indent():
            G_LOGGER.start(f"RUNNING | Iteration {index + 1}")

    def build_failed(self, failure: BuildFailure) -> None:
        """Say why, and where it was."""
        site = f"\nNote: It happened at: {printable(str(failure.site))}" if failure.site else ""
        with G_LOGGER.indent():
            G_LOGGER.warning(
                "Failed to create network or engine, continuing to the next iteration.\n"
                f"Note: Error was: {failure.reason.value}: {failure.text}{site}"
            )

    def check_starts(self, command: Sequence[str] | None) -> None:
        """Show the command."""
        if command is not None:
            with G_LOGGER.indent():
                G_LOGGER.info(f"Running check command: {' '.join(command)}")

    def check_ended(self, run: CheckRun) -> None:
        """Show its output where that is wanted."""
        good = run.judgement.verdict is Verdict.GOOD
        if run.judgement.reason is Reason.USER:
            return
        if not (self._show_output or (not good and not self._hide_fail_output)):
            return
        with G_LOGGER.indent():
            G_LOGGER.info(f"========== CAPTURED STDOUT ==========\n{run.stdout}")
            G_LOGGER.log(
                f"========== CAPTURED STDERR ==========\n{run.stderr}",
                severity=G_LOGGER.WARNING if good else G_LOGGER.ERROR,
            )

    def moving(self, source: str, destination: str) -> None:
        """Say what goes where."""
        with G_LOGGER.indent():
            G_LOGGER.info(f"Moving {source} to {destination}")

    def missing(self, artifact: str) -> None:
        """Say that there is no such artifact."""
        with G_LOGGER.indent():
            G_LOGGER.error(
                f"Artifact: {artifact} does not exist, skipping.\nWas the artifact supposed to be generated?"
            )

    def warn(self, text: str) -> None:
        """Say something that is not as it should be."""
        with G_LOGGER.indent():
            G_LOGGER.warning(text)

    def trial_ended(self, trial: Trial) -> None:
        """Say how it ended."""
        line = f"Iteration {trial.index + 1} | Duration {trial.seconds}s"
        with G_LOGGER.indent():
            if trial.verdict is Verdict.GOOD:
                G_LOGGER.finish(f"PASSED | {line}")
            elif trial.verdict is Verdict.BAD:
                G_LOGGER.error(f"FAILED | {line}")
            else:
                G_LOGGER.warning(f"UNRESOLVED | {line} | {one_line(str(trial.judgement))}")

    def abandon(self) -> None:
        """The process ends at once."""

    def run_stopped(self, summary: Summary) -> None:
        """Say what came of the run."""
        total, passed = len(summary.counted), summary.count(Verdict.GOOD)
        if total:
            G_LOGGER.finish(
                f"Finished {total} iteration(s) | Passed: {passed}/{total} | Pass Rate: {float(passed) * 100 / float(total)}%"
            )
        for line in failures(summary):
            G_LOGGER.info(line)
        if worth_telling(summary):
            G_LOGGER.info(tally(summary))


def failures(summary: Summary) -> list[str]:
    """The builds that failed: what happened, where, and in which iterations."""
    alike: dict[str, list[str]] = {}
    for trial in summary.trials:
        if trial.failure is not None:
            where = f" at {trial.failure.site}" if trial.failure.site else ""
            text = f"{trial.failure.reason.value}: {one_line(trial.failure.text)}{where}"
            alike.setdefault(text, []).append(str(trial.index + 1))
    lines = [
        f"Failed build in iteration {listed(tuple(indices), _NAMED)}: {printable(text)}"
        for text, indices in alike.items()
    ]
    more = len(lines) - _NAMED
    return (
        [*lines[:_NAMED], f"And builds that failed in {more} other ways: see the journal"]
        if more > 0
        else lines
    )


def worth_telling(summary: Summary) -> bool:
    """Whether there is more to say than Polygraphy's line does."""
    odd = summary.stop in {
        StopReason.NOTHING_LEARNED,
        StopReason.INTERRUPTED,
        StopReason.TERMINATED,
        StopReason.ERROR,
    }
    return odd or any(trial.verdict is Verdict.UNRESOLVED for trial in summary.trials)


def tally(summary: Summary) -> str:
    """Counts by verdict, and why the run ended."""
    counts = ", ".join(f"{summary.count(verdict)} {verdict.value}" for verdict in Verdict)
    cut_short = len(summary.trials) - len(summary.counted)
    apart = f" ({count(cut_short, 'interrupted trial')} not counted)" if cut_short else ""
    return f"{counts}{apart} | Stopped: {summary.stop.value}"
