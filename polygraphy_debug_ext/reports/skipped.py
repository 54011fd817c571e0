"""Which files were left out: a few are named with the reason, of the rest the reasons are counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_NAMED = 10
_REASONS = 5


def skipped(
    place: str, files: list[tuple[str, str]], unnamed: Mapping[str, int] | None = None
) -> Iterator[Line]:
    """Yield a warning that names the files (with reasons) left out at `place`; nothing if there are none.

    `unnamed` are the numbers of further files, by their reasons.
    """
    if not files:
        return
    more = Counter(unnamed or {})
    more.update(reason for _, reason in files[_NAMED:])
    named = files[:_NAMED]
    lines = [f"{printable(place)}: left out {count(len(named) + more.total(), 'file')}:"]
    lines += [f"{TAB}{printable(name)}: {printable(reason)}" for name, reason in named]
    reasons = more.most_common()
    lines += [f"{TAB}and {number} more: {printable(reason)}" for reason, number in reasons[:_REASONS]]
    if others := sum(number for _, number in reasons[_REASONS:]):
        lines.append(f"{TAB}and {others} more, for other reasons")
    yield Line("\n".join(lines), Level.WARNING)
