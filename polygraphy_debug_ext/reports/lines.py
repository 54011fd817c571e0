"""A line of a report: its text and how loud it is. A text may run over several lines, as in Polygraphy's log."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Final

TAB = " " * 4

#: What TensorRT adds to the name of a layer that belongs to an optimization profile: it tells two layers apart.
_PROFILE: Final = re.compile(r" \[profile \d+\]$")


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


def shortened(text: str, width: int) -> str:
    """Return `text` in at most `width` characters (at least 16): the middle gives way, a `[profile N]` at the end stays."""
    if len(text) <= width:
        return text
    kept = width - 3
    profile = _PROFILE.search(text)
    end = max(kept // 2, min(len(profile[0]) if profile else 0, kept - 4))
    return f"{text[: kept - end]}...{text[len(text) - end :]}"


def percent(probability: float) -> str:
    """Return a probability (0 to 1) in percent, with one digit; what is nearly sure is not called sure."""
    if probability > 0.9995:  # noqa: PLR2004 - what one digit cannot tell from certainty
        return ">99.9%"
    return "<0.1%" if probability < 0.0005 else f"{probability:.1%}"  # noqa: PLR2004 - as above


def count(number: int, noun: str) -> str:
    """Return `number` with `noun`, in the plural where it is one: `1 build`, `3 builds`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(items: tuple[str, ...], limit: int = 5) -> str:
    """Return the first `limit` items, separated by commas, and how many more there are."""
    shown = ", ".join(printable(item) for item in items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit} more"
