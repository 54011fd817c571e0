"""From a table of builds to an answer: what is suspect, how likely it is at fault, and what can be concluded."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.analysis.bounds import failure_rate_bound
from polygraphy_debug_ext.analysis.decision import decide
from polygraphy_debug_ext.analysis.evidence import TENTATIVE, Rates
from polygraphy_debug_ext.analysis.forecast import further_builds, telling
from polygraphy_debug_ext.analysis.hypotheses import hypotheses
from polygraphy_debug_ext.analysis.posterior import posterior
from polygraphy_debug_ext.analysis.suspects import order, suspects
from polygraphy_debug_ext.analysis.table import ABSENT
from polygraphy_debug_ext.model.answer import Answer, Conclusion, Method, View

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.table import Table


def rank(
    table: Table,
    *,
    view: View = View.LAYER,
    method: Method = Method.POSTERIOR,
    confidence: float = 0.95,
    rates: Rates = TENTATIVE,
    unresolved: int = 0,
) -> Answer:
    """Say what the builds tell of the tactics.

    Args:
        table: What good and bad builds have.
        view: What a suspect is.
        method: What suspects are ordered by; the conclusion rests on probabilities whatever it is.
        confidence: The probability that a conclusion needs, between 0 and 1.
        rates: What is believed of failure rates.
        unresolved: Builds that were neither good nor bad: they are no evidence, but counted.

    Raises:
        ValueError: if `confidence` is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence {confidence} must be between 0 and 1")
    frame = _frame(table, confidence, unresolved)
    if frame.conclusion is not Conclusion.UNDECIDED:
        return frame
    found = hypotheses(table, view)
    weighed = posterior(found, table.bad, rates)
    decision = decide(found, weighed, confidence)
    everyone = suspects(table, found, weighed.fault)
    numbers, ranked = order(found, everyone, method)
    undecided = decision.conclusion is Conclusion.UNDECIDED
    return dataclasses.replace(
        frame,
        conclusion=decision.conclusion,
        probability=decision.probability,
        no_tactic=weighed.none,
        pairs=weighed.pairs,
        named=tuple(
            suspect
            for number, suspect in zip(numbers, ranked, strict=True)
            if found.class_of[number] in decision.classes
        ),
        pair_kind=decision.pair_kind,
        suspects=ranked,
        further_builds=further_builds(table, found, rates, confidence) if undecided else None,
        telling=telling(ranked, rates) if undecided else (),
    )


def _frame(table: Table, confidence: float, unresolved: int) -> Answer:
    """What is known without weighing anything; UNDECIDED if there is something to weigh."""
    codes, bad = table.codes, table.bad
    good_builds, bad_builds = int((~bad).sum()), int(bad.sum())
    varying = (codes != codes[:1]).any(axis=0) if len(codes) else np.zeros(len(table.layers), dtype=np.bool_)
    if not len(bad):
        conclusion = Conclusion.NO_BUILDS
    elif not bad_builds:
        conclusion = Conclusion.NO_BAD_BUILD
    elif not good_builds:
        conclusion = Conclusion.NO_GOOD_BUILD
    elif not ((codes[bad] != ABSENT).any(axis=0) & (codes[~bad] != ABSENT).any(axis=0)).any():
        conclusion = Conclusion.NOTHING_IN_COMMON
    else:
        conclusion = Conclusion.UNDECIDED
    return Answer(
        conclusion=conclusion,
        good_builds=good_builds,
        bad_builds=bad_builds,
        unresolved_builds=unresolved,
        confidence=confidence,
        failure_rate_bound=(
            failure_rate_bound(good_builds) if conclusion is Conclusion.NO_BAD_BUILD else None
        ),
        distinct_bad=len({row.tobytes() for row in codes[bad]}),
        layers=len(table.layers),
        varying_layers=int(varying.sum()),
        variants=table.variants,
        opaque_layers=table.opaque_layers,
        not_compared=table.not_compared,
    )
