"""The answer as Markdown for a pull-request comment or a job summary of GitHub or GitLab; names from files cannot become markup.

A comment on GitHub holds 65 536 characters: the rest of a long table gives way, and its number is said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.answer import Conclusion
from polygraphy_debug_ext.reports.document import (
    STATUS_CANNOT_TELL,
    STATUS_FOUND,
    STATUS_NO_FAILURE,
    STATUS_NO_TACTIC,
)
from polygraphy_debug_ext.reports.environments import heading, mixed, several
from polygraphy_debug_ext.reports.lines import count, printable, shortened
from polygraphy_debug_ext.reports.table import columns
from polygraphy_debug_ext.reports.text import about_the_files, not_compared
from polygraphy_debug_ext.reports.verdict import advice, has_it, tactic_name, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from polygraphy_debug_ext.model.answer import Suspect
    from polygraphy_debug_ext.reports.document import Document, Group

#: Room for one document, in bytes: GitHub's limit, less some for what a CI job puts around it.
LIMIT: Final = 60_000
#: Rows in the details block, where the document has room.
_MOST: Final = 100
_NAME: Final = 60

_STATUS: Final = {
    STATUS_FOUND: "suspects found",
    STATUS_NO_TACTIC: "not explained by tactics",
    STATUS_CANNOT_TELL: "cannot tell",
    STATUS_NO_FAILURE: "no failure seen",
}

#: What Markdown, or HTML inside it, gives a meaning to. `@` and `#` would notify people and link issues.
_COMMAND: Final = re.compile(r"((?<!`)`[A-Za-z0-9 ._=-]+`(?!`))")
_ENTITIES: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "`": "&#96;"}
_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|~@$&!])")


def render(document: Document, root: str = "") -> str:
    """Return the document, in less than `LIMIT` bytes of UTF-8; `root` is the directory of the journal."""
    # The details give way first, then the rows of the main table.
    for most, top in ((_MOST, None), (20, None), (0, None), (0, 5)):
        text = _rendered(document, root, most, top)
        if len(text.encode()) < LIMIT:
            return text
    return _cut(text)


def _rendered(document: Document, root: str, most: int, top: int | None) -> str:
    blocks = [f"### Tactics: {_STATUS[document.status]}"]
    blocks += [f"> {_plain(line.text)}" for line in several(document)]
    for group in document.groups:
        if len(document.groups) > 1:
            blocks.append(f"#### {_plain(heading(group))}")
        blocks += _group(document, group, most, top)
    notes = [line.text for line in about_the_files(document, root)]
    if notes:
        blocks.append(_details("About the files", "\n".join(f"- {_indented(note)}" for note in notes)))
    return "\n\n".join(blocks) + "\n"


def _group(document: Document, group: Group, most: int, top: int | None) -> Iterator[str]:
    answer = group.answer
    yield f"**{_plain(verdict(answer))}**"
    yield f"{count(answer.good_builds, 'good build')}, {count(answer.bad_builds, 'bad build')}."
    shown = answer.suspects[: document.options.top][:top]
    if shown and answer.conclusion is not Conclusion.NO_GOOD_BUILD:
        yield _table(shown, document.options.view)
        yield "*with*, *without*: bad/good builds that have the suspect, and that have not."
        rest = answer.suspects[len(shown) : len(shown) + most]
        if rest:
            yield _details(f"{count(len(rest), 'more suspect')}", _table(rest, document.options.view))
        left = len(answer.suspects) - len(shown) - len(rest)
        if left:
            yield f"{count(left, 'more suspect')} in the JSON document (`--format json`)."
    if group.stock and most:
        yield _details("Polygraphy's rule: in a bad build, in no good build", _stock(group.stock[:most]))
    notes = [*advice(answer), *not_compared(group), *mixed(group)]
    if notes:
        yield "\n".join(f"- {_plain(note)}" for note in notes)


def _table(suspects: Sequence[Suspect], view: str) -> str:
    table = columns(suspects, view)
    lines = [
        _row([_plain(column.title) for column in table]),
        _row(["---:" if column.right else "---" for column in table]),
    ]
    for number in range(len(suspects)):
        cells = [(column.cells[number], column.wide) for column in table]
        lines.append(_row([_code(shortened(cell, _NAME)) if wide else _plain(cell) for cell, wide in cells]))
    return "\n".join(lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _stock(suspects: Sequence[Suspect]) -> str:
    return "\n".join(
        f"- {_code(printable(suspect.layers[0]))}: {_plain(tactic_name(suspect.tactic))}, {has_it(suspect.counts)} "
        f"({suspect.rank.value})"
        for suspect in suspects
    )


def _details(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _plain(text: str) -> str:
    """Text in which nothing is markup but commands between backticks, which hold no markup themselves."""
    parts = _COMMAND.split(printable(text))
    return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return _MARKUP.sub(lambda found: _ENTITIES.get(found[0], f"\\{found[0]}"), text)


def _code(text: str) -> str:
    """A name as HTML code: unlike Markdown's, it may hold pipes and backticks inside a table."""
    if text == "-":
        return text
    return "<code>" + "".join(f"&#{ord(char)};" if _MARKUP.match(char) else char for char in text) + "</code>"


def _indented(text: str) -> str:
    return "<br>".join(_plain(line.strip()) for line in text.splitlines())


def _cut(text: str) -> str:
    """The beginning of a text that is too long even without its tables."""
    kept = text.encode()[: LIMIT - 100].decode(errors="ignore")
    return f"{kept[: kept.rfind(chr(10))]}\n\n(The rest was cut: see the JSON document.)\n"
