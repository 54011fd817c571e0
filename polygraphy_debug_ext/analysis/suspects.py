"""The records of suspects, in the order that was asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.scores import dstar, ochiai, stock_rank
from polygraphy_debug_ext.model.answer import Counts, Method, Rank, Suspect

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from polygraphy_debug_ext.analysis.hypotheses import Hypotheses
    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.model import Tactic


def suspects(table: Table, found: Hypotheses, fault: NDArray[np.float64]) -> tuple[Suspect, ...]:
    """Return the candidates as records, in their own order; `fault` (float64, classes) is how likely each class holds a fault."""
    bad_builds, good_builds = int(table.bad.sum()), int((~table.bad).sum())
    bad_with = found.presence[:, table.bad].sum(axis=1).tolist()
    good_with = found.presence[:, ~table.bad].sum(axis=1).tolist()
    shares = (fault / found.class_sizes)[found.class_of].clip(0, 1).tolist()
    groups = _groups(found, fault)[found.class_of].tolist()
    builds = table.counts(np.ones(len(table.bad), dtype=np.bool_))
    alternatives = _Alternatives(table)
    records = []
    for number, choices in enumerate(found.choices):
        counts, rank, near, far = _scored(bad_with[number], good_with[number], bad_builds, good_builds)
        shown = choices[0] if len(choices) == 1 else max(choices, key=lambda choice: int(builds[choice]))
        records.append(
            Suspect(
                view=found.views[number],
                layers=tuple(dict.fromkeys([table.choices[choice].layer for choice in choices])),
                tactic=table.choices[shown].tactic,
                counts=counts,
                probability=shares[number],
                group=groups[number],
                rank=rank,
                ochiai=near,
                dstar=far,
                alternatives=alternatives.of(choices),
            )
        )
    return tuple(records)


@lru_cache(maxsize=2**12)
def _scored(bad_with: int, good_with: int, bad: int, good: int) -> tuple[Counts, Rank, float, float]:
    """The counts of a candidate that so many of the builds have, with its scores; many candidates have the same."""
    counts = Counts(
        bad_with=bad_with, good_with=good_with, bad_without=bad - bad_with, good_without=good - good_with
    )
    return counts, stock_rank(counts), ochiai(counts), dstar(counts)


def order(
    found: Hypotheses, records: tuple[Suspect, ...], method: Method
) -> tuple[list[int], tuple[Suspect, ...]]:
    """Return the numbers of the candidates and their records, most telling first; what the method cannot tell apart is ordered by the others."""
    key = _KEYS[method]
    numbers = sorted(range(len(found.choices)), key=lambda number: key(records[number]))
    return numbers, tuple(records[number] for number in numbers)


def _by_posterior(suspect: Suspect) -> tuple[float, ...]:
    # Members of a class stay together.
    return (-round(suspect.probability, 12), -suspect.ochiai, suspect.group)


def _by_difference(suspect: Suspect) -> tuple[float, ...]:
    return (
        suspect.rank is Rank.NOT_SUSPECT,
        -suspect.counts.bad_with,
        suspect.counts.good_with,
        *_by_posterior(suspect),
    )


_KEYS: Final[dict[Method, Callable[[Suspect], tuple[float, ...]]]] = {
    Method.POSTERIOR: _by_posterior,
    Method.DIFFERENCE: _by_difference,
    Method.OCHIAI: lambda suspect: (-suspect.ochiai, *_by_posterior(suspect)),
    Method.DSTAR: lambda suspect: (-suspect.dstar, *_by_posterior(suspect)),
}


def _groups(found: Hypotheses, fault: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number the classes by the probability of a member, the likeliest first."""
    ranking = np.argsort(-(fault / found.class_sizes), kind="stable")
    numbers = np.empty(len(ranking), dtype=np.int64)
    numbers[ranking] = np.arange(len(ranking))
    return numbers


class _Alternatives:
    """What else good builds have at a layer."""

    def __init__(self, table: Table) -> None:
        good = table.counts(~table.bad)
        self._layer_of: list[int] = table.layer_of.tolist()
        self._by_layer: list[list[tuple[int, Tactic]]] = [[] for _ in table.layers]
        for choice in np.argsort(-good, kind="stable")[: np.count_nonzero(good)].tolist():
            self._by_layer[self._layer_of[choice]].append((choice, table.choices[choice].tactic))

    def of(self, choices: tuple[int, ...]) -> tuple[Tactic, ...]:
        """Return other tactics that good builds have at the layers of these choices, those of most good builds first."""
        layers = dict.fromkeys([self._layer_of[choice] for choice in choices])
        found = [
            tactic for layer in layers for other, tactic in self._by_layer[layer] if other not in choices
        ]
        return tuple(dict.fromkeys(found)) if len(choices) > 1 else tuple(found)
