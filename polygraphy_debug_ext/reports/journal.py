"""What the journal of the runs says about the files that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED = 10


def journal_lines(place: str, complaints: tuple[str, ...], unresolved: int) -> Iterator[Line]:
    """Yield what does not fit the journal at `place`, and how many trials it holds that are no evidence."""
    if unresolved:
        yield Line(
            f"{count(unresolved, 'trial')} in {printable(place)} taught nothing (unresolved) and cannot be compared."
        )
    if complaints:
        lines = [f"{printable(place)}: what is compared is not what the runs filed there:"]
        lines += [f"{TAB}{printable(complaint)}" for complaint in complaints[:_NAMED]]
        if len(complaints) > _NAMED:
            lines.append(f"{TAB}and {len(complaints) - _NAMED} more")
        yield Line("\n".join(lines), Level.WARNING)
