"""The loop asks, tries, tells and stops; what happened is in the journal, and the journal tells it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import StorageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import Reason, StopReason, Verdict
from polygraphy_debug_ext.trials.run_directory import trial_of

if TYPE_CHECKING:
    from tests.trials.conftest import MakeLoop

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED


def test_each_trial_gets_the_verdict_of_its_check(make_loop: MakeLoop) -> None:
    summary = make_loop("g", "b", "u")[0].run()
    assert [trial.verdict for trial in summary.trials] == [GOOD, BAD, UNRESOLVED]
    assert summary.stop is StopReason.ITERATIONS_DONE


def test_a_build_that_fails_is_not_checked_and_teaches_nothing(make_loop: MakeLoop) -> None:
    parts, observer, _ = make_loop("g", "g", builds="x.")
    assert [trial.verdict for trial in parts.run().trials] == [UNRESOLVED, GOOD]
    assert observer.said[:3] == ["trial 0", "failed BUILD_ERROR", "ended unresolved"]


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [("ggg", GOOD), ("ggb", BAD), ("bgg", BAD), ("ugg", UNRESOLVED), ("ugb", BAD), ("uuu", UNRESOLVED)],
)
def test_of_several_repetitions_the_worst_counts(make_loop: MakeLoop, runs: str, verdict: Verdict) -> None:
    (trial,) = make_loop(runs)[0].run().trials
    assert trial.verdict is verdict


def test_the_first_bad_repetition_ends_the_check(make_loop: MakeLoop) -> None:
    parts, _, journal = make_loop("gbg")
    parts.run()
    checked = [event for event in journal.events if isinstance(event, form.TrialChecked)]
    assert [(event.repetition, event.verdict) for event in checked] == [(0, "good"), (1, "bad")]


def test_the_journal_says_first_what_is_about_to_happen(make_loop: MakeLoop) -> None:
    parts, _, journal = make_loop("g", "b", builds=".x")
    parts.run()
    names = [type(event).__name__.removeprefix("Trial") for event in journal.events]
    assert names == [
        *("Started", "Built", "Checked", "Judged", "Ended"),
        *("Started", "Built", "Judged", "Ended"),
    ]


def test_the_run_ends_with_an_interruption_and_the_trial_in_hand_is_not_counted(make_loop: MakeLoop) -> None:
    parts, observer, _ = make_loop("g", "g", "g", builds=".i.")
    summary = parts.run()
    assert summary.stop is StopReason.INTERRUPTED
    assert [trial.judgement.reason for trial in summary.trials] == [
        Reason.CHECK_EXIT_CODE,
        Reason.INTERRUPTED,
    ]
    assert len(summary.counted) == summary.count(GOOD) == 1
    assert observer.summary == summary


def test_a_run_that_learns_nothing_gives_up(make_loop: MakeLoop) -> None:
    parts, _, _ = make_loop("u", "g", "u", "u", "u", "u", until=BAD, patience=3)
    summary = parts.run()
    assert summary.stop is StopReason.NOTHING_LEARNED
    assert len(summary.trials) == 5


def test_what_went_before_counts(make_loop: MakeLoop) -> None:
    first = make_loop("g", "b")[0].run()
    parts, _, _ = make_loop("g", "g", "g", "g", until=3)
    again = parts.run(first.trials)
    assert again.trials[:2] == first.trials
    assert [trial.index for trial in again.trials] == [0, 1, 2]


def test_the_summary_is_told_when_an_error_ends_the_run(make_loop: MakeLoop) -> None:
    parts, observer, journal = make_loop("g", "g")
    append = journal.append

    def full(event: form.Event) -> None:
        if isinstance(event, form.TrialStarted) and event.trial == 1:
            raise StorageError("The disk is full", "Make room.")
        append(event)

    journal.append = full  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        parts.run()
    assert observer.summary is not None
    assert observer.summary.stop is StopReason.ERROR
    assert len(observer.summary.trials) == 1


def test_the_journal_replays_to_the_same_trials(make_loop: MakeLoop) -> None:
    parts, _, journal = make_loop("gg", "gb", "ug", "gg", builds="...x")
    summary = parts.run()
    records: dict[int, form.Record] = {}
    run = form.Run(
        start=form.RunStarted(version=1, stamp="s", time="", tool="", command=[], directory="", settings={}),
        trials=records,
    )
    for event in journal.events:
        assert form._take(run, event)
    assert tuple(trial_of(record) for record in records.values()) == summary.trials
