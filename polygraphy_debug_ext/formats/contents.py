"""What one file tells of builds: which kind it is, by its content, and what it holds.

A build log may tell of several builds, and of builds that did not get to their end: those are left out, with what is known of them.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from polygraphy_debug_ext.errors import NotThisFormatError
from polygraphy_debug_ext.formats import reading
from polygraphy_debug_ext.model import Assignment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.formats.build_log import LoggedBuild

#: Reads one file.
Read: TypeAlias = Callable[[Path], Assignment]

#: Enough to tell JSON from everything else.
_GLANCE: Final = 2**12

#: Bytes of an engine that hold a zero byte for sure.
_HEADER: Final = 256

_REMEDY: Final = "Name a tactic replay, layer information or a verbose build log."


class Kind(enum.Enum):
    """What a file can be, the one that tells most of a build first."""

    REPLAY = "tactic replay"
    LAYER_INFORMATION = "layer information"
    LOG = "build log"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a file holds: an assignment for each build that it tells of, and why it does not tell of others."""

    path: Path
    kind: Kind
    assignments: tuple[Assignment, ...]
    left_out: tuple[str, ...] = ()


def contents(path: Path, read_replay: Read, read_engine: Read | None = None) -> Contents:
    """Read a file of any kind: a replay by `read_replay`, what is nothing else by `read_engine`.

    Raises:
        NotThisFormatError: if it is something else, or no regular file.
        FormatError: if it cannot be read, or is damaged.
    """
    first = _first(reading.head(path, _GLANCE))
    # An empty file may be a replay whose build died as it was opened: nothing but its name can tell.
    if first == b"{" or (not first and path.suffix == ".json"):
        return _json(path, read_replay)
    # Most directories have nothing but replays; what reads logs takes its time to import.
    from polygraphy_debug_ext.formats import build_log, layer_lines  # noqa: PLC0415 - see above

    head = reading.head(path)
    if build_log.recognises(head):
        return _log(path, build_log.read(path).builds)
    if layer_lines.recognises(head):
        return Contents(path=path, kind=Kind.LAYER_INFORMATION, assignments=(layer_lines.read(path),))
    # Lines of logs begin so, too.
    if _first(head) in {b"{", b"["}:
        return _json(path, read_replay)
    if read_engine is not None and is_binary(head):
        return Contents(path=path, kind=Kind.ENGINE, assignments=(read_engine(path),))
    raise NotThisFormatError(path, "neither a tactic replay, layer information nor a build log", _REMEDY)


def is_binary(head: bytes) -> bool:
    """Whether a file that begins so may be an engine: its header is of binary numbers, and text has no zero bytes."""
    return b"\0" in head[:_HEADER]


def _first(head: bytes) -> bytes:
    return head.lstrip()[:1]


def _json(path: Path, read_replay: Read) -> Contents:
    try:
        return Contents(path=path, kind=Kind.REPLAY, assignments=(read_replay(path),))
    except NotThisFormatError as error:
        from polygraphy_debug_ext.formats import layer_information  # noqa: PLC0415 - as above

        try:
            return Contents(
                path=path, kind=Kind.LAYER_INFORMATION, assignments=(layer_information.read(path),)
            )
        except NotThisFormatError as other:
            # Layer information without tactics has more to say than that it is no replay.
            raise other if other.reason.startswith("no tactic information") else error from None


def _log(path: Path, builds: Sequence[LoggedBuild]) -> Contents:
    return Contents(
        path=path,
        kind=Kind.LOG,
        assignments=tuple(build.assignment for build in builds if build.assignment is not None),
        left_out=tuple(
            f"{_which(number, len(builds))}: {_problem(build)}"
            for number, build in enumerate(builds, start=1)
            if build.assignment is None
        ),
    )


def _which(number: int, builds: int) -> str:
    return "build log" if builds == 1 else f"build {number} of {builds} in the log"


def _problem(build: LoggedBuild) -> str:
    """Why a build tells no tactics, and where it was."""
    site = build.failure.site
    return build.problem if site is None else f"{build.problem} ({site})"
