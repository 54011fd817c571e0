"""What `debug report` does: loads the builds and the journal, ranks, and writes the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext import __version__
from polygraphy_debug_ext.analysis.environments import Comparable
from polygraphy_debug_ext.analysis.table import TableBuilder
from polygraphy_debug_ext.cli.comparison import Evidence, answer
from polygraphy_debug_ext.cli.front_door import guarded, say
from polygraphy_debug_ext.cli.report_trials import Trials, url
from polygraphy_debug_ext.errors import FormatError, UsageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.model.answer import Environment
from polygraphy_debug_ext.reports.document import Document, Options
from polygraphy_debug_ext.reports.environments import mixed, several
from polygraphy_debug_ext.reports.html_map import map_data
from polygraphy_debug_ext.reports.html_page import BEGINNING, Build, Comparison, Page, render
from polygraphy_debug_ext.reports.lines import printable
from polygraphy_debug_ext.reports.text import about_the_files, not_compared
from polygraphy_debug_ext.reports.verdict import advice, verdict
from polygraphy_debug_ext.trials.audit import audit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.reports.document import Group

_TRIAL: Final = re.compile(r"_N(\d+)\.[^/]*$")
#: What there is to compare where no trial left a build.
_NOTHING: Final = Comparable(table=TableBuilder().table(), environment=Environment())


def run(directory: str, output: str | None, title: str) -> int:
    """Write the page (see the options), say where it is, and return the exit status."""
    return guarded(lambda: _write(Path(directory), output, title))


def _write(root: Path, output: str | None, title: str) -> int:
    if not root.is_dir():
        raise UsageError(f"--dir {root}: no such directory", "Name the --artifacts-dir of `debug build`.")
    path = Path(output) if output else root / "report.html"
    _require_writable(path)
    page = _page(root, path, title)
    data = render(page)
    try:
        write_atomically(path, data)
    except OSError as error:
        raise UsageError(
            f"--output {path}: cannot be written ({error.strerror})", "Make room, or name another file."
        ) from error
    for comparison in page.comparisons:
        heading = f"{comparison.heading}: " if comparison.heading else ""
        G_LOGGER.info(f"{heading}{comparison.sentences[0]}")
    G_LOGGER.info(f"Wrote {path} ({len(data) / 1e6:.1f} MB)")
    return 0


def _require_writable(path: Path) -> None:
    """Refuse what is not a report, before anything is read."""
    if path.is_dir():
        raise UsageError(f"--output {path}: is a directory", "Name a file, for example report.html in it.")
    if not path.parent.is_dir():
        raise UsageError(f"--output {path}: {path.parent} is no directory", "Make it, or name another place.")
    if path.exists() and not _is_report(path):
        raise UsageError(
            f"--output {path}: there is a file that is no report of this tool",
            "Move it away, or name another file.",
        )


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(len(BEGINNING))
    except OSError:
        return False
    return start in {b"", BEGINNING.encode()}


def _page(root: Path, path: Path, title: str) -> Page:
    evidence = Evidence()
    good, bad = (evidence.load(root / side.value, side) for side in (Verdict.GOOD, Verdict.BAD))
    trials, complaints = _trials(root, path, evidence.used)
    rows = trials.rows() if trials is not None else ()
    if not evidence.used and not any(run.trials for run in rows):
        raise UsageError(
            f"--dir {root}: there is nothing to show: no build in 'good' or 'bad', and no trial in {form.NAME}",
            "Record builds with `polygraphy debug build MODEL --save-tactics replay.json --artifacts replay.json "
            f"--artifacts-dir {root} --until N --check COMMAND`.",
        )
    unresolved = trials.unresolved if trials is not None else 0
    comparables = evidence.environments.groups() if evidence.used else (_NOTHING,)
    groups = [answer(each, Options(), unresolved if len(comparables) == 1 else 0) for each in comparables]
    document = Document(
        good=good, bad=bad, groups=tuple(groups), unresolved=unresolved, complaints=complaints
    )
    notes = [*about_the_files(document, str(root)), *several(document)]
    say(notes)
    places = _Places(root=root, page=path, filed=trials.filed() if trials is not None else {})
    now = datetime.now(timezone.utc)
    return Page(
        title=printable(title),
        directory=printable(str(root.absolute())),
        made=f"written {now:%Y-%m-%d %H:%M} UTC by polygraphy-debug-ext {__version__}",
        comparisons=tuple(
            _comparison(comparable.table, group, places)
            for comparable, group in zip(comparables, groups, strict=True)
        ),
        runs=rows,
        notes=tuple(line.text for line in notes),
    )


def _trials(root: Path, page: Path, used: Sequence[Path]) -> tuple[Trials | None, tuple[str, ...]]:
    """The journal, if there is one that can be read (the builds can be shown without it), and what does not fit it."""
    journal = root / form.NAME
    if not journal.exists():
        return None, ()
    try:
        trials = Trials(root, page, form.read(journal))
        audited = audit(root, used)
    except FormatError as error:
        G_LOGGER.warning(f"The journal is not used: {error.problem}. {error.remedy}")
        return None, ()
    return trials, audited.complaints if audited is not None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where files are, and which trial left them."""

    root: Path
    page: Path
    filed: Mapping[str, tuple[str, str]]

    def build(self, origin: str, number: int, *, bad: bool) -> Build:
        """The column of a build; `number` is its place in the table."""
        path = Path(origin)
        name = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else str(path)
        found = _TRIAL.search(name)
        label, row = self.filed.get(name, (f"N{found[1]}" if found else str(number + 1), ""))
        return Build(
            label=label,
            name=printable(name),
            bad=bad,
            url=url(path, self.page) if path.is_file() else "",
            trial=row,
        )


def _comparison(table: Table, group: Group, places: _Places) -> Comparison:
    builds = [
        places.build(origin, number, bad=bool(table.bad[number]))
        for number, origin in enumerate(table.origins)
    ]
    # Bad builds first: there are few of them as a rule, and they are in view then.
    order = sorted(range(len(builds)), key=lambda each: (not builds[each].bad, _natural(builds[each].name)))
    return Comparison(
        heading=printable(group.title) if group.apart else "",
        answer=group.answer,
        sentences=(verdict(group.answer), *advice(group.answer), *mixed(group), *not_compared(group)),
        builds=tuple(builds[each] for each in order),
        map=map_data(table, group.answer, order),
    )


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A key that puts N2 before N10."""
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name))
