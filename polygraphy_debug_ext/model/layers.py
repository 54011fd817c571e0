"""Layers of very many builds, in little room: a catalogue of the layers with their tactics that there are, and their numbers for each build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from polygraphy_debug_ext.model.tactic import Tactic


class Catalogue:
    """Layers with a tactic, each with a number from 0. It only grows; equal tactics should be one object."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Tactic]] = []
        self._numbers: dict[tuple[str, int], int] = {}

    def number(self, layer: str, tactic: Tactic) -> int:
        """Return the number of a layer with a tactic; a new one if it has none."""
        number = self._numbers.setdefault((layer, id(tactic)), len(self.entries))
        if number == len(self.entries):
            # It holds on to the tactic, so that its id is not used again.
            self.entries.append((layer, tactic))
        return number


class CataloguedLayers(Mapping[str, "Tactic"]):
    """Layer to tactic, as numbers (C int, in the order of the layers) of a catalogue. Who only wants the numbers need not have the mapping."""

    __slots__ = ("_mapping", "catalogue", "numbers")

    def __init__(self, catalogue: Catalogue, numbers: array[int]) -> None:
        self.catalogue = catalogue
        self.numbers = numbers
        self._mapping: dict[str, Tactic] | None = None

    def _layers(self) -> dict[str, Tactic]:
        if self._mapping is None:
            entries = self.catalogue.entries
            self._mapping = dict([entries[number] for number in self.numbers])
        return self._mapping

    def __getitem__(self, layer: str) -> Tactic:
        return self._layers()[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers())

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return repr(self._layers())
