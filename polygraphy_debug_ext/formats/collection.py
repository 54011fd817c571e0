"""All the assignments that a directory, or one file, holds; what is something else is kept, with the reason."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import layer_information, replay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.model import Assignment

#: Damaged files that are named one by one; the rest is counted.
_NAMED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A file that was left out, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """What was found at one place: the assignments, in the order of their paths, and the files left out."""

    place: Path
    assignments: tuple[Assignment, ...]
    skipped: tuple[Skipped, ...] = ()


def collect(place: Path) -> Collection:
    """Read the file at `place`, or all below it if it is a directory: tactic replays and layer information.

    Hidden files are passed over, as Polygraphy does, and links to directories are not followed.

    Raises:
        FormatError: if there is nothing at `place`; if it is one file of another kind; if any is damaged
            (all of them are named: what they held is evidence, so that going on without them could blame an
            innocent tactic).
    """
    if not place.is_dir():
        return Collection(place=place, assignments=(_read(place),))
    assignments: list[Assignment] = []
    skipped: list[Skipped] = []
    damaged: list[FormatError] = []
    for path in _files(place):
        try:
            assignments.append(_read(path))
        except NotThisFormatError as error:
            skipped.append(Skipped(path=path, reason=error.reason))
        except FormatError as error:
            damaged.append(error)
    if len(damaged) == 1:
        raise damaged[0]
    if damaged:
        lines = [f"{Path(str(error.path)).relative_to(place)}: {error.reason}" for error in damaged[:_NAMED]]
        if len(damaged) > _NAMED:
            lines.append(f"and {len(damaged) - _NAMED} more")
        raise FormatError(
            place, "\n    ".join([f"{len(damaged)} files cannot be used", *lines]), damaged[0].remedy
        )
    return Collection(place=place, assignments=tuple(assignments), skipped=tuple(skipped))


def _read(path: Path) -> Assignment:
    """Read a file of any kind, by its content."""
    try:
        return replay.read(path)
    except NotThisFormatError as error:
        try:
            return layer_information.read(path)
        except NotThisFormatError as other:
            # Layer information without tactics has more to say than that it is no replay.
            raise other if other.reason.startswith("no tactic information") else error from None


def _files(directory: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise FormatError(
            error.filename, f"cannot be read ({error.strerror})", "Check the path and its permissions."
        ) from error

    for parent, directories, names in os.walk(directory, onerror=fail):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))
