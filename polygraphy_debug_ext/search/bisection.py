"""Bisection under noise: finds the factors that make builds fail, by builds with chosen factors at their bad value.

1. It proves the ends: all factors bad fails, all good passes.
2. It searches by the test that is expected to tell most (`choice`), with failure rates learned on the way (`hypotheses`).
3. It confirms a suspect by fresh builds that have it alone, and that have all but it.
4. A suspect that fails only together with others is fixed to bad, and the search goes on for its partner; one besides which
   something else fails is fixed to good, and the search goes on for the next.

Everything is computed anew from the builds seen: the same builds in the same order give the same next proposal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.model import Proposal, StopReason
from polygraphy_debug_ext.model.isolation import (
    Culprit,
    Ends,
    Isolation,
    Outcome,
    Phase,
    Plan,
    Progress,
    Ranked,
)
from polygraphy_debug_ext.search import planning
from polygraphy_debug_ext.search.casebook import Casebook
from polygraphy_debug_ext.search.choice import Choice, arms, best_arm, choose
from polygraphy_debug_ext.search.hypotheses import Posterior, posterior
from polygraphy_debug_ext.search.necessity import MinimalSet, sequential
from polygraphy_debug_ext.search.rows import Level
from polygraphy_debug_ext.search.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from polygraphy_debug_ext.model import Trial
    from polygraphy_debug_ext.search.rows import Unit

    Flags = NDArray[np.bool_]

#: The search goes on behind the ends once it is that improbable that no factor is at fault.
_ENDS_PROVED: Final = 0.05
#: No factor is at fault if that is so probable.
_NONE: Final = 0.875
#: An arm that comes to nothing so often in a row cannot be built; nor can an end.
_ATTEMPTS: Final = 4
#: A test that is expected to tell less (nats) is not worth a build.
_NOTHING: Final = 1e-6
#: The part of the doubt that is allowed of a named unit (one minus the confidence) that may be left on how it acts.
_SLIGHT: Final = 0.2
#: That sure must builds with a single culprit alone be, by themselves.
_BORNE_OUT: Final = 0.9
#: Failure rates with and without a culprit, before anything is known.
_GUESS: Final = (0.9, 0.1)
#: How many suspects are listed.
_LISTED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """What to build next: flags of factors, what for, and whether as an arm of a confirmation."""

    bad: Flags
    phase: Phase
    purpose: str
    fresh: bool = False


class Bisection:
    """A strategy: proposes which factors to make bad, and is told what came of it.

    Args:
        factors: Their names, which must differ.
        settings: How to search.

    Raises:
        ValueError: if there is no factor, or a name comes twice.
    """

    def __init__(self, factors: Sequence[str], settings: Settings | None = None) -> None:
        self._settings = settings or Settings()
        self._book = Casebook(factors, self._settings.innocent)
        self._names = self._book.names
        count = len(self._names)
        self._order = np.random.default_rng(self._settings.seed).permutation(count)
        self._weights = np.array([self._settings.weights.get(name, 1.0) for name in self._names])
        self._none = np.zeros(count, dtype=np.bool_)
        self._culprits: tuple[Culprit, ...] = ()
        self._level = Level(units=self._units(range(count)))
        self._set: MinimalSet | None = None
        self._ends_proved = False
        self._posterior: Posterior | None = None
        self._outcome: Outcome | None = None
        self._next: _Next | None = None
        self._think()

    @property
    def stop(self) -> StopReason:
        """Why it is over."""
        return StopReason.SEARCH_DONE

    def propose(self) -> Proposal | None:
        """Return the next build, the same until it was recorded; None when the search is over."""
        if self._next is None:
            return None
        return Proposal(bad=frozenset(self._book.named(self._next.bad)), purpose=self._next.purpose)

    def record(self, proposal: Proposal, trial: Trial) -> None:
        """Take in what came of a build.

        What counts is what the build really has. A trial with a verdict that does not say what it has (a build that failed,
        where that counts as bad) counts as what was asked for; a free build, or an interrupted one, does not count.
        """
        if proposal.bad is None or trial.interrupted:
            return
        asked = self._book.flags(proposal.bad)
        fresh = self._next is not None and self._next.fresh and np.array_equal(self._next.bad, asked)
        self._book.add(asked, trial, fresh=fresh)
        if self._outcome is None:
            self._think()

    def result(self) -> Isolation:
        """Return what the search came to; while it runs, what it has come to so far, as INCONCLUSIVE."""
        rates = self._rates()
        removed = self._removed()
        rest = self._book.arm(~self._book.flagged(removed)) if removed else None
        return Isolation(
            outcome=self._outcome or Outcome.INCONCLUSIVE,
            culprits=self._culprits,
            ends=Ends(bad=self._book.arm(~self._none), good=self._book.arm(self._none)),
            rest=rest,
            ranked=self._ranked(),
            none=self._posterior.none if self._posterior else 0.0,
            unforceable=self._book.named(self._book.stuck),
            classes=tuple(self._book.unit_names(group) for group in self._book.forcing.classes()),
            builds=self._book.builds,
            unresolved=self._book.builds - len(self._book.usable()[1]),
            present_rate=rates[0] if rates else None,
            absent_rate=rates[1] if rates else None,
        )

    def progress(self) -> Progress:
        """Return where the search is."""
        builds = self._book.builds
        phase = Phase.DONE if self._next is None else self._next.phase
        if self._posterior is None:
            return Progress(
                phase=phase,
                candidates=len(self._names),
                builds=builds,
                expected=round(self.plan().steady),
            )
        left = 0 if self._next is None else planning.builds_left(self._posterior, self._rates())
        share = np.sort(self._posterior.units)[::-1].cumsum()
        candidates = int((share < 0.99 * share[-1]).sum()) + 1
        return Progress(phase=phase, candidates=candidates, builds=builds, expected=builds + left)

    def plan(self) -> Plan:
        """Return what the whole search is expected to take."""
        return planning.plan(len(self._names), self._settings.max_builds)

    # The steps of the search.

    def _think(self) -> None:
        """Find the next build, or the outcome."""
        self._next = None
        while self._outcome is None and self._next is None:
            if self._book.builds >= self._settings.max_builds:
                self._outcome = Outcome.INCONCLUSIVE
            elif self._set is not None:
                self._next = self._prove_set(self._set)
            else:
                self._next = self._search()

    def _search(self) -> _Next | None:
        """Return the next build of the level; None if the level, or the whole search, is over."""
        self._level = replace(self._level, units=self._book.merged(self._level.units))
        if not self._level.units:
            self._end_without_suspect()
            return None
        self._posterior = now = self._posterior_of(self._level)
        if now.none >= _NONE:
            self._end_without_suspect()
            return None
        if not self._ends_proved:
            end = self._prove_ends(now)
            if end is not None or self._outcome is not None:
                return end
            self._ends_proved = True
        choice = self._settle(now)
        if choice is not None and choice.information < _NOTHING:
            self._outcome = Outcome.INCONCLUSIVE
        if choice is None or self._outcome is not None:
            return None
        bad = self._level.factors(len(self._names), choice.build)
        return self._mixture(bad, Phase.CONFIRMATION if choice.arm else Phase.SEARCH)

    def _mixture(self, bad: Flags, phase: Phase) -> _Next:
        purpose = self._book.purpose(self._book.flagged(self._removed()), bad, phase)
        return _Next(bad=bad, phase=phase, purpose=purpose, fresh=phase is Phase.CONFIRMATION)

    def _prove_ends(self, now: Posterior) -> _Next | None:
        """Return a build of an end; None once both are proved."""
        bad, good = self._book.arm(~self._none), self._book.arm(self._none)
        if bad.fails and good.passes and now.none <= _ENDS_PROVED:
            return None
        broken_bad, broken_good = (
            self._book.refusals(each) >= _ATTEMPTS for each in (~self._none, self._none)
        )
        if broken_bad and broken_good:
            self._outcome = Outcome.INCONCLUSIVE
            return None
        if broken_bad or broken_good:
            take_bad = broken_good
        elif not (bad.builds and good.builds):
            take_bad = self._book.tried(~self._none) <= self._book.tried(self._none)
        else:
            take_bad = self._tells_more(now)
        if take_bad:
            return _Next(bad=~self._none, phase=Phase.ENDS, purpose="the bad end: all factors are bad")
        return _Next(bad=self._none, phase=Phase.ENDS, purpose="the good end: all factors are good")

    def _tells_more(self, now: Posterior) -> bool:
        """Say whether a build of the bad end tells more than one of the good end, which must pass once."""
        if not self._book.arm(self._none).passes:
            return False
        everything = np.ones(len(self._level.units), dtype=np.bool_)
        return now.information(everything) >= now.information(~everything)

    def _settle(self, now: Posterior) -> Choice | None:
        """Return the next test; None if the turning unit of the level is known, and what follows was done."""
        units, terrain = now.units, self._book.terrain(self._level)
        top = int(units.argmax())
        if units[top] < self._settings.confidence:
            return choose(now, terrain, np.random.default_rng([self._settings.seed, self._book.builds]))
        both = arms(top, len(units))
        wanted = both[:1] if self._level.fixed else both
        for build in wanted:
            asked = self._level.factors(len(self._names), build)
            if self._book.arm(asked, fresh=True).builds == 0:
                if self._book.refusals(asked) >= _ATTEMPTS:
                    self._give_up(top, now)
                    return None
                return Choice(build=build, information=1.0, arm=True)
        if self._conclude(top, now):
            return None
        if self._borne_out(top) or self._level.fixed:
            return best_arm(now, terrain, top)
        return Choice(build=both[0], information=1.0, arm=True)

    def _conclude(self, top: int, now: Posterior) -> bool:
        """Take the step that the kind of the turning unit asks for; say whether it is known."""
        single, partner, other, both = (now.weights[:, top] / now.units[top]).tolist()
        doubt = 1 - self._settings.confidence
        slight = _SLIGHT * doubt
        unit, level = self._level.units[top], self._level
        if single + other <= slight:
            self._level = replace(level, fixed=(*level.fixed, unit), units=level.units[:top])
        elif partner + both > slight:
            return False
        elif level.fixed:
            members = (*level.fixed, unit)
            self._set = MinimalSet(members=members, probability=float(now.units[top]))
        elif self._borne_out(top) and (other <= doubt or single <= slight):
            verdict = Outcome.CONFIRMED if single > other else Outcome.SUFFICIENT_ONLY
            self._found(self._culprit((unit,), float(now.units[top]), verdict))
        else:
            return False
        return True

    def _borne_out(self, top: int) -> bool:
        """Say whether the builds with a unit alone speak against it by themselves: a prior must not do that alone."""
        alone = self._level.factors(len(self._names), arms(top, len(self._level.units))[0])
        (fails,) = sequential([self._book.arm(alone)], self._rates() or _GUESS, _BORNE_OUT)
        return fails is True

    def _prove_set(self, suspect: MinimalSet) -> _Next | None:
        """Return the next build that the proof of a set needs; None once it is proved, or disproved."""
        rates = self._rates() or _GUESS
        builds = self._set_builds(suspect)
        verdicts = sequential([self._book.arm(asked) for asked in builds], rates, self._settings.confidence)
        for asked, verdict in zip(builds, verdicts, strict=True):
            if verdict is None or not self._book.arm(asked, fresh=True).builds:
                if self._book.refusals(asked) >= _ATTEMPTS:
                    self._culprits += (
                        self._culprit(suspect.members, suspect.probability, Outcome.NOT_CONFIRMED),
                    )
                    self._outcome = Outcome.NOT_CONFIRMED
                    return None
                return self._mixture(asked, Phase.CONFIRMATION)
        inside, outside, *lacking = verdicts
        if any(lacking):
            # A smaller set fails as well: go on with that.
            drop = lacking.index(True)
            members = tuple(unit for place, unit in enumerate(suspect.members) if place != drop)
            self._set = replace(suspect, members=members)
            return None
        self._set = None
        proved = Outcome.SUFFICIENT_ONLY if outside else Outcome.CONFIRMED
        proved = proved if inside else Outcome.NOT_CONFIRMED
        self._found(self._culprit(suspect.members, suspect.probability, proved))
        return None

    def _found(self, culprit: Culprit) -> None:
        """Keep a culprit; end the search, or go on for the next one."""
        self._culprits += (culprit,)
        if culprit.verdict is not Outcome.SUFFICIENT_ONLY:
            self._outcome = culprit.verdict
            return
        removed = self._removed()
        rest = [index for index in range(len(self._names)) if index not in removed]
        self._level = Level(units=self._units(rest), removed=removed)

    def _give_up(self, top: int, now: Posterior) -> None:
        members = (*self._level.fixed, self._level.units[top])
        self._culprits += (self._culprit(members, float(now.units[top]), Outcome.NOT_CONFIRMED),)
        self._outcome = Outcome.NOT_CONFIRMED

    def _end_without_suspect(self) -> None:
        """End the search where nothing (more) depends on the factors."""
        if self._level.fixed:
            self._culprits += (self._culprit(self._level.fixed, 0.0, Outcome.NEEDS_PARTNER),)
            self._outcome = Outcome.NEEDS_PARTNER
        elif self._culprits:
            rest = self._book.arm(~self._book.flagged(self._removed()))
            fails = 2 * rest.fails > rest.builds
            self._outcome = Outcome.SUFFICIENT_ONLY if fails else Outcome.CONFIRMED
        elif not self._book.arm(~self._none).fails:
            self._outcome = Outcome.BAD_END_PASSES
        elif not self._book.arm(self._none).passes:
            self._outcome = Outcome.GOOD_END_FAILS
        else:
            self._outcome = Outcome.NO_FACTOR

    def _posterior_of(self, level: Level) -> Posterior:
        bad, failed = self._book.usable()
        kept, units = level.view(bad, self._book.stuck)
        first = [unit[0] for unit in level.units]
        return posterior(units, failed[kept], self._weights[first], self._settings.rates)

    def _rates(self) -> tuple[float, float] | None:
        return None if self._posterior is None else self._posterior.rates

    def _culprit(self, members: tuple[Unit, ...], probability: float, verdict: Outcome) -> Culprit:
        builds = self._set_builds(MinimalSet(members=members, probability=probability))
        inside, outside, *lacking = (self._book.arm(asked) for asked in builds)
        return Culprit(
            members=tuple(self._book.unit_names(unit) for unit in members),
            probability=probability,
            verdict=verdict,
            inside=inside,
            outside=outside,
            lacking=tuple(lacking),
        )

    def _set_builds(self, suspect: MinimalSet) -> list[Flags]:
        everything = frozenset(range(len(self._names))) - self._removed()
        return [self._book.flagged(each) for each in suspect.builds(everything)]

    def _removed(self) -> frozenset[int]:
        return frozenset().union(*(self._book.numbers(culprit.factors) for culprit in self._culprits))

    def _ranked(self) -> tuple[Ranked, ...]:
        if self._posterior is None or len(self._posterior.units) != len(self._level.units):
            return ()
        units = self._posterior.units
        return tuple(
            Ranked(factors=self._book.unit_names(self._level.units[place]), probability=float(units[place]))
            for place in np.lexsort((np.arange(len(units)), -units))[:_LISTED]
        )

    def _units(self, factors: Sequence[int] | range) -> tuple[Unit, ...]:
        wanted = set(factors)
        return tuple((int(index),) for index in self._order if int(index) in wanted)
