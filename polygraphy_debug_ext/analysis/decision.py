"""What can be concluded from probabilities, at a confidence that was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.model.answer import Conclusion, PairKind

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.hypotheses import Hypotheses
    from polygraphy_debug_ext.analysis.posterior import Posterior


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A conclusion, the classes that it names, and its probability (of the likeliest one where nothing is decided)."""

    conclusion: Conclusion
    probability: float
    classes: frozenset[int] = frozenset()
    pair_kind: PairKind | None = None


def decide(found: Hypotheses, weighed: Posterior, confidence: float) -> Decision:
    """Conclude that two are at fault, else that one class is, else that none is; or nothing."""
    best, sizes = weighed.best, found.class_sizes
    if best is not None and best.probability >= confidence and (sizes[list(best.classes)] == 1).all():
        return Decision(
            conclusion=Conclusion.PAIR,
            probability=best.probability,
            classes=frozenset(best.classes),
            pair_kind=best.kind,
        )
    likeliest = int(np.argmax(weighed.fault)) if len(weighed.fault) else None
    # Probabilities of a sum may exceed 1 by a rounding error.
    fault = 0.0 if likeliest is None else min(float(weighed.fault[likeliest]), 1.0)
    if likeliest is not None and fault >= confidence:
        return Decision(
            conclusion=Conclusion.CULPRIT if sizes[likeliest] == 1 else Conclusion.ALIKE,
            probability=fault,
            classes=frozenset({likeliest}),
        )
    if weighed.none >= confidence:
        return Decision(conclusion=Conclusion.NO_TACTIC, probability=weighed.none)
    return Decision(conclusion=Conclusion.UNDECIDED, probability=max(fault, weighed.none))
