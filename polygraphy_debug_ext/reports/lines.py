"""A line of a report: its text and how loud it is. A text may run over several lines, as in Polygraphy's log."""

from __future__ import annotations

import enum
from dataclasses import dataclass

TAB = " " * 4


class Level(enum.Enum):
    """How loud a line is."""

    INFO = "info"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Line:
    """One message of a report."""

    text: str
    level: Level = Level.INFO


def printable(text: str) -> str:
    """Return `text` with control characters written out, so that a layer's name cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


def one_line(text: str, limit: int = 300) -> str:
    """Return a text of several lines as one, cut at `limit` characters."""
    line = printable("; ".join(part.strip() for part in text.splitlines() if part.strip())).replace(
        ":; ", ": "
    )
    return line if len(line) <= limit else f"{line[:limit]}..."


def count(number: int, noun: str) -> str:
    """Return `number` with `noun`, in the plural where it is one: `1 build`, `3 builds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: tuple[str, ...], limit: int = 5) -> str:
    """Return the first `limit` items, separated by commas, and how many more there are."""
    shown = ", ".join(printable(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
