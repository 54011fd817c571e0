"""What `debug diff-tactics` does: load both sides, rank for each environment, tell."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.cli.comparison import Evidence, answer
from polygraphy_debug_ext.cli.front_door import STATUS_ERROR, guarded, say, whoever_reads
from polygraphy_debug_ext.cli.short_process import without_collector
from polygraphy_debug_ext.errors import FormatError, UsageError
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.model.answer import Conclusion
from polygraphy_debug_ext.reports import text
from polygraphy_debug_ext.reports.document import Document, Options
from polygraphy_debug_ext.reports.environments import several
from polygraphy_debug_ext.reports.lines import Line
from polygraphy_debug_ext.reports.table import Screen
from polygraphy_debug_ext.reports.verdict import verdict
from polygraphy_debug_ext.trials.audit import audit

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import TextIO

    from polygraphy_debug_ext.trials.audit import Audit

_RECORD: Final = (
    "Record replays with `polygraphy debug build MODEL --save-tactics replay.json --artifacts replay.json "
    "--artifacts-dir DIR --until N --check COMMAND`."
)
#: Suspects that are shown unless more are asked for; JUnit has its own limits.
_TOP: Final = {"text": 10, "markdown": 10, "json": 1000}


def run(args: argparse.Namespace) -> int:
    """Compare what the options name, say what was found, and return the exit status."""
    output = sys.stdout
    with contextlib.ExitStack() as stack:
        stack.enter_context(whoever_reads(output))
        stack.enter_context(without_collector())
        if args.format != "text" and not args.output:
            # Standard output is for the document alone.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        return guarded(lambda: _compare(args, output))
    return STATUS_ERROR


def _compare(args: argparse.Namespace, output: TextIO) -> int:
    places = _places(args.dir, args.good, args.bad)
    if args.output:
        _require_writable(Path(args.output))
    document, used = _document(args, places)
    # Whoever leaves before the end has no part in the verdict.
    with whoever_reads(output):
        _tell(args, document, used, output)
    if args.save_avoid:
        from polygraphy_debug_ext.cli import avoid_list  # noqa: PLC0415 - seldom wanted, and takes its time

        avoid_list.save(
            Path(args.save_avoid), avoid_list.of_answers(group.answer for group in document.groups)
        )
    return document.status if args.exit_code else document.plain_status


def _document(args: argparse.Namespace, places: tuple[Path, Path]) -> tuple[Document, list[Path]]:
    """Load and rank; return what is to be told, and the files that it rests on."""
    evidence = Evidence()
    good, bad = evidence.load(places[0], Verdict.GOOD), evidence.load(places[1], Verdict.BAD)
    if not evidence.used:
        say(text.about_the_files(Document(good=good, bad=bad, groups=())))
        raise UsageError(f"No tactic replay in {places[0]} or {places[1]}", _RECORD)
    audited = _audit(Path(args.dir), evidence.used) if args.dir else None
    unresolved = audited.unresolved if audited else 0
    groups = evidence.environments.groups()
    options = Options(
        view=args.by,
        method=args.method,
        confidence=args.confidence,
        rates_prior=args.rates_prior,
        top=args.top or _TOP.get(args.format),
    )
    document = Document(
        good=good,
        bad=bad,
        groups=tuple(answer(group, options, unresolved if len(groups) == 1 else 0) for group in groups),
        options=options,
        unresolved=unresolved,
        complaints=audited.complaints if audited else (),
    )
    if {group.answer.conclusion for group in document.groups} == {Conclusion.NOTHING_IN_COMMON}:
        raise UsageError(
            f"The replays in {places[0]} and {places[1]} have no layer in common: they are of different networks",
            "Compare replays of one network, built with the same options.",
        )
    return document, evidence.used


def _places(directory: str | None, good: str | None, bad: str | None) -> tuple[Path, Path]:
    """Say where the good and the bad replays are."""
    if not directory and not (good and bad):
        raise UsageError(
            "Either --dir, or both --good and --bad must be specified",
            "Name the --artifacts-dir of `debug build`.",
        )
    root = Path(directory or "")
    if directory and not root.is_dir():
        raise UsageError(f"--dir {root}: no such directory", "Name the --artifacts-dir of `debug build`.")
    places = Path(good) if good else root / "good", Path(bad) if bad else root / "bad"
    if directory and not any(place.exists() for place in places):
        raise UsageError(
            f"--dir {root}: neither 'good' nor 'bad' is in it", f"Name them with --good and --bad. {_RECORD}"
        )
    for option, named, place in (("--good", good, places[0]), ("--bad", bad, places[1])):
        if named and not place.exists():
            raise UsageError(f"{option} {place}: no such file or directory", "Check the path.")
    return places


def _require_writable(path: Path) -> None:
    """Refuse a place for the answer before anything is read."""
    if path.is_dir() or not path.parent.is_dir():
        what = "is a directory" if path.is_dir() else f"{path.parent} is no directory"
        raise UsageError(f"--output {path}: {what}", "Name a file in a directory that exists.")


def _audit(root: Path, used: Sequence[Path]) -> Audit | None:
    """Hold the files against the journal of the runs, if there is one. It is a help, not a condition."""
    try:
        return audit(root, used)
    except FormatError as error:
        G_LOGGER.warning(f"The journal is not used: {error.problem}. {error.remedy}")
        return None


def _tell(args: argparse.Namespace, document: Document, used: Sequence[Path], output: TextIO) -> None:
    """Write the answer where it is to go; a file leaves the verdict on the log."""
    root = args.dir or ""
    if args.output:
        path = Path(args.output)
        if any(path.exists() and path.samefile(each) for each in used):
            raise UsageError(f"--output {path}: is one of the files that are compared", "Name another file.")
        try:
            write_atomically(path, _rendered(args.format, document, root).encode())
        except OSError as error:
            raise UsageError(
                f"--output {path}: cannot be written ({error.strerror})", "Make room, or name another file."
            ) from error
        if args.format != "text":
            say(text.about_the_files(document, root))
        say(several(document))
        say(Line(verdict(group.answer)) for group in document.groups)
        G_LOGGER.info(f"Wrote {path}")
    elif args.format == "text":
        say(text.render(document, root, _screen(output)))
    else:
        say(text.about_the_files(document, root))
        output.buffer.write(_rendered(args.format, document, root).encode())


def _rendered(form: str, document: Document, root: str) -> str:
    """The document in one of the formats; only that one is imported."""
    if form == "json":
        from polygraphy_debug_ext.reports import json_document  # noqa: PLC0415

        return json_document.render(document)
    if form == "markdown":
        from polygraphy_debug_ext.reports import markdown  # noqa: PLC0415

        return markdown.render(document, root)
    if form == "junit":
        from polygraphy_debug_ext.reports import junit  # noqa: PLC0415

        return junit.render(document, time.strftime("%Y-%m-%dT%H:%M:%S"))
    return "".join(f"{line.text}\n" for line in text.render(document, root))


def _screen(output: TextIO) -> Screen | None:
    """The terminal, if that is what reads (https://no-color.org on NO_COLOR)."""
    if not output.isatty():
        return None
    return Screen(shutil.get_terminal_size().columns, colour=not os.environ.get("NO_COLOR"))
