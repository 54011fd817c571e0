"""Bisection names the planted culprit, and proves it; what nothing was learned from moves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from polygraphy_debug_ext.model import Judgement, Proposal, Realised, Reason, StopReason, Trial, Verdict
from polygraphy_debug_ext.model.isolation import Outcome, Phase
from polygraphy_debug_ext.search.belief import JEFFREYS
from polygraphy_debug_ext.search.bisection import Bisection
from polygraphy_debug_ext.search.settings import Settings

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.isolation import Isolation
    from tests.search.conftest import MakeWorld


def named(result: Isolation) -> list[set[str]]:
    """The factors of each culprit."""
    return [set(culprit.factors) for culprit in result.culprits]


@pytest.mark.parametrize("culprit", ["f0", "f31", "f63"])
def test_a_check_that_never_errs_takes_a_dozen_builds(world: MakeWorld, culprit: str) -> None:
    result = world(64, lambda bad: culprit in bad).search(Settings(seed=3)).result()
    assert result.outcome is Outcome.CONFIRMED
    (found,) = result.culprits
    assert found.members == ((culprit,),)
    assert result.builds <= 14
    assert found.inside.fails == found.inside.builds >= 1
    assert found.outside.passes == found.outside.builds >= 1


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_few_factors_are_searched_as_well(world: MakeWorld, count: int) -> None:
    result = world(count, lambda bad: "f0" in bad).search(Settings()).result()
    assert result.outcome is Outcome.CONFIRMED
    assert named(result) == [{"f0"}]


def test_many_factors_take_a_logarithm_of_builds(world: MakeWorld) -> None:
    builds = [
        world(276, lambda bad, seed=seed: f"f{seed}" in bad).search(Settings(seed=seed)).result().builds  # type: ignore[misc]
        for seed in range(20)
    ]
    assert np.mean(builds) <= 13.5
    assert max(builds) <= 16


def test_a_check_that_errs_costs_more_builds_and_is_not_believed_too_soon(world: MakeWorld) -> None:
    results = [
        world(64, lambda bad, seed=seed: f"f{seed}" in bad, absent=0.1, present=0.9)  # type: ignore[misc]
        .search(Settings(seed=seed))
        .result()
        for seed in range(40)
    ]
    right = [named(result) == [{f"f{seed}"}] for seed, result in enumerate(results)]
    assert sum(right) >= 39
    assert np.mean([result.builds for result in results]) <= 26


def test_a_culprit_that_shows_half_the_time_is_found(world: MakeWorld) -> None:
    results = [
        world(32, lambda bad, seed=seed: f"f{seed}" in bad, present=0.5).search(Settings(seed=seed)).result()  # type: ignore[misc]
        for seed in range(20)
    ]
    assert sum(named(result) == [{f"f{seed}"}] for seed, result in enumerate(results)) >= 18


def test_no_culprit_is_said_to_be_none(world: MakeWorld) -> None:
    results = [
        world(64, lambda _: False, absent=0.1).search(Settings(seed=seed, max_builds=60)).result()
        for seed in range(40)
    ]
    assert sum(result.outcome.acquits_all and result.builds <= 30 for result in results) >= 38
    assert not any(result.outcome is Outcome.CONFIRMED for result in results)


def test_a_bad_end_that_passes_is_a_result_of_its_own(world: MakeWorld) -> None:
    result = world(16, lambda _: False).search(Settings()).result()
    assert result.outcome is Outcome.BAD_END_PASSES
    assert result.ends.bad.fails == 0
    assert result.ends.bad.passes >= 2
    assert not result.culprits


def test_a_good_end_that_fails_is_a_result_of_its_own(world: MakeWorld) -> None:
    result = world(16, lambda _: True).search(Settings()).result()
    assert result.outcome is Outcome.GOOD_END_FAILS
    assert result.ends.good.passes == 0
    assert not result.culprits


@pytest.mark.parametrize("seed", range(4))
def test_tactics_that_fail_only_together_are_found_as_a_set_of_which_each_is_necessary(
    world: MakeWorld, seed: int
) -> None:
    wanted = {"f3", "f17"}
    result = world(32, lambda bad: wanted <= bad).search(Settings(seed=seed)).result()
    assert result.outcome is Outcome.CONFIRMED
    (culprit,) = result.culprits
    assert set(culprit.factors) == wanted
    assert len(culprit.members) == 2
    assert culprit.inside.fails == culprit.inside.builds >= 1
    assert [arm.fails for arm in culprit.lacking] == [0, 0]
    assert all(arm.passes for arm in culprit.lacking)


def test_tactics_that_fail_only_together_are_not_taken_for_noise_nor_noise_for_them(world: MakeWorld) -> None:
    right = 0
    for seed in range(12):
        result = world(64, lambda bad: {"f3", "f17"} <= bad, 0.05, 0.95).search(Settings(seed=seed)).result()
        found = {name for culprit in result.culprits for name in culprit.factors}
        if result.outcome is Outcome.CONFIRMED:
            assert found == {"f3", "f17"}
            right += 1
        else:
            assert result.outcome in {Outcome.INCONCLUSIVE, Outcome.NOT_CONFIRMED, Outcome.NEEDS_PARTNER}
    assert right >= 11


@pytest.mark.parametrize("seed", range(4))
def test_two_culprits_that_fail_by_themselves_are_found_one_after_the_other(
    world: MakeWorld, seed: int
) -> None:
    wanted = {"f3", "f17"}
    result = world(32, lambda bad: bool(wanted & bad)).search(Settings(seed=seed)).result()
    assert result.outcome is Outcome.CONFIRMED
    assert set().union(*named(result)) == wanted
    assert len(result.culprits) == 2
    assert result.rest is not None
    assert result.rest.passes


def test_factors_that_only_move_together_are_one_suspect(world: MakeWorld) -> None:
    def together(bad: frozenset[str]) -> Realised:
        return Realised(bad=bad | {"f5", "f6"} if bad & {"f5", "f6"} else bad)

    result = world(16, lambda bad: "f5" in bad, realise=together).search(Settings()).result()
    assert result.outcome is Outcome.CONFIRMED
    assert named(result) == [{"f5", "f6"}]


def test_a_factor_that_cannot_be_forced_does_not_stop_the_search(world: MakeWorld) -> None:
    def stuck(bad: frozenset[str]) -> Realised:
        return Realised(bad=bad - {"f2"})

    result = world(16, lambda bad: "f9" in bad, realise=stuck).search(Settings()).result()
    assert result.outcome is Outcome.CONFIRMED
    assert named(result) == [{"f9"}]


def test_builds_that_are_refused_are_routed_round(world: MakeWorld) -> None:
    def refused(bad: frozenset[str]) -> Realised | None:
        # Half of all mixtures of these two cannot be built.
        return None if len(bad & {"f1", "f2"}) == 1 and len(bad) % 2 else Realised(bad=bad)

    result = world(16, lambda bad: "f9" in bad, realise=refused).search(Settings()).result()
    assert result.outcome is Outcome.CONFIRMED
    assert named(result) == [{"f9"}]


def test_a_search_in_which_nothing_can_be_built_ends(world: MakeWorld) -> None:
    result = (
        world(8, lambda bad: "f1" in bad, realise=lambda _: None).search(Settings(max_builds=30)).result()
    )
    assert result.outcome is Outcome.INCONCLUSIVE
    assert result.unresolved == result.builds <= 30
    assert not result.culprits


def test_the_number_of_builds_is_kept(world: MakeWorld) -> None:
    result = (
        world(64, lambda bad: "f9" in bad, absent=0.3, present=0.7).search(Settings(max_builds=12)).result()
    )
    assert result.builds <= 12
    assert result.outcome in {Outcome.INCONCLUSIVE, *(each for each in Outcome if each.acquits_all)}


def test_one_wrong_answer_does_not_lose_the_culprit(world: MakeWorld) -> None:
    for wrong in range(8):
        here = world(32, lambda bad: "f9" in bad)
        strategy = Bisection(here.names, Settings(seed=1))
        generator = np.random.default_rng(0)
        while (proposal := strategy.propose()) is not None:
            assert proposal.bad is not None
            trial = here.answer(proposal.bad, generator)
            if trial.index == wrong:
                other = Verdict.GOOD if trial.verdict is Verdict.BAD else Verdict.BAD
                judgement = Judgement(verdict=other, reason=Reason.CHECK_EXIT_CODE)
                trial = Trial(index=trial.index, judgement=judgement, seconds=1.0, realised=trial.realised)
            strategy.record(proposal, trial)
        assert named(strategy.result()) == [{"f9"}], wrong


def test_the_same_proposal_is_made_until_it_was_recorded() -> None:
    strategy = Bisection(["a", "b", "c"])
    assert strategy.propose() == strategy.propose()


def test_an_interrupted_trial_teaches_nothing() -> None:
    strategy = Bisection(["a", "b", "c"])
    proposal = strategy.propose()
    assert proposal is not None
    judgement = Judgement(verdict=Verdict.UNRESOLVED, reason=Reason.INTERRUPTED)
    strategy.record(proposal, Trial(index=0, judgement=judgement, seconds=1.0))
    assert strategy.propose() == proposal
    assert strategy.progress().builds == 0


def test_an_unresolved_trial_moves_no_probability(world: MakeWorld) -> None:
    here = world(16, lambda bad: "f9" in bad)
    strategy = Bisection(here.names, Settings(seed=2))
    generator = np.random.default_rng(0)
    for _ in range(4):
        proposal = strategy.propose()
        assert proposal is not None
        assert proposal.bad is not None
        strategy.record(proposal, here.answer(proposal.bad, generator))
    before = strategy.result()
    proposal = strategy.propose()
    assert proposal is not None
    judgement = Judgement(verdict=Verdict.UNRESOLVED, reason=Reason.BUILD_CRASH)
    strategy.record(proposal, Trial(index=4, judgement=judgement, seconds=1.0))
    after = strategy.result()
    assert after.ranked == before.ranked
    assert after.none == before.none
    assert after.unresolved == before.unresolved + 1


def test_a_search_goes_on_from_its_trials_as_if_it_had_never_stopped(world: MakeWorld) -> None:
    here = world(64, lambda bad: "f9" in bad, absent=0.05, present=0.95)
    whole = here.search(Settings(seed=5))
    again = Bisection(here.names, Settings(seed=5))
    for asked, trial in here.trials:
        proposal = again.propose()
        assert proposal is not None
        assert proposal.bad == asked
        again.record(proposal, trial)
    assert again.propose() is None
    assert again.result() == whole.result()


def test_the_order_in_which_factors_are_named_does_not_matter(world: MakeWorld) -> None:
    here = world(32, lambda bad: "f9" in bad)
    forwards = Bisection(here.names, Settings(seed=1))
    backwards = Bisection(here.names[::-1], Settings(seed=1))
    generator = np.random.default_rng(0)
    while (proposal := forwards.propose()) is not None:
        assert backwards.propose() == proposal
        assert proposal.bad is not None
        trial = here.answer(proposal.bad, generator)
        forwards.record(proposal, trial)
        backwards.record(proposal, trial)
    assert backwards.result() == forwards.result()


def test_a_suspicion_beforehand_saves_builds(world: MakeWorld) -> None:
    def builds(weights: dict[str, float]) -> float:
        runs = [
            world(256, lambda bad: "f9" in bad).search(Settings(seed=seed, weights=weights)).result().builds
            for seed in range(6)
        ]
        return float(np.mean(runs))

    assert builds({"f9": 500.0}) < builds({}) - 1


def test_jeffreys_prior_finds_it_too(world: MakeWorld) -> None:
    result = world(32, lambda bad: "f9" in bad).search(Settings(rates=JEFFREYS)).result()
    assert named(result) == [{"f9"}]


def test_progress_counts_down_and_the_plan_is_near_what_it_takes(world: MakeWorld) -> None:
    here = world(64, lambda bad: "f9" in bad)
    strategy = Bisection(here.names, Settings(seed=3))
    planned = strategy.plan()
    assert planned.factors == 64
    assert strategy.progress().phase is Phase.ENDS
    done = here.search(Settings(seed=3))
    assert done.progress().phase is Phase.DONE
    assert done.progress().candidates == 1
    assert done.stop is StopReason.SEARCH_DONE
    assert abs(done.result().builds - planned.steady) <= 3
    assert planned.noisy > planned.steady


@pytest.mark.parametrize("factors", [[], ["a", "a"]])
def test_factors_must_be_there_and_differ(factors: list[str]) -> None:
    with pytest.raises(ValueError, match="factor"):
        Bisection(factors)


@pytest.mark.parametrize(
    "settings", [{"confidence": 0.5}, {"confidence": 1.0}, {"max_builds": 0}, {"weights": {"a": 0.0}}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Settings(**settings)  # type: ignore[arg-type]


def test_a_free_build_does_not_count() -> None:
    strategy = Bisection(["a", "b"])
    judgement = Judgement(verdict=Verdict.BAD, reason=Reason.CHECK_EXIT_CODE)
    strategy.record(Proposal(), Trial(index=0, judgement=judgement, seconds=1.0))
    assert strategy.progress().builds == 0
