"""Hybrids of a good and a bad assignment: builds that have some of the bad tactics, and the good ones everywhere else.

- *factor*: a layer at which the two differ, or several that can only be forced together because they share a key of the timing
  cache; a search varies factors by name.
- *apart*: layers that only one of the two has, or whose pick a fusion swallowed: they cannot be exchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Assignment, Realised

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from polygraphy_debug_ext.model import Field, Tactic


class Hybrids:
    """What can be mixed of `good` and `bad`.

    `layers_of` has the layers of each factor, in the order of the good build; `apart` the layers that cannot be exchanged.
    """

    def __init__(self, good: Assignment, bad: Assignment) -> None:
        self.good = good
        self.bad = bad
        self._fields = good.fields & bad.fields
        self.layers_of: dict[str, tuple[str, ...]] = {}
        self.apart: tuple[str, ...] = ()
        different = [name for name in good.layers if self._exchangeable(name) and self._differ(name)]
        for group in _grouped(different, self._keys):
            self.layers_of[_name(group)] = tuple(group)
        self._factor_of = {layer: factor for factor, layers in self.layers_of.items() for layer in layers}
        everything = dict.fromkeys([*good.layers, *bad.layers])
        self.apart = tuple(
            name for name in everything if not self._exchangeable(name) and self._matters(name)
        )

    @property
    def factors(self) -> tuple[str, ...]:
        """The names of the factors."""
        return tuple(self.layers_of)

    def assignment(self, bad: Iterable[str]) -> Assignment:
        """Return the assignment in which the factors `bad` have their bad value, all others their good one.

        It has no timing cache: those of both sides are needed to force it.

        Raises:
            KeyError: if there is no such factor.
        """
        wanted = frozenset(bad)
        if unknown := wanted - self.layers_of.keys():
            raise KeyError(f"no such factor: {min(unknown)}")
        if len(wanted) == len(self.layers_of):
            return replace(self.bad, timing_cache=None)
        layers = {
            name: self.bad.layers[name] if self._factor_of.get(name) in wanted else tactic
            for name, tactic in self.good.layers.items()
        }
        return replace(self.good, layers=layers, fields=self._fields, timing_cache=None, origin="")

    def realised(self, built: Assignment) -> Realised:
        """Say which factors a build has at their bad value, and which at neither value."""
        bad, neither = set(), set()
        fields = self._fields & built.fields
        for factor, layers in self.layers_of.items():
            sides = {self._side(layer, built.layers.get(layer), fields) for layer in layers}
            if sides == {"bad"}:
                bad.add(factor)
            elif sides != {"good"}:
                neither.add(factor)
        return Realised(bad=frozenset(bad), neither=frozenset(neither))

    def _side(self, layer: str, tactic: Tactic | None, fields: frozenset[Field]) -> str:
        if tactic is None or tactic.swallowed:
            return "neither"
        identity = tactic.identity(fields)
        for side, assignment in (("bad", self.bad), ("good", self.good)):
            if assignment.layers[layer].identity(fields) == identity:
                return side
        return "neither"

    def _differ(self, name: str) -> bool:
        good, bad = self.good.layers[name], self.bad.layers[name]
        return good.identity(self._fields) != bad.identity(self._fields)

    def _exchangeable(self, name: str) -> bool:
        sides = (self.good.layers.get(name), self.bad.layers.get(name))
        return all(tactic is not None and not tactic.swallowed for tactic in sides)

    def _matters(self, name: str) -> bool:
        """Whether a layer is in one of the engines at least: a pick that was swallowed in both is in neither."""
        sides = (self.good.layers.get(name), self.bad.layers.get(name))
        return any(tactic is not None and not tactic.swallowed for tactic in sides)

    def _keys(self, name: str) -> tuple[Hashable, ...]:
        keys = {self.good.layers[name].cache_key, self.bad.layers[name].cache_key} - {None}
        return tuple(keys) or (("layer", name),)


def _grouped(names: list[str], keys_of: Callable[[str], tuple[Hashable, ...]]) -> list[list[str]]:
    """Put names together that have a key in common, directly or through others."""
    groups: list[list[str]] = []
    keys: list[set[Hashable]] = []
    for name in names:
        mine = set(keys_of(name))
        joined = [number for number, each in enumerate(keys) if each & mine]
        members = [name for number in joined for name in groups[number]]
        for number in joined:
            mine |= keys[number]
        for number in reversed(joined):
            del groups[number], keys[number]
        groups.append([*members, name])
        keys.append(mine)
    return groups


def _name(layers: list[str]) -> str:
    return layers[0] if len(layers) == 1 else f"{layers[0]} (and {len(layers) - 1} with the same key)"
