"""What a search over factors has come to: the culprits with the builds that prove them, or why there is none.

- *factor*: a named thing with a good and a bad value, like the tactic of a layer. The *good end* is the build in which all
  factors have their good value, the *bad end* the one in which all have their bad value.
- *class*: factors that could not be forced one without the other, so that they stand trial together.
- *inside*: builds that have the culprit alone; *outside*: builds that have everything but the culprit.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Outcome(enum.Enum):
    """How a search ended; the value is a sentence for people."""

    CONFIRMED = "the culprit alone makes builds fail, and without it they pass"
    SUFFICIENT_ONLY = "the culprit alone makes builds fail, but without it they fail too: another one remains"
    NEEDS_PARTNER = (
        "without the culprit builds pass, but it fails only together with others, which were not found"
    )
    NOT_CONFIRMED = "the suspect was not confirmed by builds that have it alone and builds that lack it alone"
    NO_FACTOR = "no factor explains the failures: they do not depend on what differs between the ends"
    BAD_END_PASSES = "no factor explains the failures: the bad end does not fail"
    GOOD_END_FAILS = "no factor explains the failures: the good end fails as well"
    INCONCLUSIVE = "the search ended before the evidence was enough"

    @property
    def names_culprit(self) -> bool:
        """Whether something was proved about a culprit."""
        return self in {Outcome.CONFIRMED, Outcome.SUFFICIENT_ONLY, Outcome.NEEDS_PARTNER}

    @property
    def acquits_all(self) -> bool:
        """Whether it says that no factor is at fault."""
        return self in {Outcome.NO_FACTOR, Outcome.BAD_END_PASSES, Outcome.GOOD_END_FAILS}


class Phase(enum.Enum):
    """What a search is doing; the value is for people."""

    ENDS = "proving the ends"
    SEARCH = "searching"
    CONFIRMATION = "confirming"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Builds of one kind: how many failed their check, how many passed it."""

    fails: int = 0
    passes: int = 0

    @property
    def builds(self) -> int:
        """All of them."""
        return self.fails + self.passes

    def __str__(self) -> str:
        """Like `3/4`: failed ones of all."""
        return f"{self.fails}/{self.builds}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """What makes builds fail.

    `members` must all be there for a failure: one, or a minimal set. Each is a class of factors, mostly of one.
    `inside` and `outside` are the two arms of its confirmation; `lacking` has, for a set, the builds of the set without one
    member each, in the order of `members`. `probability` is the posterior with which the search named it.
    """

    members: tuple[tuple[str, ...], ...]
    probability: float
    verdict: Outcome
    inside: Arm
    outside: Arm
    lacking: tuple[Arm, ...] = ()

    @property
    def factors(self) -> frozenset[str]:
        """The names in it."""
        return frozenset(name for member in self.members for name in member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A class of factors that may be to blame, with its posterior probability."""

    factors: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The builds of both ends."""

    bad: Arm = Arm()
    good: Arm = Arm()


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """What a search came to, or has come to so far.

    `rest` are the builds that have everything bad but the named culprits; `ranked` is what is still suspect, likeliest first,
    and `none` the probability that nothing is. `unforceable` factors had one value in all builds, whatever was asked;
    `classes` are factors that only moved together. `present_rate` and `absent_rate` are the failure rates that were learned.
    """

    outcome: Outcome
    culprits: tuple[Culprit, ...] = ()
    ends: Ends = Ends()
    rest: Arm | None = None
    ranked: tuple[Ranked, ...] = ()
    none: float = 0.0
    unforceable: tuple[str, ...] = ()
    classes: tuple[tuple[str, ...], ...] = ()
    builds: int = 0
    unresolved: int = 0
    present_rate: float | None = None
    absent_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where a search is: `candidates` share 99 % of the probability, `expected` is the number of builds in all."""

    phase: Phase
    candidates: int
    builds: int
    expected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPhase:
    """Builds that a phase is expected to take: with a check that never errs, and with one that errs one time in ten."""

    phase: Phase
    steady: float
    noisy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a search over so many factors will do."""

    factors: int
    phases: tuple[PlannedPhase, ...]
    max_builds: int

    @property
    def steady(self) -> float:
        """Builds expected in all, with a check that never errs."""
        return sum(phase.steady for phase in self.phases)

    @property
    def noisy(self) -> float:
        """Builds expected in all, with a check that errs one time in ten."""
        return sum(phase.noisy for phase in self.phases)
