"""What good and bad builds say about tactics: a conclusion with its probability, and the suspects it rests on.

- *Suspect*: a hypothesis: this tactic at this layer, or this kernel wherever it is used, makes builds fail.
- *class*: suspects that the same builds have, so that no look at these builds can tell them apart.
- *no tactic*: the hypothesis that failures have nothing to do with any single choice.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.tactic import Field, Tactic


class Conclusion(enum.Enum):
    """What the evidence comes to."""

    CULPRIT = "one tactic explains the failures"
    ALIKE = "several tactics explain the failures, and cannot be told apart"
    PAIR = "two tactics explain the failures together"
    NO_TACTIC = "no tactic explains the failures"
    UNDECIDED = "there is not enough evidence"
    NO_GOOD_BUILD = "there is no good build"
    NO_BAD_BUILD = "there is no bad build"
    NOTHING_IN_COMMON = "good and bad builds have no layer in common"
    NO_BUILDS = "there are no builds"


class View(enum.Enum):
    """What a suspect is: a tactic at one layer, or a kernel at all layers that use it."""

    LAYER = "layer"
    KERNEL = "kernel"


class Method(enum.Enum):
    """What suspects are ordered by: their probability, Polygraphy's rule, or a score of spectrum-based fault localization."""

    POSTERIOR = "posterior"
    DIFFERENCE = "difference"
    OCHIAI = "ochiai"
    DSTAR = "dstar"


class Rank(enum.Enum):
    """What Polygraphy's rule says: in every bad build and no good one (strong), in some bad builds and no good one (weak)."""

    STRONG = "strong"
    WEAK = "weak"
    NOT_SUSPECT = "not suspect"


class PairKind(enum.Enum):
    """How two tactics explain failures: each by itself, or only both together."""

    EITHER = "either of them"
    BOTH = "both together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Builds with and without a suspect, by verdict."""

    bad_with: int
    good_with: int
    bad_without: int
    good_without: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A hypothesis, and how well it explains the failures.

    `view` says what it is: in the layer view, kernels that several layers use are suspects as well. `layers` are those where it is (of a
    kernel all that some build has it at), `tactic` one of its tactics. `probability` (0 to 1) is that it makes builds fail, alone or with
    one other; its class shares it equally. `group` is the number of its class, from 0 in the order of the ranking. `ochiai` (0 to 1) and `dstar` (D*², may be infinite) are scores of spectrum-based fault localization.
    `alternatives` are other tactics that good builds have there, those of most good builds first.
    """

    view: View
    layers: tuple[str, ...]
    tactic: Tactic
    counts: Counts
    probability: float
    group: int
    rank: Rank
    ochiai: float
    dstar: float
    alternatives: tuple[Tactic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where the builds come from, as far as the records say: what they share (key to value)."""

    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What can be decided from a set of builds.

    `suspects` are ranked, most telling first: all that some builds have and some have not. `named` are those that the conclusion
    names (the culprit, the members of a class, the pair). `probability` is that of the conclusion, `no_tactic` that of "no tactic
    explains it", `pairs` that of two tactics being at fault together, `confidence` what a conclusion needed; each 0 to 1. The probabilities
    of all suspects and `no_tactic` come to 1, `pairs` counted twice. `further_builds` is how many more builds are expected to be needed for one (None: not known).
    `telling` are the suspects whose presence in the next builds would tell most. `failure_rate_bound` is the highest failure rate
    in line with seeing no failure. `distinct_bad` counts the different assignments among the bad builds. `opaque_layers` are
    those whose choices the records cannot show, `not_compared` the tensor properties that some records lack,
    `variants` the number of records by dialect.
    """

    conclusion: Conclusion
    good_builds: int
    bad_builds: int
    unresolved_builds: int = 0
    confidence: float = 0.95
    probability: float | None = None
    no_tactic: float | None = None
    pairs: float | None = None
    named: tuple[Suspect, ...] = ()
    pair_kind: PairKind | None = None
    suspects: tuple[Suspect, ...] = ()
    further_builds: int | None = None
    telling: tuple[Suspect, ...] = ()
    failure_rate_bound: float | None = None
    distinct_bad: int = 0
    layers: int = 0
    varying_layers: int = 0
    variants: tuple[tuple[str, int], ...] = ()
    opaque_layers: tuple[str, ...] = ()
    not_compared: frozenset[Field] = frozenset()
    environment: Environment = Environment()
