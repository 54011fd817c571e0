"""Keeps the tactics of an avoid list out of engines.

- An *offence* is a layer of an engine with a tactic of the list.
- A selector is not offered what is known to be on the list; the name of a kernel is known once its tactic was timed or built.
- In an editable timing cache, picks that are on the list are replaced by the fastest other candidate of their autotuning table.

Whatever was done, the engine is looked at afterwards; an offence means that it is built again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError, UsageError
from polygraphy_debug_ext.model import Witness
from polygraphy_debug_ext.model.tactic import TACTIC_MASK
from polygraphy_debug_ext.trt.joining import Cached

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from polygraphy_debug_ext.formats.autotuning import TunedOp
    from polygraphy_debug_ext.formats.avoid import AvoidEntry
    from polygraphy_debug_ext.model import Assignment, Tactic
    from polygraphy_debug_ext.trt.heard import Timings

_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Offence:
    """A tactic that should not be in the engine, and the entry that says so."""

    layer: str
    tactic: Tactic
    entry: AvoidEntry

    def __str__(self) -> str:
        """For messages."""
        reason = f" ({self.entry.reason})" if self.entry.reason else ""
        return f"Layer: {self.layer} | {_called(self.tactic)} is avoided by the entry: {self.entry}{reason}"


class Avoidance:
    """The avoid list of a run, for one version of TensorRT, and which of its entries were met so far."""

    def __init__(self, entries: Sequence[AvoidEntry], version: str, timings: Timings) -> None:
        self._entries = [entry for entry in entries if entry.applies_to(version)]
        self._elsewhere = [entry for entry in entries if not entry.applies_to(version)]
        self._version = version
        self._timings = timings
        self._banned: dict[tuple[str, int], AvoidEntry] = {}
        self._met: set[int] = set()
        self._told = False

    def entry(self, layer: str, tactic: Tactic) -> AvoidEntry | None:
        """Return the entry by which a tactic is to be avoided at a layer, if there is one."""
        banned = None if tactic.tactic is None else self._banned.get((layer, tactic.tactic & TACTIC_MASK))
        if banned is not None:
            return banned
        kernel = tactic.kernel
        if kernel is None and tactic.tactic is not None:
            kernel = self._timings.kernels.get(tactic.tactic & TACTIC_MASK)
        for number, entry in enumerate(self._entries):
            if entry.matches(
                layer, kernel=kernel, tactic=tactic.tactic, implementation=tactic.implementation
            ):
                self._met.add(number)
                return entry
        return None

    def offences(self, layers: Mapping[str, Tactic]) -> list[Offence]:
        """What is on the list of the layers that an engine has."""
        found = []
        for name, tactic in layers.items():
            if not tactic.swallowed and (entry := self.entry(name, tactic)) is not None:
                found.append(Offence(layer=name, tactic=tactic, entry=entry))
        return found

    def ban(self, offence: Offence) -> None:
        """Know from now on that the tactic id of an offence is on the list at its layer."""
        if offence.tactic.tactic is not None:
            self._banned[offence.layer, offence.tactic.tactic & TACTIC_MASK] = offence.entry

    def require_free_of(self, assignment: Assignment) -> None:
        """Refuse to force what is on the list.

        Raises:
            UsageError: if a tactic of the replay is.
        """
        if offences := self.offences(assignment.layers):
            raise UsageError(
                f"{assignment.origin} forces {len(offences)} tactics that are to be avoided:\n    {_some(offences)}",
                "Leave out --load-tactics, or the entries of --avoid-tactics.",
            )

    def tell_of_idle_entries(self, ops: Iterable[TunedOp]) -> None:
        """Say once which entries are for other versions, and which match nothing that the first build could have chosen."""
        if self._told:
            return
        self._told = True
        for entry in self._elsewhere:
            G_LOGGER.warning(
                f"--avoid-tactics: this entry is for TensorRT {entry.versions}, and does nothing with {self._version}: {entry}"
            )
        offered = _offered(ops, self._timings)
        for number, entry in enumerate(self._entries):
            if number in self._met:
                continue
            if not any(
                entry.matches(layer, kernel=kernel, tactic=tactic) for layer, tactic, kernel in offered
            ):
                G_LOGGER.warning(f"--avoid-tactics: this entry matches nothing in this network: {entry}")


class AvoidFilter:
    """Does not offer what is on the list."""

    def __init__(self, avoidance: Avoidance, timings: Timings) -> None:
        self._avoidance = avoidance
        self._timings = timings
        #: By layer, the tactics that were kept out.
        self.kept_out: dict[str, list[Tactic]] = {}

    def narrow(self, layer: str, offered: Sequence[Tactic], allowed: Sequence[int]) -> list[int]:
        """Return those that are not on the list.

        Raises:
            BuildError: if all are.
        """
        entries = {number: self._avoidance.entry(layer, offered[number]) for number in allowed}
        left = [number for number, entry in entries.items() if entry is None]
        if allowed and not left:
            met = dict.fromkeys(str(entry) for entry in entries.values())
            raise BuildError(
                f"All {len(allowed)} tactics that TensorRT offers for the layer {layer} are avoided, by: {'; '.join(met)}",
                "Narrow the entries of --avoid-tactics.",
            )
        out = [offered[number] for number, entry in entries.items() if entry is not None]
        if out:
            self.kept_out[layer] = out
        return left

    def report(self, chosen: Mapping[str, Tactic]) -> None:
        """Say what it cost, as far as times are known: TensorRT does not time what it is not offered."""
        changes = [
            self._change(layer, out, chosen[layer]) for layer, out in self.kept_out.items() if layer in chosen
        ]
        # What is slower than what was chosen would not have been chosen anyway.
        tell_costs([change for change in changes if change.cost_ms != 0])

    def finish(self) -> None:
        """The engine is looked at by others."""

    def _change(self, layer: str, out: Sequence[Tactic], got: Tactic) -> Change:
        times = {number: self._time(layer, tactic) for number, tactic in enumerate(out)}
        best = min(times, key=lambda number: times[number] or math.inf)
        return Change(
            layer=layer,
            old=self._named(out[best]),
            new=self._named(got),
            old_ms=times[best],
            new_ms=self._time(layer, got),
        )

    def _named(self, tactic: Tactic) -> str:
        kernel = self._timings.kernels.get((tactic.tactic or 0) & TACTIC_MASK)
        return _called(replace(tactic, kernel=tactic.kernel or kernel))

    def _time(self, layer: str, tactic: Tactic) -> float | None:
        if tactic.time_ms is not None and tactic.time_ms > 0:
            return tactic.time_ms
        return self._timings.time(layer, (tactic.tactic or 0) & TACTIC_MASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What avoiding did at a layer: tactics, and their times in milliseconds where they are known."""

    layer: str
    old: str
    new: str
    old_ms: float | None
    new_ms: float | None

    def then(self, other: Change) -> Change:
        """This change and one that came after it."""
        return replace(self, new=other.new, new_ms=other.new_ms)

    @property
    def cost_ms(self) -> float | None:
        """What it cost; a tactic that is slower than what was chosen costs nothing to avoid."""
        if self.old_ms is None or self.new_ms is None:
            return None
        return max(0.0, self.new_ms - self.old_ms)

    def __str__(self) -> str:
        """For messages."""
        times = [f"{time:.4g} ms" if time is not None else "not timed" for time in (self.old_ms, self.new_ms)]
        named = [
            f"{name} ({time})" if name else time
            for name, time in zip((self.old, self.new), times, strict=True)
        ]
        return f"Layer: {self.layer} | {named[0]} -> {named[1]}"


