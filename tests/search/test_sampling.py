"""Sampling proposes as many builds as `--until` asks for."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.model import Judgement, Proposal, Reason, Trial, Verdict
from polygraphy_debug_ext.search.sampling import Sampling


def judged(verdict: Verdict) -> Trial:
    return Trial(index=0, judgement=Judgement(verdict=verdict, reason=Reason.CHECK_EXIT_CODE), seconds=1.0)


def trials(until: int | Verdict, verdicts: list[Verdict]) -> int:
    """How many builds are proposed, if they are judged so."""
    strategy = Sampling(until)
    for done, verdict in enumerate(verdicts):
        proposal = strategy.propose()
        if proposal is None:
            return done
        strategy.record(proposal, judged(verdict))
    return len(verdicts)


GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED


@pytest.mark.parametrize("until", [1, 2, 5])
def test_a_number_counts_all_verdicts(until: int) -> None:
    assert trials(until, [GOOD, BAD, UNRESOLVED, UNRESOLVED, BAD, GOOD]) == until


@pytest.mark.parametrize("until", [0, -3])
def test_there_is_at_least_one_build_as_in_polygraphy(until: int) -> None:
    assert trials(until, [BAD, BAD]) == 1


def test_until_good_ends_with_the_first_good_build() -> None:
    assert trials(GOOD, [BAD, UNRESOLVED, GOOD, GOOD]) == 3


def test_until_bad_ends_with_the_first_bad_build_and_not_with_an_unresolved_one() -> None:
    assert trials(BAD, [UNRESOLVED, GOOD, BAD, BAD]) == 3


def test_a_proposal_without_a_verdict_is_made_again() -> None:
    strategy = Sampling(1)
    assert strategy.propose() == strategy.propose() == Proposal()
    strategy.record(Proposal(), judged(GOOD))
    assert strategy.propose() is None
