"""What `diff-tactics` has to tell, whatever the format: what was read, and for each environment the answer.

- *Group*: the builds of one environment; tactics of different environments mean different things.
- *Side*: what was read of the good or of the bad builds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.answer import Conclusion, Rank, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polygraphy_debug_ext.model.answer import Answer, Suspect

#: Exit statuses with --exit-code, in the order in which they prevail where environments differ.
STATUS_FOUND: Final = 10
STATUS_NO_TACTIC: Final = 12
STATUS_CANNOT_TELL: Final = 11
STATUS_NO_FAILURE: Final = 0

_PREVAILS: Final = (STATUS_FOUND, STATUS_NO_TACTIC, STATUS_CANNOT_TELL, STATUS_NO_FAILURE)

_STATUS: Final = {
    Conclusion.CULPRIT: STATUS_FOUND,
    Conclusion.ALIKE: STATUS_FOUND,
    Conclusion.PAIR: STATUS_FOUND,
    Conclusion.NO_TACTIC: STATUS_NO_TACTIC,
    Conclusion.NO_BAD_BUILD: STATUS_NO_FAILURE,
}

#: Exit status without --exit-code: bad builds were seen, but the evidence names no tactic.
STATUS_INCONCLUSIVE: Final = 3


#: As much of a digest as tells it from another.
_DIGEST: Final = len("sha256:") + 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for: `view` (layer, kernel), `method` of ranking, `confidence` (0 to 1), `rates_prior`; `top` None shows all suspects."""

    view: str = "layer"
    method: str = "posterior"
    confidence: float = 0.95
    rates_prior: str = "tentative"
    top: int | None = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """The good or the bad builds: `place` where they were looked for, `kinds` of files that were recognised (with their number), `skipped` files (with the reason), of further ones the reasons (`unnamed`, with their number)."""

    place: str
    kinds: tuple[tuple[str, int], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    unnamed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One environment and its answer.

    `stock` are the suspects of Polygraphy's rule, in the layer view; `incomparable` the layers that could not be compared;
    `apart` names what sets this environment apart from the others (key and value; "" is an unknown one); `mixed` are values
    that differ within it, but do not forbid to compare (key and values).
    """

    answer: Answer
    stock: tuple[Suspect, ...] = ()
    incomparable: tuple[str, ...] = ()
    apart: tuple[tuple[str, str], ...] = ()
    mixed: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def title(self) -> str:
        """What the environment is called, beside others; empty if there is one only."""
        return ", ".join(f"{key} {_short(value) or '(unknown)'}" for key, value in self.apart)

    @property
    def status(self) -> int:
        """The exit status that this group asks for, with --exit-code."""
        if self.answer.conclusion is Conclusion.NO_TACTIC and self.answer.opaque_layers:
            # What explains the failures may be where the records do not reach.
            return STATUS_CANNOT_TELL
        return _STATUS.get(self.answer.conclusion, STATUS_CANNOT_TELL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """All that is told. `complaints` are what does not fit the journal of the runs, `unresolved` its trials that are no evidence."""

    good: Side
    bad: Side
    groups: tuple[Group, ...]
    options: Options = Options()
    unresolved: int = 0
    complaints: tuple[str, ...] = ()

    @property
    def status(self) -> int:
        """The exit status with --exit-code: that of the environment that says most."""
        return min((group.status for group in self.groups), key=_PREVAILS.index)

    @property
    def plain_status(self) -> int:
        """The exit status without --exit-code: 0 if there are suspects or no failures, else 3."""
        if self.status in {STATUS_FOUND, STATUS_NO_FAILURE}:
            return 0
        return 0 if any(group.stock for group in self.groups) else STATUS_INCONCLUSIVE


def _short(value: str) -> str:
    """A digest is known by its beginning."""
    return value[:_DIGEST] if value.startswith("sha256:") else value


def by_stock(suspects: Iterable[Suspect], layers: Sequence[str]) -> tuple[Suspect, ...]:
    """Return those that Polygraphy's rule suspects at one layer: in a bad build and in no good one; those of most bad builds first, then by layer."""
    place = {layer: number for number, layer in enumerate(layers)}
    found = [each for each in suspects if each.view is View.LAYER and each.rank is not Rank.NOT_SUSPECT]
    return tuple(sorted(found, key=lambda each: (-each.counts.bad_with, place[each.layers[0]])))
