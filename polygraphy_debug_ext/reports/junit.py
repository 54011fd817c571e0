"""The answer as JUnit XML, for CI systems that show tests: a suite per environment, valid against the schema of Ant's JUnit task.

The test case `tactics` passes if no build failed, fails with the verdict if suspects were found, and is an error if nothing can be told. Each
suspect that is not improbable is a failed test case of its own.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.reports.document import (
    STATUS_CANNOT_TELL,
    STATUS_FOUND,
    STATUS_NO_FAILURE,
    STATUS_NO_TACTIC,
)
from polygraphy_debug_ext.reports.environments import heading, mixed
from polygraphy_debug_ext.reports.lines import percent, printable
from polygraphy_debug_ext.reports.table import rows
from polygraphy_debug_ext.reports.verdict import advice, has_it, suspect_name, tactic_name, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.model.answer import Suspect
    from polygraphy_debug_ext.reports.document import Document, Group

_SUITE: Final = "polygraphy debug diff-tactics"
_CLASS: Final = "polygraphy.debug.diff-tactics"

#: Suspects below this probability are in the table only.
_PROBABLE: Final = 0.05
#: A page of failed test cases helps nobody.
_MOST_CASES: Final = 50
_ROWS: Final = 50

#: The element that stands for an outcome, and its `type`; a passed case has none.
_OUTCOMES: Final = {
    STATUS_FOUND: ("failure", "suspects"),
    STATUS_NO_TACTIC: ("failure", "no tactic explains the failures"),
    STATUS_CANNOT_TELL: ("error", "cannot tell"),
}


def render(document: Document, timestamp: str) -> str:
    """Return the document as XML; `timestamp` is the local time as `YYYY-MM-DDThh:mm:ss`."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    for number, group in enumerate(document.groups):
        lines += _suite(document, group, number, timestamp)
    return "\n".join([*lines, "</testsuites>", ""])


def _suite(document: Document, group: Group, number: int, timestamp: str) -> Iterator[str]:
    cases = [*_cases(group)]
    failures = sum("<failure" in case for case in cases)
    errors = sum("<error" in case for case in cases)
    name = _SUITE if len(document.groups) == 1 else f"{_SUITE}: {group.title}"
    yield (
        f"  <testsuite id={_quoted(str(number))} name={_quoted(name)} package={_quoted(_CLASS)} timestamp={_quoted(timestamp)} "
        f'hostname="localhost" tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0" time="0">'
    )
    yield "    <properties>"
    for key, value in _properties(document, group):
        yield f"      <property name={_quoted(key)} value={_quoted(value)}/>"
    yield "    </properties>"
    yield from cases
    yield f"    <system-out>{_text(_details(document, group))}</system-out>"
    yield f"    <system-err>{_text(_warnings(document))}</system-err>"
    yield "  </testsuite>"


def _properties(document: Document, group: Group) -> Iterator[tuple[str, str]]:
    answer = group.answer
    yield "conclusion", answer.conclusion.name.lower()
    yield "good builds", str(answer.good_builds)
    yield "bad builds", str(answer.bad_builds)
    yield "unresolved trials", str(document.unresolved)
    for key, value in answer.environment.values:
        yield f"environment.{key}", value


def _cases(group: Group) -> Iterator[str]:
    answer = group.answer
    body = "\n".join([verdict(answer), *advice(answer)])
    yield _case("tactics", group.status, verdict(answer), body)
    # Without a contrast every suspect is as probable as before.
    if group.status == STATUS_FOUND or (group.status == STATUS_CANNOT_TELL and answer.good_builds):
        for suspect in _probable(group):
            message = f"{percent(suspect.probability)}: {has_it(suspect.counts)}"
            others = "; ".join(tactic_name(tactic) for tactic in suspect.alternatives) or "none"
            yield _case(
                f"suspect: {suspect_name(suspect)}",
                STATUS_FOUND,
                message,
                f"{suspect_name(suspect)}\n{message}\nOther tactics that good builds have there: {others}",
            )


def _probable(group: Group) -> list[Suspect]:
    return [each for each in group.answer.suspects if each.probability >= _PROBABLE][:_MOST_CASES]


def _case(name: str, status: int, message: str, body: str) -> str:
    start = f'    <testcase name={_quoted(name)} classname={_quoted(_CLASS)} time="0"'
    if status == STATUS_NO_FAILURE:
        return f"{start}/>"
    element, kind = _OUTCOMES[status]
    return f"{start}>\n      <{element} type={_quoted(kind)} message={_quoted(message)}>{_text(body)}</{element}>\n    </testcase>"


def _details(document: Document, group: Group) -> str:
    suspects = group.answer.suspects[:_ROWS] if group.answer.good_builds else ()
    table = rows(suspects, document.options.view) if suspects else []
    return "\n".join([heading(group), verdict(group.answer), *mixed(group), *table, *advice(group.answer)])


def _warnings(document: Document) -> str:
    sides = (document.good, document.bad)
    skipped = [
        printable(f"{side.place}: left out {file}: {reason}")
        for side in sides
        for file, reason in side.skipped
    ]
    skipped += [
        printable(f"{side.place}: left out {number} more: {reason}")
        for side in sides
        for reason, number in side.unnamed
    ]
    return "\n".join([*skipped, *map(printable, document.complaints)])


def _quoted(text: str) -> str:
    """An attribute: what XML cannot hold, and what steers a terminal, is written out as Python does."""
    return f'"{escape(printable(text))}"'


def _text(text: str) -> str:
    """The text of an element, of several lines; as above."""
    return escape("\n".join(map(printable, text.split("\n"))), quote=False)
