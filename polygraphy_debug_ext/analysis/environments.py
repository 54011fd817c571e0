"""Which builds can be compared: those of one TensorRT, GPU, set of builder flags and network. Tactics of others mean other things.

- *environment*: what a record says of where its build was made (key to value); what it does not say may be anything.
- A record that says less belongs to the one environment that says the same and more; if there are several, it stays by itself.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.analysis.table import TableBuilder
from polygraphy_debug_ext.model.answer import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.model import Assignment, Tactic, Verdict

    Key = tuple[str, ...]

#: Keys whose values decide whether two builds can be compared. TensorRT-RTX is a TensorRT of its own.
DECISIVE: Final = ("tensorrt", "gpu", "compute_capability", "flags", "model")
_RTX: Final = "tensorrt_rtx"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """Builds that can be compared.

    `environment` is what they share. `apart` are the decisive values in which the groups differ ("" is unknown), `mixed` other values
    (key to the values) that differ among these builds.
    """

    table: Table
    environment: Environment
    apart: tuple[tuple[str, str], ...] = ()
    mixed: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Environments:
    """Takes builds one by one, and puts those together that can be compared."""

    def __init__(self) -> None:
        # Nearly always there is one environment: its builds go straight into a table, the others wait until all are known.
        self._first: Key | None = None
        self._builder = TableBuilder()
        self._waiting: dict[Key, list[_Packed]] = {}
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._values: dict[Key, dict[str, dict[str, None]]] = {}

    def __len__(self) -> int:
        """How many different environments were named; there may be fewer groups."""
        return len(self._values)

    def add(self, assignment: Assignment, verdict: Verdict) -> None:
        """Take a build that was good or bad."""
        key = _key(assignment.metadata)
        values = self._values.setdefault(key, {})
        for name, value in assignment.metadata.items():
            values.setdefault(name, {})[str(value)] = None
        if self._first is None:
            self._first = key
        if key == self._first:
            self._builder.add(assignment, verdict)
        else:
            self._waiting.setdefault(key, []).append(self._packed(assignment, verdict))

    def groups(self) -> tuple[Comparable, ...]:
        """Return the groups, that of the first build first; call it once, when all builds are there."""
        groups = _grouped(list(self._values))
        differing = [
            number for number in range(len(DECISIVE)) if len({group.values[number] for group in groups}) > 1
        ]
        return tuple(self._comparable(group, differing) for group in groups)

    def _packed(self, assignment: Assignment, verdict: Verdict) -> _Packed:
        names = tuple(assignment.layers)
        return _Packed(
            rest=dataclasses.replace(assignment, layers={}, timing_cache=None),
            names=self._names.setdefault(names, names),
            tactics=tuple(assignment.layers.values()),
            verdict=verdict,
        )

    def _comparable(self, group: _Group, differing: Sequence[int]) -> Comparable:
        builder = self._builder if self._first in group.keys else TableBuilder()
        for key in group.keys:
            for packed in self._waiting.pop(key, ()):
                builder.add(packed.assignment(), packed.verdict)
        values: dict[str, dict[str, None]] = {}
        for key in group.keys:
            for name, found in self._values[key].items():
                values.setdefault(name, {}).update(found)
        return Comparable(
            table=builder.table(),
            environment=Environment(
                values=tuple(
                    sorted((name, next(iter(found))) for name, found in values.items() if len(found) == 1)
                )
            ),
            apart=tuple((DECISIVE[number], group.values[number]) for number in differing),
            mixed=tuple(sorted((name, tuple(found)) for name, found in values.items() if len(found) > 1)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Packed:
    """An assignment that waits, in little room: builds of one network share the names of its layers."""

    rest: Assignment
    names: tuple[str, ...]
    tactics: tuple[Tactic, ...]
    verdict: Verdict

    def assignment(self) -> Assignment:
        return dataclasses.replace(self.rest, layers=dict(zip(self.names, self.tactics, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Keys that go together; `values` is the one that says most."""

    values: Key
    keys: list[Key]


def _key(metadata: Mapping[str, object]) -> Key:
    values = [str(metadata.get(name) or "") for name in DECISIVE]
    if not values[0] and metadata.get(_RTX):
        values[0] = f"RTX {metadata[_RTX]}"
    return tuple(values)


def _grouped(keys: Sequence[Key]) -> list[_Group]:
    """Put each key to the only group that says all that it says, and more; return the groups in the order in which keys came."""
    groups: list[_Group] = []
    # Those that say most come first, so that the order of the builds decides nothing.
    for key in sorted(keys, key=lambda key: (-sum(map(bool, key)), -len(key[0]))):
        fitting = [group for group in groups if _within(key, group.values)]
        if len(fitting) == 1:
            fitting[0].keys.append(key)
        else:
            groups.append(_Group(values=key, keys=[key]))
    order = {key: number for number, key in enumerate(keys)}
    return sorted(groups, key=lambda group: min(order[key] for key in group.keys))


def _within(key: Key, values: Key) -> bool:
    """Whether `values` say all that `key` says; a log says 10.13.3 where the module says 10.13.3.9."""
    version = not key[0] or f"{values[0]}.".startswith(f"{key[0]}.")
    return version and all(not one or one == other for one, other in zip(key[1:], values[1:], strict=True))
