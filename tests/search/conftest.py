"""A world with a planted culprit, for searches: it says what comes of each proposal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pytest

from polygraphy_debug_ext.model import Judgement, Realised, Reason, Trial, Verdict
from polygraphy_debug_ext.search.bisection import Bisection

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.search.settings import Settings


def judged(index: int, verdict: Verdict, realised: Realised | None) -> Trial:
    """A trial with this verdict."""
    judgement = Judgement(verdict=verdict, reason=Reason.CHECK_EXIT_CODE)
    return Trial(index=index, judgement=judgement, seconds=1.0, realised=realised)


class World:
    """Factors f0, f1, ...; a build fails at the rate `present` if it has what `fails` says, else at the rate `absent`.

    Args:
        count: The number of factors.
        fails: Says of the bad factors of a build whether the fault is in it.
        absent: Rate of failures without the fault.
        present: Rate of failures with it.
        realise: What becomes of what is asked for; None if there is no engine.
    """

    def __init__(
        self,
        count: int,
        fails: Callable[[frozenset[str]], bool],
        absent: float = 0.0,
        present: float = 1.0,
        realise: Callable[[frozenset[str]], Realised | None] | None = None,
    ) -> None:
        self.names = [f"f{number}" for number in range(count)]
        self._fails = fails
        self._rates = (absent, present)
        self._realise = realise or (lambda bad: Realised(bad=bad))
        self.trials: list[tuple[frozenset[str], Trial]] = []

    def answer(self, bad: frozenset[str], generator: np.random.Generator) -> Trial:
        """Build and check."""
        realised = self._realise(bad)
        index = len(self.trials)
        if realised is None:
            trial = judged(index, Verdict.UNRESOLVED, None)
        else:
            failed = generator.random() < self._rates[self._fails(realised.bad)]
            trial = judged(index, Verdict.BAD if failed else Verdict.GOOD, realised)
        self.trials.append((bad, trial))
        return trial

    def search(self, settings: Settings) -> Bisection:
        """Search until the end."""
        strategy = Bisection(self.names, settings)
        generator = np.random.default_rng([settings.seed, 7])
        while (proposal := strategy.propose()) is not None:
            assert proposal.bad is not None
            strategy.record(proposal, self.answer(proposal.bad, generator))
        return strategy


class MakeWorld(Protocol):
    """Make a world; see `World`."""

    def __call__(
        self,
        count: int,
        fails: Callable[[frozenset[str]], bool],
        absent: float = 0.0,
        present: float = 1.0,
        realise: Callable[[frozenset[str]], Realised | None] | None = None,
    ) -> World: ...


@pytest.fixture(scope="session")
def world() -> MakeWorld:
    """Make a world."""
    return World
