"""A live line below the log, on a terminal: which trial, what it does, what came of the others, how long it may take yet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from polygraphy_debug_ext.cli.watching import LogObserver
from polygraphy_debug_ext.model import Trial, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Summary
    from polygraphy_debug_ext.trials.ports import CheckRun

_STYLES = {Verdict.GOOD: "green", Verdict.BAD: "red", Verdict.UNRESOLVED: "yellow"}


class Progress:
    """What the live line says; it knows how many trials there are to be, if anybody does."""

    def __init__(self, total: int | None) -> None:
        self._total = total
        self._counts = dict.fromkeys(Verdict, 0)
        self._seconds: list[float] = []
        self._phase = ""
        self._index = 0
        self._begun = time.monotonic()

    def enter(self, phase: str, index: int | None = None) -> None:
        """Another phase begins, maybe of another trial."""
        self._phase = phase
        self._index = self._index if index is None else index
        self._begun = time.monotonic()

    def count(self, trial: Trial) -> None:
        """A trial is over."""
        if not trial.interrupted:
            self._counts[trial.verdict] += 1
            self._seconds.append(trial.seconds)

    def __rich__(self) -> Text:
        """The line as it is now."""
        of = f" of {self._total}" if self._total else ""
        line = Text(f"Iteration {self._index + 1}{of}: {self._phase} {time.monotonic() - self._begun:.0f}s")
        for verdict, number in self._counts.items():
            line.append(" | ")
            line.append(f"{number} {verdict.value}", style=_STYLES[verdict])
        if self._seconds:
            mean = sum(self._seconds) / len(self._seconds)
            line.append(f" | {mean:.1f}s each")
            if self._total:
                line.append(f", about {_duration(mean * max(self._total - len(self._seconds), 0))} left")
        return line


class LiveObserver(LogObserver):
    """Writes to the log, above a live line.

    Args:
        total: How many trials there are to be, if it is known.
        show_output: As for the log.
        hide_fail_output: As for the log.
        console: Where the line is shown.
    """

    def __init__(
        self,
        total: int | None,
        *,
        show_output: bool,
        hide_fail_output: bool,
        console: Console | None = None,
    ) -> None:
        super().__init__(show_output=show_output, hide_fail_output=hide_fail_output)
        self._progress = Progress(total)
        # The log is shown as it is: neither wrapped nor coloured anew.
        console = console or Console(soft_wrap=True, highlight=False)
        self._live = Live(self._progress, console=console, refresh_per_second=4, transient=True)

    def trial_starts(self, index: int) -> None:
        """Show the line from the first trial on."""
        super().trial_starts(index)
        self._progress.enter("building", index)
        self._live.start()

    def check_starts(self, command: Sequence[str] | None) -> None:
        """Say so; a question to a person needs the terminal for itself."""
        super().check_starts(command)
        self._progress.enter("checking")
        if command is None:
            self._live.stop()

    def check_ended(self, run: CheckRun) -> None:
        """Say so."""
        super().check_ended(run)
        self._progress.enter("filing")
        self._live.start()

    def trial_ended(self, trial: Trial) -> None:
        """Count it."""
        super().trial_ended(trial)
        self._progress.count(trial)

    def abandon(self) -> None:
        """Show the cursor again."""
        self._live.console.show_cursor()

    def run_stopped(self, summary: Summary) -> None:
        """Remove the line."""
        self._live.stop()
        super().run_stopped(summary)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02}m"
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"
