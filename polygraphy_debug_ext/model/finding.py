"""What good and bad assignments, held against each other, say about the tactics."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.tactic import Field, Tactic


class Outcome(enum.Enum):
    """What the comparison came to; each but the first says why no tactic can be named."""

    SUSPECTS = "suspects"
    NO_BUILDS = "no builds"
    NO_BAD_BUILD = "no bad build"
    NO_GOOD_BUILD = "no good build"
    NOTHING_IN_COMMON = "no layer in common"
    NO_DIFFERENCE = "no difference"


class Strength(enum.Enum):
    """How much a suspect explains: every failure (strong) or only some of them (weak)."""

    STRONG = "strong"
    WEAK = "weak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A tactic of a layer that some bad build has and no good build has.

    `good_tactics` are the other tactics that good builds have at this layer; none if no good build has the layer.
    """

    layer: str
    tactic: Tactic
    bad_builds: int
    good_builds: int
    strength: Strength
    good_tactics: tuple[Tactic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer, with what it rests on.

    `variants` counts the records by the dialect of their format.
    `failure_rate_bound` is the highest failure rate (0 to 1) in line with seeing no failure, at 95 % confidence.
    `distinct_bad` counts the different assignments among the bad builds; `opaque_layers` are those whose choices the
    records cannot show; `not_compared` are the tensor properties that some record lacks.
    """

    outcome: Outcome
    good_builds: int
    bad_builds: int
    suspects: tuple[Suspect, ...] = ()
    failure_rate_bound: float | None = None
    distinct_bad: int = 0
    variants: tuple[tuple[str, int], ...] = ()
    opaque_layers: tuple[str, ...] = ()
    not_compared: frozenset[Field] = frozenset()