def replacements(
    avoidance: Avoidance, assignment: Assignment, ops: Iterable[TunedOp]
) -> tuple[dict[str, Cached | None], list[Change]]:
    """Return entries for the timing cache, by key, that replace all picks on the list, and what changes in the engine.

    An op without a table was not tuned in this run: its entry is None, so that it is. A pick that the engine does not have is
    replaced as well, as it may come in when another one goes.

    Raises:
        BuildError: if nothing else is known for a layer of the engine.
    """
    tables = {op.key: op for op in ops if op.key is not None}
    pins: dict[str, Cached | None] = {}
    changes = []
    for layer, tactic in assignment.layers.items():
        entry = None if tactic.cache_key is None else avoidance.entry(layer, tactic)
        if entry is None or tactic.cache_key is None:
            continue
        table = tables.get(tactic.cache_key)
        if table is None or not any(each.tactic == tactic.tactic for each in table.candidates):
            pins[tactic.cache_key] = None
            continue
        best = _best(avoidance, layer, tactic, table)
        if best is not None:
            pins[tactic.cache_key] = best[0]
            if not tactic.swallowed:
                changes.append(best[1])
        elif not tactic.swallowed:
            raise BuildError(
                f"All {len(table.candidates)} tactics that TensorRT timed for the layer {layer} are avoided, by the entry: {entry}"
                + (" and others" if len(table.candidates) > 1 else ""),
                "Narrow the entries of --avoid-tactics.",
            )
    return pins, changes


def tell_costs(changes: Sequence[Change]) -> None:
    """Log what avoiding cost, by layer and in all."""
    if not changes:
        return
    known = [change.cost_ms for change in changes if change.cost_ms is not None]
    unknown = len(changes) - len(known)
    total = f"{sum(known):+.4g} ms by the recorded times" if known else "its cost is not known"
    rest = f", {unknown} of them not timed" if unknown and known else ""
    layers = f"{len(changes)} layers" if len(changes) > 1 else "1 layer"
    G_LOGGER.info(f"Avoided tactics were kept out of {layers}{rest}: {total}\n    {_some(changes)}")


def in_engine(layers: Mapping[str, Tactic]) -> dict[str, Tactic]:
    """The layers that the engine has."""
    return {name: tactic for name, tactic in layers.items() if Witness.ENGINE in tactic.witnesses}


def _best(avoidance: Avoidance, layer: str, tactic: Tactic, table: TunedOp) -> tuple[Cached, Change] | None:
    for each in sorted(table.candidates, key=lambda candidate: candidate.cost_ms):
        other = replace(tactic, tactic=each.tactic, kernel=each.kernel)
        if avoidance.entry(layer, other) is None:
            pin = Cached(tactic=each.tactic, time_ms=each.cost_ms)
            change = Change(
                layer=layer,
                old=_called(tactic),
                new=_called(other),
                old_ms=tactic.time_ms,
                new_ms=each.cost_ms,
            )
            return pin, change
    return None


def _offered(ops: Iterable[TunedOp], timings: Timings) -> list[tuple[str, int, str | None]]:
    """Layer, tactic and kernel of everything that was timed."""
    found: list[tuple[str, int, str | None]] = []
    for op in ops:
        names = dict.fromkeys([op.op, " + ".join(op.onnx_layers), *op.onnx_layers])
        found += [(name, each.tactic, each.kernel) for each in op.candidates for name in names if name]
    for layer, times in timings.times.items():
        found += [(layer, tactic, timings.kernels.get(tactic)) for tactic in times]
    return found


def _called(tactic: Tactic) -> str:
    number = "" if tactic.tactic is None else f"{tactic.tactic & TACTIC_MASK:#x}"
    return " ".join(filter(None, [tactic.kernel, number]))


def _some(lines: Sequence[object]) -> str:
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n    ".join([*(str(line) for line in lines[:_SHOWN]), *more])
