"""What may be at fault: each tactic at a layer, each kernel that several layers use, as far as the builds can tell.

- *candidate*: one of them; only those that some builds have and some have not: of the others these builds know nothing.
- *class*: candidates that the same builds have.

The weight of a candidate is its share of the belief that one thing is at fault. Every choice weighs the same; if its kernel has other
uses, half of its weight is that the kernel is at fault wherever it is used: a kernel with one use is not counted twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.model.answer import View
from polygraphy_debug_ext.model.tactic import IMPLEMENTATION_MASK, TACTIC_MASK

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.model import Tactic


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hypotheses:
    """The candidates of a table, and their classes.

    `choices` names the choices of each candidate, `views` says what it is. `presence` (bool, candidates x builds) says which build has
    it, `weights` (float64, candidates) what it weighs; the sum is the number of choices that vary. `class_of` (int64, candidates) numbers
    the classes, `first` (int64, classes) names one candidate of each.
    """

    choices: tuple[tuple[int, ...], ...]
    views: tuple[View, ...]
    presence: NDArray[np.bool_]
    weights: NDArray[np.float64]
    class_of: NDArray[np.int64]
    first: NDArray[np.int64]

    @property
    def class_sizes(self) -> NDArray[np.int64]:
        """How many candidates each class has."""
        return np.bincount(self.class_of, minlength=len(self.first)).astype(np.int64)

    @property
    def class_weights(self) -> NDArray[np.float64]:
        """What each class weighs."""
        return np.bincount(self.class_of, weights=self.weights, minlength=len(self.first)).astype(np.float64)

    @property
    def class_presence(self) -> NDArray[np.bool_]:
        """Which build has the candidates of which class (bool, classes x builds)."""
        return self.presence[self.first]


def hypotheses(table: Table, view: View) -> Hypotheses:
    """Return what may be at fault: in the layer view tactics at layers and kernels of several uses, in the kernel view kernels only."""
    presence = table.presence()
    if view is View.LAYER:
        return _by_layer(presence, _kernels(table))
    return _joined(
        presence, [], [], [(kernel, 1.0) for kernel in _kernels(table) if _varies(presence, kernel)]
    )


def _by_layer(presence: NDArray[np.bool_], kernels: list[tuple[int, ...]]) -> Hypotheses:
    singles: list[int] = np.nonzero(presence.any(axis=1) & ~presence.all(axis=1))[0].tolist()
    weights = np.zeros(len(presence))
    weights[singles] = 1.0
    shared: list[tuple[tuple[int, ...], float]] = []
    for kernel in kernels:
        # A kernel that the same builds have as one of its uses says nothing else than this use.
        if len(kernel) == 1 or not _varies(presence, kernel) or _is_one_use(presence, kernel):
            continue
        weights[list(kernel)] /= 2
        shared.append((kernel, float(weights[list(kernel)].sum())))
    return _joined(presence, singles, weights[singles].tolist(), shared)


def _varies(presence: NDArray[np.bool_], kernel: tuple[int, ...]) -> bool:
    users = int(presence[list(kernel)].any(axis=0).sum())
    return bool(0 < users < presence.shape[1])


def _is_one_use(presence: NDArray[np.bool_], kernel: tuple[int, ...]) -> bool:
    uses = presence[list(kernel)]
    users = uses.any(axis=0)
    return any(np.array_equal(users, use) for use in uses)


def _joined(
    presence: NDArray[np.bool_],
    singles: list[int],
    weights: list[float],
    kernels: list[tuple[tuple[int, ...], float]],
) -> Hypotheses:
    """Number singles and kernels (choices, weight) as one list of candidates."""
    rows = np.zeros((len(singles) + len(kernels), presence.shape[1]), dtype=np.bool_)
    rows[: len(singles)] = presence[singles]
    for row, (kernel, _) in enumerate(kernels, len(singles)):
        rows[row] = presence[list(kernel)].any(axis=0)
    first, class_of = _classes(rows)
    return Hypotheses(
        choices=(*((number,) for number in singles), *(kernel for kernel, _ in kernels)),
        views=(View.LAYER,) * len(singles) + (View.KERNEL,) * len(kernels),
        presence=rows,
        weights=np.array([*weights, *(weight for _, weight in kernels)], dtype=np.float64),
        class_of=class_of,
        first=first,
    )


def _kernels(table: Table) -> list[tuple[int, ...]]:
    """The choices of each kernel; where its name is not known, of each implementation and tactic id."""
    names = {
        _ids(choice.tactic): choice.tactic.kernel
        for choice in table.choices
        if choice.tactic.kernel is not None
    }
    found: dict[Hashable, list[int]] = {}
    for number, choice in enumerate(table.choices):
        ids = _ids(choice.tactic)
        found.setdefault(choice.tactic.kernel or names.get(ids) or ids, []).append(number)
    return [tuple(numbers) for numbers in found.values()]


def _ids(tactic: Tactic) -> tuple[int | None, int | None]:
    return (
        None if tactic.implementation is None else tactic.implementation & IMPLEMENTATION_MASK,
        None if tactic.tactic is None else tactic.tactic & TACTIC_MASK,
    )


def _classes(presence: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number rows so that equal ones have one number; the number of a class is the place of its first row among the classes' first rows."""
    packed = np.packbits(presence, axis=1)
    numbers: dict[bytes, int] = {}
    first: list[int] = []
    class_of = np.empty(len(presence), dtype=np.int64)
    for row, pattern in enumerate(packed):
        number = class_of[row] = numbers.setdefault(pattern.tobytes(), len(numbers))
        if number == len(first):
            first.append(row)
    return np.array(first, dtype=np.int64), class_of
