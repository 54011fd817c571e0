"""Exploring: of the tactics of a layer that are nearly as fast as its fastest, those are preferred that this run has seen least.

What is near is known from recorded costs: the autotuning tables and timing lines of the builds that were free. Every fourth build is
free, so that costs are measured anew. All that is known is known to one process: after a crash, or with --resume, it begins anew.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Tactic
from polygraphy_debug_ext.model.tactic import TACTIC_MASK
from polygraphy_debug_ext.trt.joining import Cached

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from polygraphy_debug_ext.formats.autotuning import TunedOp
    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.trt.avoiding import Avoidance
    from polygraphy_debug_ext.trt.heard import Timings

#: Builds from one that is free to the next.
PERIOD: Final = 4
_DEFAULT: Final = 0.05
_OPTION: Final = re.compile(r"near-ties(?:=(\d{1,3}(?:\.\d+)?)%?)?")


def margin(text: str) -> float:
    """Return the share by which a tactic may be slower: 0.05 for `near-ties` and for `near-ties=5%`.

    Raises:
        UsageError: if it is something else.
    """
    match = _OPTION.fullmatch(text)
    if match is None or not 0 < float(match[1] or 1) <= 100:  # noqa: PLR2004 - per cent
        raise UsageError(
            f"--explore {text} is not known", "Give near-ties, or near-ties=N% with N above 0 and up to 100."
        )
    return _DEFAULT if match[1] is None else float(match[1]) / 100


@dataclass(slots=True)
class _Measured:
    """The costs of one tactic of one op or layer, in milliseconds."""

    total: float = 0.0
    count: int = 0
    kernel: str | None = None

    @property
    def mean(self) -> float:
        return self.total / self.count


@dataclass(slots=True)
class _Place:
    """What is known of one op (by key) or one layer (by name)."""

    layer: str
    tactics: dict[int, _Measured] = field(default_factory=dict)
    seen: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the next build is to prefer: entries for its timing cache, which starts from `cache`, and tactic ids by layer."""

    cache: bytes | None
    pins: Mapping[str, Cached]
    layers: Mapping[str, int]


class Explorer:
    """Says what the next build is to prefer.

    Args:
        margin: The share by which a tactic may be slower than the fastest.
        avoidance: What must not be preferred.
    """

    def __init__(self, margin: float, avoidance: Avoidance | None = None) -> None:
        self._margin = margin
        self._avoidance = avoidance
        self._ops: dict[str, _Place] = {}
        self._layers: dict[str, _Place] = {}
        self._cache: bytes | None = None
        self._builds = 0

    def step(self) -> Step | None:
        """Return what to prefer; None if the build is to be free."""
        if self._builds % PERIOD == 0:
            return None
        pins = {}
        for key, place in self._ops.items():
            tactic = self._least_seen(key, place)
            if tactic is not None:
                pins[key] = Cached(tactic=tactic, time_ms=place.tactics[tactic].mean)
        layers = {
            name: tactic
            for name, place in self._layers.items()
            if (tactic := self._least_seen(name, place)) is not None
        }
        return Step(cache=self._cache, pins=pins, layers=layers)

    def learn(self, built: Assignment, ops: Iterable[TunedOp], timings: Timings, *, free: bool) -> None:
        """Take what a build has, and, if it was free, what it measured."""
        self._builds += 1
        if free:
            self._cache = built.timing_cache
            for op in ops:
                if op.key is not None:
                    place = self._ops.setdefault(op.key, _Place(" + ".join(op.onnx_layers) or op.op))
                    for each in op.candidates:
                        _add(place, each.tactic, each.cost_ms, each.kernel)
            for layer, times in timings.times.items():
                place = self._layers.setdefault(layer, _Place(layer))
                for number, time in times.items():
                    _add(place, number, time, timings.kernels.get(number))
        for name, tactic in built.layers.items():
            if tactic.tactic is not None:
                where = (
                    self._layers.get(name) if tactic.cache_key is None else self._ops.get(tactic.cache_key)
                )
                if where is not None:
                    where.seen[tactic.tactic & TACTIC_MASK] += 1

    def _least_seen(self, name: str, place: _Place) -> int | None:
        """A tactic that is nearly the fastest, and that no other such one was seen less than; by lot, if there are several.

        Layers draw on their own: tactics that always came together could not be told apart.
        """
        allowed = [tactic for tactic in place.tactics if not self._avoided(place, tactic)]
        if not allowed:
            return None
        limit = min(place.tactics[tactic].mean for tactic in allowed) * (1 + self._margin)
        near = [tactic for tactic in allowed if place.tactics[tactic].mean <= limit]
        least = min(place.seen[tactic] for tactic in near)
        draw = random.Random(f"{name}/{self._builds}")  # noqa: S311 - no secret; a run can be repeated
        return draw.choice(sorted(tactic for tactic in near if place.seen[tactic] == least))

    def _avoided(self, place: _Place, number: int) -> bool:
        if self._avoidance is None:
            return False
        tactic = Tactic(implementation=None, tactic=number, kernel=place.tactics[number].kernel)
        return self._avoidance.entry(place.layer, tactic) is not None


def _add(place: _Place, tactic: int, cost: float, kernel: str | None) -> None:
    if cost > 0:
        measured = place.tactics.setdefault(tactic & TACTIC_MASK, _Measured())
        measured.total += cost
        measured.count += 1
        measured.kernel = kernel or measured.kernel
