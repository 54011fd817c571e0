"""All the builds that a directory, or one file, tells of, whatever the files are; what is something else is kept, with the reason.

What a file is, its content says: tactic replay, layer information, build log; compressed or not. One trial may have left several
files, with one stamp in their names (`replay_12-02-26_10-00-00_N3.json`): they tell of one build, and the best of them counts.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import reading, replay
from polygraphy_debug_ext.formats.contents import Contents, Kind, Read, contents, is_binary

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from polygraphy_debug_ext.model import Assignment

#: Damaged files that are named one by one; the rest is counted.
_NAMED: Final = 10

#: Files of one place left out that are named one by one, and reasons that the rest is counted by.
_SKIPPED_NAMED: Final = 1000
_REASONS: Final = 100

#: Trials whose files may be read at once.
_AHEAD: Final = 8

_BEST: Final = tuple(Kind)

#: Bytes that tell text from an engine.
_GLANCE: Final = 256

#: What the loop puts into the name of what a trial left: date, time and number of the trial.
_STAMP: Final = re.compile(r"(?:^|_)(\d+-\d+-\d+_\d+-\d+-\d+_N\d+)(?=[._]|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file (or a build in it) that was left out, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What was found at one place: the assignments, in the order of their paths, and the files left out."""

    place: Path
    assignments: tuple[Assignment, ...]
    skipped: tuple[Skipped, ...] = ()


class _Damaged:
    """Files that cannot be used: the first ones, and how many they are."""

    def __init__(self) -> None:
        self.number = 0
        self._first: list[FormatError] = []

    def add(self, error: FormatError) -> None:
        """Take what is wrong with a file; its traceback would keep what was read of it."""
        self.number += 1
        if len(self._first) < _NAMED:
            self._first.append(FormatError(error.path, error.reason, error.remedy))

    def error(self, place: Path) -> FormatError:
        """Return one error for all of them."""
        if self.number == 1:
            return self._first[0]
        lines = [f"{Path(str(error.path)).relative_to(place)}: {error.reason}" for error in self._first]
        if self.number > _NAMED:
            lines.append(f"and {self.number - _NAMED} more")
        problem = "\n    ".join([f"{self.number} files cannot be used", *lines])
        return FormatError(place, problem, self._first[0].remedy)


