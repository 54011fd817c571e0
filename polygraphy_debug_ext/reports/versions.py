"""Whether what is compared comes from one TensorRT: tactic ids mean something within one version only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.reports.lines import Level, Line, count, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def several_versions(builds: Mapping[str, int]) -> Iterator[Line]:
    """Yield a warning if there are builds (version to number) of several versions; those of an unknown one ("") do not count."""
    known = {version: number for version, number in builds.items() if version}
    if len(known) > 1:
        listed = ", ".join(
            f"{printable(version)} ({count(number, 'build')})" for version, number in known.items()
        )
        yield Line(
            f"The builds are of several versions of TensorRT: {listed}. Tactic ids of different versions mean different things.",
            Level.WARNING,
        )
