"""Layers x builds: which tactic each build has at each layer, as numbers, so that thousands of builds fit into memory.

- *choice*: a tactic at a layer; equal tactics of one layer are one choice.
- *code*: the number of a choice; `ABSENT` where a build does not have the layer.
"""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from polygraphy_debug_ext.analysis.identity import identities
from polygraphy_debug_ext.analysis.naming import same_layers, seen_by_all
from polygraphy_debug_ext.model import Field, Source, Verdict
from polygraphy_debug_ext.model.assignment import is_opaque
from polygraphy_debug_ext.model.layers import CataloguedLayers

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from polygraphy_debug_ext.model import Assignment, Tactic
    from polygraphy_debug_ext.model.layers import Catalogue

ABSENT: Final = -1


class _View(enum.Enum):
    """Which layers a source can see at all."""

    SELECTOR = enum.auto()
    ENGINE = enum.auto()
    LOG = enum.auto()


_VIEWS: Final = {
    Source.SELECTOR: _View.SELECTOR,
    Source.REPLAY: _View.SELECTOR,
    Source.ENGINE: _View.ENGINE,
    Source.LAYER_INFORMATION: _View.ENGINE,
    Source.TIMING_CACHE: _View.ENGINE,
    Source.LOG: _View.LOG,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A tactic at a layer."""

    layer: str
    tactic: Tactic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What good and bad builds have.

    `codes` (int32, builds x layers) indexes `choices`; `layer_of` (int32, choices) indexes `layers`, which are in the order
    of the builds; `bad` (bool, builds). `origins` names the files. `fields` are the tensor properties that were compared,
    `not_compared` those that only some records have; `variants` counts the records by dialect. `incomparable` are layers that
    were left out: their records have nothing by which they can be compared, or sources of one kind do not tell of them at all, so that
    a build of theirs without the layer says nothing.
    """

    layers: tuple[str, ...]
    choices: tuple[Choice, ...]
    layer_of: NDArray[np.int32]
    codes: NDArray[np.int32]
    bad: NDArray[np.bool_]
    origins: tuple[str, ...]
    fields: frozenset[Field] = frozenset()
    not_compared: frozenset[Field] = frozenset()
    variants: tuple[tuple[str, int], ...] = ()
    opaque_layers: tuple[str, ...] = ()
    incomparable: tuple[str, ...] = ()

    def counts(self, builds: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of the chosen builds have each choice (int64, choices)."""
        codes = self.codes[builds].ravel()
        return np.bincount(codes[codes != ABSENT], minlength=len(self.choices)).astype(np.int64)

    def presence(self) -> NDArray[np.bool_]:
        """Which build has which choice (bool, choices x builds)."""
        found = np.zeros((len(self.choices), len(self.bad)), dtype=np.bool_)
        builds, layers = np.nonzero(self.codes != ABSENT)
        found[self.codes[builds, layers], builds] = True
        return found


class _Known(NamedTuple):
    """A catalogue, and the record of each of its entries, as far as it was met."""

    catalogue: Catalogue
    records: NDArray[np.int32]


class TableBuilder:
    """Takes assignments one by one; nothing of them is kept but their distinct tactics and a row of numbers each."""

    def __init__(self) -> None:
        self._layers: dict[str, int] = {}
        # Readers give equal records as one object; holding on to it keeps its id from being used again.
        self._numbers: dict[tuple[str, int], int] = {}
        self._records: list[tuple[int, Tactic]] = []
        self._rows: list[NDArray[np.int32]] = []
        self._bad: list[bool] = []
        self._origins: list[str] = []
        self._fields: list[frozenset[Field]] = []
        self._variants: Counter[str] = Counter()
        self._views: list[_View] = []
        self._catalogues: dict[int, _Known] = {}

    def add(self, assignment: Assignment, verdict: Verdict) -> None:
        """Take the assignment of a build that was good or bad."""
        layers = assignment.layers
        if isinstance(layers, CataloguedLayers):
            row = self._of_catalogue(layers)
        else:
            row = np.array([self._number(layer, tactic) for layer, tactic in layers.items()], dtype=np.int32)
        self._rows.append(row)
        self._bad.append(verdict is Verdict.BAD)
        self._origins.append(assignment.origin)
        self._fields.append(assignment.fields)
        self._variants[assignment.variant] += 1
        self._views.append(_VIEWS[assignment.source])

    def table(self) -> Table:
        """Return the table of what was taken; where records differ in what they tell, only what all of them tell counts."""
        fields = frozenset(Field).intersection(*self._fields)
        recorded = frozenset[Field]().union(*self._fields)
        names = tuple(self._layers)
        written = np.array([layer for layer, _ in self._records], dtype=np.int32)
        seen = self._seen(written)
        named = same_layers(names, seen)
        layer_of = named[written]
        choices, choice_of = self._choices(fields, layer_of, seen_by_all(seen, named))
        kept = list(dict.fromkeys(layer for layer, _ in choices))
        place_of = np.full(len(names), ABSENT, dtype=np.int32)
        place_of[kept] = np.arange(len(kept))
        codes = np.full((len(self._rows), len(kept)), ABSENT, dtype=np.int32)
        for build, row in enumerate(self._rows):
            compared = row[choice_of[row] != ABSENT]
            codes[build, place_of[layer_of[compared]]] = choice_of[compared]
        told = dict.fromkeys(
            layer
            for layer, (_, tactic) in zip(layer_of.tolist(), self._records, strict=True)
            if not tactic.swallowed
        )
        return Table(
            layers=tuple(names[layer] for layer in kept),
            choices=tuple(Choice(layer=names[layer], tactic=tactic) for layer, tactic in choices),
            layer_of=place_of[[layer for layer, _ in choices]] if choices else np.empty(0, dtype=np.int32),
            codes=codes,
            bad=np.array(self._bad, dtype=np.bool_),
            origins=tuple(self._origins),
            fields=fields,
            not_compared=recorded - fields,
            variants=tuple(sorted(self._variants.items())),
            opaque_layers=tuple(
                dict.fromkeys(names[each] for each, tactic in self._records if is_opaque(names[each], tactic))
            ),
            incomparable=tuple(names[layer] for layer in told if place_of[layer] == ABSENT),
        )

    def _of_catalogue(self, layers: CataloguedLayers) -> NDArray[np.int32]:
        """The numbers of records, looked up all at once where the catalogue has been met before."""
        entries = layers.catalogue.entries
        known = self._catalogues.get(id(layers.catalogue))
        if known is None or len(known.records) < len(entries):
            records = np.full(2 * len(entries), ABSENT, dtype=np.int32)
            if known is not None:
                records[: len(known.records)] = known.records
            # Holding on to the catalogue keeps its id from being used again.
            known = self._catalogues[id(layers.catalogue)] = _Known(layers.catalogue, records)
        numbers = np.frombuffer(layers.numbers, dtype=np.intc)
        row = known.records[numbers]
        for place in np.nonzero(row == ABSENT)[0].tolist():
            row[place] = known.records[numbers[place]] = self._number(*entries[numbers[place]])
        return row

    def _number(self, layer: str, tactic: Tactic) -> int:
        number = self._numbers.get((layer, id(tactic)))
        if number is None:
            number = self._numbers[layer, id(tactic)] = len(self._records)
            self._records.append((self._layers.setdefault(layer, len(self._layers)), tactic))
        return number

    def _seen(self, layer_of: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which layers each kind of source tells of (bool, kinds x layers), be it once."""
        told = np.array([not tactic.swallowed for _, tactic in self._records], dtype=np.bool_)
        views = {view: number for number, view in enumerate(dict.fromkeys(self._views))}
        seen = np.zeros((len(views), len(self._layers)), dtype=np.bool_)
        for view, row in zip(self._views, self._rows, strict=True):
            seen[views[view], layer_of[row[told[row]]]] = True
        return seen

    def _choices(
        self, fields: frozenset[Field], layer_of: NDArray[np.int32], comparable: NDArray[np.bool_]
    ) -> tuple[list[tuple[int, Tactic]], NDArray[np.int32]]:
        """Put equal tactics of a layer together; return the choices, and the choice of each record."""
        by_layer: dict[int, list[int]] = {}
        for number, (layer, (_, tactic)) in enumerate(zip(layer_of.tolist(), self._records, strict=True)):
            if comparable[layer] and not tactic.swallowed:
                by_layer.setdefault(layer, []).append(number)
        choices: list[tuple[int, Tactic]] = []
        choice_of = np.full(len(self._records), ABSENT, dtype=np.int32)
        for layer in sorted(by_layer):
            numbers = by_layer[layer]
            same = identities([self._records[number][1] for number in numbers], fields)
            found: dict[Hashable, int] = {}
            for number, identity in zip(numbers, same or (), strict=same is not None):
                tactic = self._records[number][1]
                choice = choice_of[number] = found.setdefault(identity, len(choices))
                if choice == len(choices):
                    choices.append((layer, tactic))
                elif _told(tactic) > _told(choices[choice][1]):
                    choices[choice] = (layer, tactic)
        return choices, choice_of


def _told(tactic: Tactic) -> tuple[bool, bool, bool]:
    """How much a record tells: the one to show for a choice tells most, the name of the kernel before all."""
    return tactic.kernel is not None, tactic.tactic is not None, tactic.implementation is not None


def table_of(good: Iterable[Assignment], bad: Iterable[Assignment]) -> Table:
    """Return the table of good and of bad builds."""
    builder = TableBuilder()
    for verdict, assignments in ((Verdict.GOOD, good), (Verdict.BAD, bad)):
        for assignment in assignments:
            builder.add(assignment, verdict)
    return builder.table()
