"""What a bisection says: the outcome in a sentence, the evidence, the status, and the same as JSON."""

from __future__ import annotations

import json

import pytest

from polygraphy_debug_ext.model import Assignment, Proposal, Source, Tactic
from polygraphy_debug_ext.model.isolation import (
    Arm,
    Culprit,
    Ends,
    Isolation,
    Outcome,
    Phase,
    Plan,
    PlannedPhase,
    Progress,
    Ranked,
)
from polygraphy_debug_ext.reports import isolation as report
from polygraphy_debug_ext.reports.isolation_document import document


def tactic(number: int, kernel: str | None = None, time_ms: float | None = None) -> Tactic:
    return Tactic(implementation=1, tactic=number, kernel=kernel, time_ms=time_ms)


GOOD = Assignment(
    layers={"a": tactic(1, "k1", 0.5), "b": tactic(2, "k2"), "c": tactic(3, "k9")},
    source=Source.SELECTOR,
    origin="g.json",
)
BAD = Assignment(
    layers={"a": tactic(10, "k9", 0.25), "b": tactic(20, "k20"), "c": tactic(3, "k9")},
    source=Source.SELECTOR,
    origin="b.json",
)


def found(outcome: Outcome, *culprits: Culprit, **rest: object) -> report.Found:
    isolation = Isolation(
        outcome=outcome,
        culprits=culprits,
        ends=Ends(bad=Arm(fails=2), good=Arm(passes=3)),
        builds=9,
        **rest,  # type: ignore[arg-type]
    )
    return report.Found(isolation=isolation, layers_of={"a": ("a",), "b": ("b",)}, good=GOOD, bad=BAD)


def culprit(*members: str, verdict: Outcome = Outcome.CONFIRMED, lacking: tuple[Arm, ...] = ()) -> Culprit:
    return Culprit(
        members=tuple((name,) for name in members),
        probability=0.995,
        verdict=verdict,
        inside=Arm(fails=4),
        outside=Arm(fails=1, passes=5),
        lacking=lacking,
    )


def text(lines: object) -> str:
    return "\n".join(line.text for line in lines)  # type: ignore[attr-defined]


def test_a_confirmed_culprit_is_named_with_its_evidence_its_alternative_and_its_cost() -> None:
    told = text(report.conclusion(found(Outcome.CONFIRMED, culprit("a"))))
    assert told.startswith(
        "Confirmed: tactic 0x000000000000000a (k9) at layer a: the culprit alone makes builds fail, and without it they pass."
    )
    assert "With it alone, and good tactics everywhere else: 4 of 4 builds failed." in told
    assert "Without it, and bad tactics everywhere else: 1 of 6 builds failed." in told
    assert (
        "Layer a: tactic 0x000000000000000a (k9) [0.25 ms] fails, tactic 0x0000000000000001 (k1) [0.5 ms] takes its place."
        in told
    )
    assert "The bad build has the same kernel at c as well." in told
    assert (
        "The ends: with all bad tactics 2 of 2 builds failed, with all good ones 0 of 3 builds failed. 9 builds"
        in told
    )
    assert "--avoid-tactics" in told


def test_a_set_is_named_with_the_builds_that_lack_one_member_each() -> None:
    told = text(
        report.conclusion(found(Outcome.CONFIRMED, culprit("a", "b", lacking=(Arm(passes=2), Arm(passes=3)))))
    )
    assert "(k9) at layer a together with tactic 0x0000000000000014 (k20) at layer b" in told
    assert "The set without a: 0 of 2 builds failed." in told
    assert "The set without b: 0 of 3 builds failed." in told
    assert "With them alone" in told


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_has_a_sentence_and_a_status(outcome: Outcome) -> None:
    culprits = (culprit("a", verdict=outcome),) if outcome.names_culprit else ()
    each = found(outcome, *culprits, ranked=(Ranked(factors=("b",), probability=0.4),), none=0.3)
    told = text(report.conclusion(each))
    assert outcome.value in told.splitlines()[0]
    expected = {
        Outcome.CONFIRMED: 0,
        Outcome.NO_FACTOR: 5,
        Outcome.BAD_END_PASSES: 4,
        Outcome.GOOD_END_FAILS: 4,
    }
    assert report.status(each.isolation) == expected.get(outcome, 3)
    # Only a search without an answer lists what is still possible.
    assert ("Likeliest so far" in told) == (outcome in {Outcome.INCONCLUSIVE, Outcome.NOT_CONFIRMED})


def test_what_could_not_be_forced_is_told() -> None:
    told = text(report.conclusion(found(Outcome.INCONCLUSIVE, unforceable=("b",))))
    assert "Could not be forced, so that nothing is known of them: b." in told


def test_names_cannot_steer_the_terminal() -> None:
    layers = {"\x1b[2Ja": tactic(1)}
    evil = report.Found(
        isolation=Isolation(outcome=Outcome.CONFIRMED, culprits=(culprit("\x1b[2Ja"),)),
        layers_of={"\x1b[2Ja": ("\x1b[2Ja",)},
        good=Assignment(layers=layers, source=Source.SELECTOR, origin="\x1b[1mg"),
        bad=Assignment(layers={"\x1b[2Ja": tactic(2)}, source=Source.SELECTOR, origin="b"),
    )
    told = text(report.conclusion(evil)) + text(report.beginning(evil, ("\x1b[0m",)))
    told += text(report.no_difference("\x1b[0m", "b"))
    assert "\x1b" not in told


def test_the_document_holds_all_that_the_sentence_rests_on() -> None:
    content = json.loads(document(found(Outcome.CONFIRMED, culprit("a"), present_rate=0.9, absent_rate=0.1)))
    assert content["schema"] == "polygraphy-debug-ext/bisect-tactics"
    assert content["version"] == 1
    assert content["outcome"] == "CONFIRMED"
    (one,) = content["culprits"]
    assert one["inside"] == {"fails": 4, "passes": 0}
    assert one["members"] == [
        [
            {
                "layer": "a",
                "bad": {"tactic": "0x000000000000000a", "implementation": 1, "kernel": "k9", "time_ms": 0.25},
                "good": {"tactic": "0x0000000000000001", "implementation": 1, "kernel": "k1", "time_ms": 0.5},
                "also_at": ["c"],
            }
        ]
    ]
    assert content["ends"]["good"] == {"fails": 0, "passes": 3}
    assert content["rates"] == {"present": 0.9, "absent": 0.1}


def test_a_step_says_where_the_search_is() -> None:
    progress = Progress(phase=Phase.SEARCH, candidates=17, builds=5, expected=12)
    (line,) = report.step(Proposal(bad=frozenset(), purpose="searching"), progress)
    assert line.text == "Bisecting: 17 layers left, 5 builds done of about 12. Next: searching."


def test_a_plan_has_the_builds_of_each_phase() -> None:
    planned = Plan(
        factors=64,
        phases=(
            PlannedPhase(phase=Phase.ENDS, steady=2, noisy=2),
            PlannedPhase(phase=Phase.SEARCH, steady=6, noisy=14.5),
        ),
        max_builds=200,
    )
    told = text(report.plan(planned))
    assert "64 layers would be searched" in told
    assert "in all                 8.0    16.5" in told
