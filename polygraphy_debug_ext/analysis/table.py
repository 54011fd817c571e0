"""Layers x builds: which tactic each build has at each layer, as numbers, so that thousands of builds fit into memory.

- *choice*: a tactic at a layer; equal tactics of one layer are one choice.
- *code*: the number of a choice; `ABSENT` where a build does not have the layer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.model import Field, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import NDArray

    from polygraphy_debug_ext.model import Assignment, Tactic

ABSENT: Final = -1


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
    `not_compared` those that only some records have; `variants` counts the records by dialect.
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


class TableBuilder:
    """Takes assignments one by one; nothing of them is kept but their distinct tactics and a row of numbers each."""

    def __init__(self) -> None:
        self._layers: dict[str, int] = {}
        # Readers give equal records as one object; holding on to it keeps its id from being used again.
        self._raw: dict[tuple[str, int], int] = {}
        self._tactics: list[tuple[int, Tactic]] = []
        self._rows: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        self._bad: list[bool] = []
        self._origins: list[str] = []
        self._fields: list[frozenset[Field]] = []
        self._variants: Counter[str] = Counter()
        self._opaque: dict[str, None] = {}

    def add(self, assignment: Assignment, verdict: Verdict) -> None:
        """Take the assignment of a build that was good or bad."""
        layers, raws = [], []
        for layer, tactic in assignment.layers.items():
            if tactic.swallowed:
                continue
            raw = self._raw.get((layer, id(tactic)))
            if raw is None:
                raw = self._raw[layer, id(tactic)] = len(self._tactics)
                self._tactics.append((self._layers.setdefault(layer, len(self._layers)), tactic))
            raws.append(raw)
            layers.append(self._tactics[raw][0])
        self._rows.append((np.array(layers, dtype=np.int32), np.array(raws, dtype=np.int32)))
        self._bad.append(verdict is Verdict.BAD)
        self._origins.append(assignment.origin)
        self._fields.append(assignment.fields)
        self._variants[assignment.variant] += 1
        self._opaque.update(dict.fromkeys(assignment.opaque_layers))

    def table(self) -> Table:
        """Return the table of what was taken; where records differ in what they tell of a tensor, only what all of them tell counts."""
        fields = frozenset(Field).intersection(*self._fields)
        choices, choice_of = self._merge(fields)
        codes = np.full((len(self._rows), len(self._layers)), ABSENT, dtype=np.int32)
        for build, (layers, raws) in enumerate(self._rows):
            codes[build, layers] = choice_of[raws]
        names = tuple(self._layers)
        return Table(
            layers=names,
            choices=tuple(Choice(layer=names[layer], tactic=tactic) for layer, tactic in choices),
            layer_of=np.array([layer for layer, _ in choices], dtype=np.int32),
            codes=codes,
            bad=np.array(self._bad, dtype=np.bool_),
            origins=tuple(self._origins),
            fields=fields,
            not_compared=frozenset[Field]().union(*self._fields) - fields,
            variants=tuple(sorted(self._variants.items())),
            opaque_layers=tuple(self._opaque),
        )

    def _merge(self, fields: frozenset[Field]) -> tuple[list[tuple[int, Tactic]], NDArray[np.int32]]:
        """Put equal tactics of a layer together; return the choices, and the choice of each raw tactic."""
        found: dict[tuple[int, Hashable], int] = {}
        choices: list[tuple[int, Tactic]] = []
        choice_of = np.empty(len(self._tactics), dtype=np.int32)
        for raw, (layer, tactic) in enumerate(self._tactics):
            number = found.setdefault((layer, tactic.identity(fields)), len(choices))
            if number == len(choices):
                choices.append((layer, tactic))
            elif choices[number][1].kernel is None:
                # A record that knows the name of the kernel says more than one that does not.
                choices[number] = (layer, tactic)
            choice_of[raw] = number
        return choices, choice_of


def table_of(good: Iterable[Assignment], bad: Iterable[Assignment]) -> Table:
    """Return the table of good and of bad builds."""
    builder = TableBuilder()
    for verdict, assignments in ((Verdict.GOOD, good), (Verdict.BAD, bad)):
        for assignment in assignments:
            builder.add(assignment, verdict)
    return builder.table()
