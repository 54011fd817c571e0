"""What a search learns about its means: which factors cannot be forced, and which move only together.

A factor is *stuck* if it was asked for both ways, or twice one way, and never gave that; two factors are a *class* if they
were asked for differently at least twice and still always had the same value. A *third* value (neither the good nor the bad
one) is innocent once builds that had it passed often enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

#: So many refusals in a row, and never a success, make a factor stuck, or a pair a class.
_REFUSALS: Final = 2
#: So many passing builds acquit a third value.
_PASSES: Final = 2


class Forcing:
    """Holds what was asked for and what came of it.

    Args:
        count: The number of factors.
        innocent: Whether the third value of each is known to be harmless.
    """

    def __init__(self, count: int, innocent: Flags) -> None:
        self._asked = np.zeros((0, count), dtype=np.bool_)
        self._bad = np.zeros((0, count), dtype=np.bool_)
        self._passes = np.where(innocent, _PASSES, 0)

    def learn(self, asked: Flags, bad: Flags, neither: Flags, *, passed: bool) -> None:
        """Take in one build: what it was asked to have bad, has bad, and has at a third value."""
        self._asked = np.concatenate([self._asked, asked[None, :]])
        self._bad = np.concatenate([self._bad, bad[None, :]])
        if passed:
            self._passes = self._passes + neither

    @property
    def innocent(self) -> Flags:
        """Factors whose third value counts as a good one."""
        result: Flags = self._passes >= _PASSES
        return result

    @property
    def never(self) -> Flags:
        """Factors that cannot be made bad."""
        result: Flags = (self._asked.sum(axis=0) >= _REFUSALS) & ~self._bad.any(axis=0)
        return result

    @property
    def always(self) -> Flags:
        """Factors that cannot be made good."""
        result: Flags = ((~self._asked).sum(axis=0) >= _REFUSALS) & self._bad.all(axis=0)
        return result

    def classes(self) -> list[tuple[int, ...]]:
        """Return the groups of factors that move only together, each in rising order, by its first member."""
        refused = self._asked != self._bad
        suspects = np.flatnonzero((refused.sum(axis=0) >= _REFUSALS) & ~self.never & ~self.always)
        if not len(suspects):
            return []
        leader = list(range(refused.shape[1]))
        for factor in suspects.tolist():
            rows = refused[:, factor]
            alike = (self._bad == self._bad[:, [factor]]).all(axis=0)
            alike &= (self._asked[rows] == self._bad[rows][:, [factor]]).all(axis=0)
            # Several that fit cannot be told apart yet: wait for more builds.
            fitting = np.flatnonzero(alike)
            if len(fitting) == 1:
                one, other = sorted((leader[factor], leader[int(fitting[0])]))
                leader = [one if each == other else each for each in leader]
        groups: dict[int, list[int]] = {}
        for factor, first in enumerate(leader):
            groups.setdefault(first, []).append(factor)
        return [tuple(group) for group in groups.values() if len(group) > 1]