class Reader:
    """Reads any number of places. Equal tactics become one object, across files and places.

    `kinds` counts the builds by what they were read from, `skipped` has what was left out: up to 1000 files of a place, of the
    rest `unnamed` counts the reasons, so that a million files that are something else take no memory. All grow while `records`
    is gone through.

    Args:
        whole: Keep what differs from build to build and is not compared, `time_ms` and `timing_cache`. That takes longer, and
            tactics are not shared then.
        engine: Reads an engine: what is nothing else is given to it. Without it, engines are left out.
    """

    def __init__(self, *, whole: bool = False, engine: Read | None = None) -> None:
        self.kinds: Counter[str] = Counter()
        self.skipped: list[Skipped] = []
        self.unnamed: Counter[str] = Counter()
        self._skipped_limit = _SKIPPED_NAMED
        self._loader = None if whole else replay.Loader()
        self._read_replay = replay.read if self._loader is None else self._loader.read
        self._read_engine = engine

    def records(self, place: Path) -> Iterator[Assignment]:
        """Read the file at `place`, or all below it if it is a directory, one after the other in the order of their paths.

        Hidden files are passed over, as Polygraphy does, and links to directories are not followed.

        Raises:
            FormatError: if there is nothing at `place`; if it is one file of another kind; if any is damaged. That comes
                at the end, and names them all: what they held is evidence, so that going on without them could blame an
                innocent tactic.
        """
        self._skipped_limit = len(self.skipped) + _SKIPPED_NAMED
        if not place.is_dir():
            yield from self._taken(self._contents(place))
            return
        damaged = _Damaged()
        trials = _trials(place)
        while batch := list(itertools.islice(trials, _AHEAD)):
            if self._loader is not None:
                self._loader.look_ahead([path for trial in batch for path in trial if path.suffix == ".json"])
            for trial in batch:
                yield from self._of_trial(trial, damaged)
        if damaged.number:
            raise damaged.error(place)

    def _of_trial(self, paths: Sequence[Path], damaged: _Damaged) -> Iterator[Assignment]:
        """Read what one trial left, or one file that stands for itself."""
        found: list[Contents] = []
        binary: list[Path] = []
        for path in paths:
            try:
                if (
                    self._read_engine is not None
                    and len(paths) > 1
                    and is_binary(reading.head(path, _GLANCE))
                ):
                    binary.append(path)
                else:
                    found.append(self._contents(path))
            except NotThisFormatError as error:
                self._leave_out(path, error.reason)
            except FormatError as error:
                damaged.add(error)
        if any(each.assignments for each in found):
            # To load an engine takes TensorRT, and time.
            reason = "an engine, whose tactics are told by another file of its trial"
            for path in binary:
                self._leave_out(path, reason)
        else:
            found += self._engines(binary)
        if found and _STAMP.search(paths[0].name):
            yield from self._best(found)
            return
        for each in found:
            yield from self._taken(each)

    def _leave_out(self, path: Path, reason: str) -> None:
        if len(self.skipped) < self._skipped_limit:
            self.skipped.append(Skipped(path=path, reason=reason))
        else:
            is_known = reason in self.unnamed or len(self.unnamed) < _REASONS
            self.unnamed[reason if is_known else "other reasons"] += 1

    def _engines(self, paths: Sequence[Path]) -> Iterator[Contents]:
        for path in paths:
            try:
                yield self._contents(path)
            except FormatError as error:
                self._leave_out(path, error.reason)

    def _best(self, found: Sequence[Contents]) -> Iterator[Assignment]:
        """Take what tells most of the one build that they are about; of a log, to which a run that went on was added, the last."""
        best = min(found, key=lambda each: (not each.assignments, _BEST.index(each.kind)))
        for each in found:
            if each is best:
                yield from self._taken(replace(each, assignments=each.assignments[-1:]))
            else:
                reason = f"tells of the same build as {best.path.name} ({best.kind.value})"
                reasons = [*each.left_out, *([reason] if each.assignments else [])]
                for reason in reasons:
                    self._leave_out(each.path, reason)

    def _contents(self, path: Path) -> Contents:
        # The name only tells what is worth a try; what a file is, its content says.
        ready = self._loader.ordinary(path) if self._loader is not None and path.suffix == ".json" else None
        if ready is not None:
            return Contents(path=path, kind=Kind.REPLAY, assignments=(ready,))
        return contents(path, self._read_replay, self._read_engine)

    def _taken(self, found: Contents) -> Iterator[Assignment]:
        for reason in found.left_out:
            self._leave_out(found.path, reason)
        for assignment in found.assignments:
            self.kinds[found.kind.value] += 1
            # Replays come with tactics that are shared already.
            if self._loader is None or found.kind is Kind.REPLAY:
                yield assignment
            else:
                yield self._loader.interned(assignment)


def collect(place: Path) -> Collection:
    """Read all that is at `place`.

    Raises:
        FormatError: as `Reader.records`.
    """
    reader = Reader()
    assignments = tuple(reader.records(place))
    return Collection(place=place, assignments=assignments, skipped=tuple(reader.skipped))


def _trials(directory: Path) -> Iterator[list[Path]]:
    """The files below a directory, in the order of their paths; those that one trial left come together."""
    pending = [directory]
    while pending:
        parent = pending.pop()
        names, directories = _listed(parent)
        pending += (parent / name for name in reversed(directories))
        stamps: dict[str, list[str]] = {}
        for name in names:
            if stamp := _STAMP.search(name):
                stamps.setdefault(stamp[1], []).append(name)
        # Of files that stand for themselves there may be millions: nothing but their names is kept.
        for name in names:
            stamp = _STAMP.search(name)
            together = stamps.pop(stamp[1], []) if stamp else [name]
            if together:
                yield [parent / each for each in together]


def _listed(directory: Path) -> tuple[list[str], list[str]]:
    """The names of the files and of the directories in a directory, sorted, but for hidden ones and links to directories."""
    names: list[str] = []
    directories: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    directories.append(entry.name)
                elif not (entry.is_symlink() and Path(entry.path).is_dir()):
                    names.append(entry.name)
    except OSError as error:
        raise FormatError(
            directory, f"cannot be read ({error.strerror})", "Check the path and its permissions."
        ) from error
    return sorted(names), sorted(directories)
