"""What one file tells of builds: which kind it is, by its content, and what it holds.

A build log may tell of several builds, and of builds that did not get to their end: those are left out, with what is known of them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import NotThisFormatError
from polygraphy_debug_ext.formats import layer_information

if TYPE_CHECKING:
    from pathlib import Path

    from polygraphy_debug_ext.formats.replay import Loader
    from polygraphy_debug_ext.model import Assignment


class Kind(enum.IntEnum):
    """What a file can be, the one that tells most of a build first."""

    REPLAY = 0
    LAYER_INFORMATION = 1
    LAYER_LINES = 2
    LOG = 3

    def __str__(self) -> str:
        return ("tactic replay", "layer information", "layer information (text)", "build log")[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file holds: an assignment for each build that it tells of, and why it does not tell of others."""

    path: Path
    kind: Kind
    assignments: tuple[Assignment, ...]
    left_out: tuple[str, ...] = ()


def contents(path: Path, loader: Loader) -> Contents:
    """Read a file of any kind.

    Raises:
        NotThisFormatError: if it is something else, or no regular file.
        FormatError: if it cannot be read, or is damaged.
    """
    return _json(path, loader)


def _json(path: Path, loader: Loader) -> Contents:
    try:
        return Contents(path=path, kind=Kind.REPLAY, assignments=(loader.read(path),))
    except NotThisFormatError as error:
        try:
            return Contents(
                path=path, kind=Kind.LAYER_INFORMATION, assignments=(layer_information.read(path),)
            )
        except NotThisFormatError as other:
            # Layer information without tactics has more to say than that it is no replay.
            raise other if other.reason.startswith("no tactic information") else error from None
