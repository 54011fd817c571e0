"""Which files were left out: counted, and named with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMED = 10


def skipped(place: str, files: list[tuple[str, str]]) -> Iterator[Line]:
    """Yield a warning that names the files (with reasons) left out at `place`; nothing if there are none."""
    if not files:
        return
    lines = [f"{printable(place)}: left out {count(len(files), 'file')}:"]
    lines += [f"{TAB}{printable(name)}: {printable(reason)}" for name, reason in files[:_NAMED]]
    if len(files) > _NAMED:
        lines.append(f"{TAB}and {len(files) - _NAMED} more")
    yield Line("\n".join(lines), Level.WARNING)
