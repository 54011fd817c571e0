"""The map of layers x builds as data for the page: compact, since the page draws only what is in view.

- *cells*: a string for each layer, `width` characters for each build: the number of its choice in base 62, or `.` where the build
  does not have the layer. A layer that is the same in every build has none.
- *mark*: 2 for a choice that the verdict names, 1 for another likely suspect, else 0.
"""

from __future__ import annotations

import string
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from polygraphy_debug_ext.model.answer import Rank, View
from polygraphy_debug_ext.reports.lines import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.model import Tactic
    from polygraphy_debug_ext.model.answer import Answer, Suspect

DIGITS: Final = string.digits + string.ascii_lowercase + string.ascii_uppercase
ABSENT: Final = "."
#: A suspect of at least this probability (0 to 1) is marked although the verdict does not name it.
LIKELY: Final = 0.05


class Choice(Protocol):
    """A tactic at a layer."""

    @property
    def layer(self) -> str: ...  # noqa: D102 - the class says it
    @property
    def tactic(self) -> Tactic: ...  # noqa: D102


class Choices(Protocol):
    """What good and bad builds have: `codes` (builds x layers) indexes `choices`, below 0 where a build lacks the layer."""

    @property
    def layers(self) -> tuple[str, ...]: ...  # noqa: D102 - the class says it
    @property
    def choices(self) -> Sequence[Choice]: ...  # noqa: D102
    @property
    def layer_of(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def codes(self) -> NDArray[np.int32]: ...  # noqa: D102
    @property
    def bad(self) -> NDArray[np.bool_]: ...  # noqa: D102


class _Texts:
    """Texts that occur often are kept once, and referred to by their number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


def map_data(table: Choices, answer: Answer, order: Sequence[int]) -> dict[str, Any]:
    """Return what the page needs to draw the map, as JSON has it.

    Args:
        table: What the builds have.
        answer: What follows from it: suspects are marked, and their layers come first.
        order: The builds (rows of `table.codes`) in the order of the columns.

    Returns:
        `texts`, and for each layer in the order of the network `n`(ame), `r`(ank of its best suspect, or -1), `w`(idth), `c`(ells,
        none if it does not vary) and `t`(actics), each of which is kernel, id, details (numbers of texts), builds that have it
        (good, bad), mark, and probability or None.
    """
    texts = _Texts()
    marks = _Marks(answer)
    ranks = _ranks(answer.suspects)
    columns = table.codes[np.array(order, dtype=np.intp)]
    bad = table.bad[np.array(order, dtype=np.intp)]
    good_counts, bad_counts = (
        _counts(columns[chosen], len(table.choices)) for chosen in (np.logical_not(bad), bad)
    )
    of_layer = _choices_of_layers(table, good_counts, bad_counts)
    numbers = np.zeros(len(table.choices) + 1, dtype=np.int64)
    for choices in of_layer:
        numbers[choices] = np.arange(len(choices))
    numbers[-1] = -1
    layers = []
    for layer, (name, choices) in enumerate(zip(table.layers, of_layer, strict=True)):
        codes = columns[:, layer]
        width = _width(len(choices))
        layers.append(
            {
                "n": printable(name),
                "r": ranks.get(name, -1),
                "w": width,
                "c": _cells(numbers[codes], width) if len(codes) and (codes != codes[0]).any() else "",
                "t": [
                    [
                        *_names(table.choices[choice].tactic, texts),
                        int(good_counts[choice]),
                        int(bad_counts[choice]),
                        *marks.of(name, table.choices[choice].tactic),
                    ]
                    for choice in choices
                ],
            }
        )
    return {"texts": texts.texts, "layers": layers}


def _counts(codes: NDArray[np.int32], choices: int) -> NDArray[np.int64]:
    """How many of the builds have each choice."""
    return np.bincount(codes[codes >= 0], minlength=choices).astype(np.int64)


def _choices_of_layers(
    table: Choices, good: NDArray[np.int64], bad: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """The choices of each layer, those of most good builds first: `A` on the page is what is usual in good builds."""
    order = np.lexsort((np.arange(len(good)), -bad, -good, table.layer_of))
    starts = np.searchsorted(table.layer_of[order], np.arange(len(table.layers) + 1))
    return [order[start:end] for start, end in pairwise(starts)]


def _width(choices: int) -> int:
    width = 1
    while len(DIGITS) ** width < choices:
        width += 1
    return width


def _cells(numbers: NDArray[np.int64], width: int) -> str:
    """Numbers in base 62, `width` digits each; those below 0 as dots."""
    alphabet = np.frombuffer(DIGITS.encode(), dtype=np.uint8)
    powers = len(DIGITS) ** np.arange(width - 1, -1, -1)
    digits = alphabet[(np.maximum(numbers, 0)[:, None] // powers) % len(DIGITS)]
    digits[numbers < 0] = ord(ABSENT)
    return digits.tobytes().decode("ascii")


def _names(tactic: Tactic, texts: _Texts) -> tuple[int, int, int]:
    """Kernel, id and details of a tactic, as numbers of texts."""
    details = "" if tactic.tactic is None else str(tactic)
    return (
        texts.number(printable(tactic.kernel or "")),
        texts.number(tactic.hex),
        texts.number(printable(details)),
    )


class _Marks:
    """How a choice is marked, and its own probability."""

    def __init__(self, answer: Answer) -> None:
        self._named = frozenset(place for suspect in answer.named for place in _places(suspect))
        self._suspects: dict[tuple[str, object], Suspect] = {}
        for suspect in answer.suspects:
            for place in _places(suspect):
                self._suspects.setdefault(place, suspect)

    def of(self, layer: str, tactic: Tactic) -> tuple[int, float | None]:
        """Mark and probability: those of the tactic at this layer, or else those of its kernel."""
        places = [(layer, tactic), (layer, tactic.kernel)]
        suspect = next((self._suspects[place] for place in places if place in self._suspects), None)
        probability = None if suspect is None else round(suspect.probability, 6)
        if not self._named.isdisjoint(places):
            return 2, probability
        likely = suspect is not None and (suspect.rank is Rank.STRONG or suspect.probability >= LIKELY)
        return int(likely), probability


def _places(suspect: Suspect) -> list[tuple[str, object]]:
    """Where a suspect is: layer and tactic, or layer and kernel if it is a kernel wherever it is used."""
    what: object = suspect.tactic
    if suspect.view is View.KERNEL and suspect.tactic.kernel is not None:
        what = suspect.tactic.kernel
    return [(layer, what) for layer in suspect.layers]


def _ranks(suspects: Sequence[Suspect]) -> dict[str, int]:
    """The place of each layer's best suspect in the ranking."""
    found: dict[str, int] = {}
    for rank, suspect in enumerate(suspects):
        for layer in suspect.layers:
            found.setdefault(layer, rank)
    return found
