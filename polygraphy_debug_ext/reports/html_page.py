"""The page of `debug report`: one HTML file that needs no network, in which names from files are text and nothing else.

- *Page*: what is on it; it has a *Comparison* for each environment that builds come from, and a *RunRow* for each run.
- Styles and scripts are part of the file; the Content-Security-Policy in it lets nothing else run or load.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

import jinja2
from markupsafe import Markup, escape

from polygraphy_debug_ext.reports.lines import count, percent, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.model.answer import Answer, Suspect

#: How every page begins; a file that does not is none of ours.
BEGINNING: Final = "<!doctype html>\n<!-- polygraphy debug report -->\n"
#: Suspects in the table; the others are counted.
SHOWN: Final = 100
_SCRIPTS: Final = ("map_data.js", "map.js", "page.js")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A file: what it is called on the page, and its URL, relative to the page."""

    text: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """A column of the map: `label` is short, `name` the file; `trial` is the id of its row on the page, if it has one."""

    label: str
    name: str
    bad: bool
    url: str = ""
    trial: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What builds of one environment say: `sentences` are the verdict, in words, the first on its own; `builds` are the columns of `map`."""

    heading: str
    answer: Answer
    sentences: tuple[str, ...]
    builds: tuple[Build, ...]
    map: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A trial: `verdict` is good, bad, unresolved, or empty while it is not finished.

    Times are in seconds. `purpose` is what a search made it for, `site` where its build failed.
    """

    id: str
    label: str
    started: str
    verdict: str
    reason: str
    purpose: str = ""
    build_seconds: float | None = None
    check_seconds: tuple[float, ...] = ()
    check_verdicts: tuple[str, ...] = ()
    site: str = ""
    error: str = ""
    logs: tuple[Link, ...] = ()
    artifacts: tuple[Link, ...] = ()

    @property
    def seconds(self) -> float:
        """What build and checks took."""
        return (self.build_seconds or 0.0) + sum(self.check_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run: how it was asked for, what builds in it, and its trials."""

    stamp: str
    started: str
    command: str
    ended: str
    environment: tuple[tuple[str, str], ...]
    trials: tuple[TrialRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What is on the page; `notes` are warnings about the files, `made` says when and by what the page was made."""

    title: str
    directory: str
    made: str
    comparisons: tuple[Comparison, ...]
    runs: tuple[RunRow, ...]
    notes: tuple[str, ...] = ()


def render(page: Page) -> bytes:
    """Return the page as UTF-8."""
    style = _file("page.css")
    script = "\n".join(_file(name) for name in _SCRIPTS)
    # A hash for each: what else gets into the page can neither run nor load anything.
    policy = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; base-uri 'none'; form-action 'none'"
    text = _template().render(
        page=page,
        policy=policy,
        # Safe: these are files of this package.
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=json_for_script([_data(each) for each in page.comparisons]),
        shown=SHOWN,
    )
    # A name that is not text in any encoding is printed escaped, so nothing is left to replace.
    return (BEGINNING + text).encode("utf-8", errors="replace")


def json_for_script(value: object) -> Markup:
    """Return JSON that can stand in a `<script>`: no text in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(escaped)  # noqa: S704 - escaped one line above


def _data(comparison: Comparison) -> dict[str, Any]:
    builds = [[each.label, each.name, int(each.bad), each.url, each.trial] for each in comparison.builds]
    return {"builds": builds, **comparison.map}


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _file(name: str) -> str:
    return resources.files(__package__).joinpath("html").joinpath(name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        printable=printable, count=count, percent=percent, duration=duration, kernel=kernel_of, prose=prose
    )
    return environment.get_template("page.html")


def prose(text: str) -> Markup:
    """Return a sentence as HTML: what stands between backticks is set as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    marked = (
        Markup("<code>{}</code>").format(part) if each % 2 else escape(part)
        for each, part in enumerate(parts)
    )
    return Markup("").join(marked)


def duration(seconds: float) -> str:
    """Return a time in a unit that suits it."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"  # noqa: PLR2004 - three digits
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def kernel_of(suspect: Suspect) -> str:
    """Return what a suspect is called: its kernel, or where that is not known its id."""
    return printable(suspect.tactic.kernel or "") or suspect.tactic.hex or "(unnamed)"
