"""How builds of several environments are told apart, and what differs within one without forbidding to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.model.answer import Conclusion
from polygraphy_debug_ext.reports.lines import Level, Line, count, listed, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.reports.document import Document, Group


def several(document: Document) -> Iterator[Line]:
    """Yield that the builds are of several environments, which are not compared with each other; nothing if they are of one."""
    if len(document.groups) < 2:  # noqa: PLR2004 - one is no several
        return
    keys = ", ".join(printable(key) for key, _ in document.groups[0].apart)
    yield Line(
        f"The builds are of {len(document.groups)} environments, which differ in {keys}: their tactics mean different things, so each is looked "
        "at by itself.",
        Level.WARNING,
    )
    lonely = {Conclusion.NO_GOOD_BUILD, Conclusion.NO_BAD_BUILD}
    found = {group.answer.conclusion for group in document.groups}
    if found == lonely:
        yield Line(
            "No environment has both good and bad builds: build again with the same options on one machine.",
            Level.WARNING,
        )


def heading(group: Group) -> str:
    """Return how the environment of a group is announced."""
    answer = group.answer
    builds = f"{count(answer.good_builds, 'good build')}, {count(answer.bad_builds, 'bad build')}"
    return f"Environment {printable(group.title)} ({builds}):" if group.apart else f"{builds}:"


def mixed(group: Group) -> Iterator[str]:
    """Yield what differs between the builds of one environment."""
    for key, values in group.mixed:
        yield f"The builds differ in {printable(key)} ({listed(values)}); they are compared all the same."
