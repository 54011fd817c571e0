"""The answer as lines of text: Polygraphy's own lines where it has them, to the letter, and around them what it does not say."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.answer import Conclusion
from polygraphy_debug_ext.model.tactic import Field
from polygraphy_debug_ext.reports.environments import heading, mixed, several
from polygraphy_debug_ext.reports.journal import journal_lines
from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, listed, printable
from polygraphy_debug_ext.reports.skipped import skipped
from polygraphy_debug_ext.reports.table import Screen, rows
from polygraphy_debug_ext.reports.verdict import advice, has_it, tactic_name, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.model.answer import Answer, Suspect
    from polygraphy_debug_ext.reports.document import Document, Group, Side

_UNDETERMINED: Final = "Could not determine potentially bad tactics"

#: Polygraphy's log puts these before every line but the first of a message.
_INDENT: Final = "[I] "

#: What is read where nobody asked for anything special.
_USUAL: Final = "tactic replay"

#: How a tensor property is called in messages.
_WORDS: Final = {
    Field.DTYPE: "data types",
    Field.TENSOR_FORMAT: "tensor formats",
    Field.STRIDES: "strides",
    Field.VECTORIZED_DIM: "vectorized dimensions",
    Field.COMPONENTS: "components per element",
}


def render(document: Document, root: str = "", screen: Screen | None = None) -> Iterator[Line]:
    """Yield the lines; `root` is the directory of the journal, `screen` the terminal, if it is one."""
    yield from about_the_files(document, root)
    yield from several(document)
    for group in document.groups:
        if len(document.groups) > 1:
            yield Line(heading(group))
        yield from _group(document, group, screen)


def about_the_files(document: Document, root: str = "") -> Iterator[Line]:
    """Yield what was left out, what does not fit the journal, and what was recognised if it is not only replays."""
    for side in (document.good, document.bad):
        yield from skipped(side.place, list(side.skipped), dict(side.unnamed))
    # Of one environment, the answer says how many trials are unresolved.
    yield from journal_lines(
        root, document.complaints, document.unresolved if len(document.groups) > 1 else 0
    )
    if {kind for side in (document.good, document.bad) for kind, _ in side.kinds} - {_USUAL}:
        yield Line(f"Recognised: good: {kinds(document.good)}; bad: {kinds(document.bad)}.")


def kinds(side: Side) -> str:
    """Return what was recognised on a side, with the numbers."""
    return ", ".join(f"{printable(kind)} ({number})" for kind, number in side.kinds) or "nothing"


def not_compared(group: Group) -> Iterator[str]:
    """Yield what could not be compared, and why."""
    answer = group.answer
    if answer.not_compared:
        properties = ", ".join(_WORDS[field] for field in Field if field in answer.not_compared)
        variants = ", ".join(
            f"{printable(variant)} ({count(number, 'file')})" for variant, number in answer.variants
        )
        yield (
            f"The replays are in the formats of several Polygraphy versions: {variants}. Not all of them have the same "
            f"I/O layout of tensors, so it was not compared in full ({properties} were left out)."
        )
    if group.incomparable:
        yield (
            f"{count(len(group.incomparable), 'layer')} could not be compared, because the records do not name tactics in one way: "
            f"{listed(group.incomparable)}."
        )


def _group(document: Document, group: Group, screen: Screen | None) -> Iterator[Line]:
    answer = group.answer
    for text in not_compared(group):
        yield Line(text, Level.WARNING)
    for text in mixed(group):
        yield Line(text)
    if answer.conclusion is Conclusion.NO_BAD_BUILD:
        # Whoever searches the end of the log for Polygraphy's words finds them there.
        yield from map(Line, (verdict(answer), *advice(answer)))
        yield from _counts(answer)
        yield Line(f"{_UNDETERMINED}. Try generating more tactic replay files?")
        return
    yield from _counts(answer)
    yield Line(verdict(answer))
    yield from _table(document, answer, screen)
    yield from _stock(group)
    yield from map(Line, advice(answer))


def _counts(answer: Answer) -> Iterator[Line]:
    """How many builds there are, in Polygraphy's words."""
    yield Line(f"Loaded {answer.good_builds} good tactic replays.")
    yield Line(f"Loaded {answer.bad_builds} bad tactic replays.")


def _table(document: Document, answer: Answer, screen: Screen | None) -> Iterator[Line]:
    options = document.options
    shown = answer.suspects[: options.top]
    if not shown or answer.conclusion is Conclusion.NO_GOOD_BUILD:
        return
    inside = None if screen is None else Screen(screen.width - len(_INDENT), screen.colour)
    table = rows(shown, options.view, inside, answer.named)
    number = (
        count(len(shown), "suspect")
        if len(shown) == len(answer.suspects)
        else f"{len(shown)} of {count(len(answer.suspects), 'suspect')}"
    )
    yield Line(
        "\n".join(
            [
                f"{number} by {options.method}, most telling first (bad/good builds with it and without it):",
                *table,
            ]
        )
    )


def _stock(group: Group) -> Iterator[Line]:
    """Polygraphy's own list: tactics that are in a bad build and in no good build."""
    if not group.stock:
        if group.answer.conclusion is not Conclusion.NO_GOOD_BUILD:
            yield Line(f"{_UNDETERMINED}: every tactic of the bad builds is in some good build as well.")
        return
    yield Line("Found potentially bad tactics:")
    # Suspects are in the order of their strength, so a layer's first one decides where the layer stands.
    order = {
        layer: place for place, layer in reversed(list(enumerate(each.layers[0] for each in group.stock)))
    }
    by_layer = sorted(group.stock, key=lambda suspect: order[suspect.layers[0]])
    for layer, suspects in groupby(by_layer, key=lambda suspect: suspect.layers[0]):
        yield Line(_layer(layer, tuple(suspects)))


def _layer(layer: str, suspects: tuple[Suspect, ...]) -> str:
    lines = [
        f"Layer: {printable(layer)}",
        f"{TAB}Algorithms: {[str(suspect.tactic) for suspect in suspects]}",
    ]
    return "\n".join([*lines, *(f"{TAB}{_evidence(suspect)}" for suspect in suspects)])


def _evidence(suspect: Suspect) -> str:
    others = tuple(tactic.hex or tactic.kernel or "" for tactic in suspect.alternatives)
    instead = f"; good builds have {listed(others, 3)}" if others else "; no good build has this layer"
    return f"{tactic_name(suspect.tactic)}: {has_it(suspect.counts)} ({suspect.rank.value}){instead}"
