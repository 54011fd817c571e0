"""The trials of an artifacts directory as rows of the page: what the journal says, and links to the logs and artifacts that are there."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from polygraphy_debug_ext.model import FaultSite, Reason, StopReason
from polygraphy_debug_ext.reports.html_page import Link, RunRow, TrialRow
from polygraphy_debug_ext.reports.lines import one_line, printable
from polygraphy_debug_ext.trials.logs import Logs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.formats import journal as form


def url(path: Path, page: Path) -> str:
    """Return the URL of a file, relative to the page. It begins with a dot, so that no name can be taken for a scheme."""
    relative = os.path.relpath(path.absolute(), page.absolute().parent)
    prefix = "" if relative.startswith("../") else "./"
    return prefix + quote(os.fsencode(relative))


class Trials:
    """What the journal holds, for a page that is to be written to `page`."""

    def __init__(self, root: Path, page: Path, journal: form.Journal) -> None:
        self._root = root
        self._page = page
        self._journal = journal

    @property
    def unresolved(self) -> int:
        """How many trials taught nothing."""
        return sum(
            record.judged is not None and record.judged.verdict == "unresolved"
            for run in self._journal.runs
            for record in run.trials.values()
        )

    def filed(self) -> dict[str, tuple[str, str]]:
        """Artifact (its name within the directory) to label and row of the trial that left it."""
        return {
            placement.destination: (f"N{index}", _row_id(number, index))
            for number, run in enumerate(self._journal.runs)
            for index, record in run.trials.items()
            if record.judged is not None
            for placement in record.judged.placements
        }

    def rows(self) -> tuple[RunRow, ...]:
        """The runs, in the order in which they were made."""
        return tuple(self._run(number, run) for number, run in enumerate(self._journal.runs))

    def _run(self, number: int, run: form.Run) -> RunRow:
        values = run.surroundings.values if run.surroundings is not None else {}
        return RunRow(
            stamp=printable(run.start.stamp),
            started=_when(run.start.time),
            command=printable(shlex.join(run.start.command)),
            ended=_ended(run.stopped),
            environment=tuple((printable(key), printable(str(value))) for key, value in values.items()),
            trials=tuple(
                self._trial(number, run.start.stamp, record) for _, record in sorted(run.trials.items())
            ),
        )

    def _trial(self, number: int, stamp: str, record: form.Record) -> TrialRow:
        index = record.started.trial
        built, judged = record.built, record.judged
        site = built.site if built is not None else None
        return TrialRow(
            id=_row_id(number, index),
            label=f"N{index}",
            started=_when(record.started.time),
            verdict=judged.verdict if judged is not None else "",
            reason=_reason(judged),
            purpose=printable(record.started.purpose),
            build_seconds=built.seconds if built is not None else None,
            check_seconds=tuple(each.seconds for each in record.checked),
            check_verdicts=tuple(printable(each.verdict) for each in record.checked),
            site=_site(site),
            error=one_line(built.text) if built is not None else "",
            logs=tuple(self._logs(stamp, index)),
            artifacts=tuple(self._artifacts(judged)),
        )

    def _logs(self, stamp: str, index: int) -> Iterator[Link]:
        logs = Logs(root=self._root, stamp=stamp)
        for what in ("build", "check"):
            path = logs.path(index, what)
            # A stamp is a date and a time: one that leads elsewhere is none of ours.
            if path.parent == self._root / "logs" and path.is_file():
                yield Link(text=what, url=url(path, self._page))

    def _artifacts(self, judged: form.TrialJudged | None) -> Iterator[Link]:
        for placement in judged.placements if judged is not None else ():
            path = self._root / placement.destination
            if not placement.destination.startswith("/") and path.is_file():
                yield Link(text=printable(Path(placement.source).name), url=url(path, self._page))


def _row_id(run: int, trial: int) -> str:
    return f"trial-{run}-{trial}"


def _when(time: str) -> str:
    """A time of the journal to the second; one that is not in its form as it is."""
    day, separator, rest = time.partition("T")
    clock, zone = rest[:8], rest[-6:]
    return printable(f"{day} {clock}{' UTC' if zone == '+00:00' else ''}") if separator else printable(time)


def _reason(judged: form.TrialJudged | None) -> str:
    if judged is None:
        return "in hand when the journal was read, or cut short"
    reason = Reason[judged.reason].value if judged.reason in Reason.__members__ else printable(judged.reason)
    return f"{reason}: {one_line(judged.detail)}" if judged.detail else reason


def _site(site: form.Site | None) -> str:
    if site is None:
        return ""
    return printable(
        str(FaultSite(layer=site.layer, runner=site.runner, tactic=site.tactic, error=site.error))
    )


def _ended(stopped: form.RunStopped | None) -> str:
    if stopped is None:
        return "The run is not finished."
    known = stopped.reason in StopReason.__members__
    reason = StopReason[stopped.reason].value if known else printable(stopped.reason)
    return f"It ended {_when(stopped.time)}: {reason}."
