"""What people are told about a run."""

from __future__ import annotations

from polygraphy_debug_ext.cli.watching import failures, tally, worth_telling
from polygraphy_debug_ext.model import (
    BuildFailure,
    FaultSite,
    Judgement,
    Reason,
    StopReason,
    Summary,
    Trial,
    Verdict,
)

SITE = FaultSite(layer="conv1 + relu1", runner="CaskConvolution", tactic="0x1", error="misaligned address")


def trial(index: int, verdict: Verdict, reason: Reason, failure: BuildFailure | None = None) -> Trial:
    return Trial(
        index=index, judgement=Judgement(verdict=verdict, reason=reason), seconds=1.0, failure=failure
    )


def crashed(index: int, text: str = "signal 11 (SIGSEGV)") -> Trial:
    failure = BuildFailure(reason=Reason.BUILD_CRASH, text=text, site=SITE)
    return trial(index, Verdict.UNRESOLVED, Reason.BUILD_CRASH, failure)


GOOD = trial(0, Verdict.GOOD, Reason.CHECK_EXIT_CODE)
CUT_SHORT = trial(1, Verdict.UNRESOLVED, Reason.INTERRUPTED)


def summary(*trials: Trial, stop: StopReason = StopReason.ITERATIONS_DONE) -> Summary:
    return Summary(trials=trials, stop=stop)


def test_builds_that_failed_alike_are_told_together() -> None:
    (line,) = failures(summary(GOOD, crashed(2), crashed(5)))
    assert line == (
        "Failed build in iteration 3, 6: the build process died: signal 11 (SIGSEGV) at layer conv1 + relu1, "
        "runner CaskConvolution, tactic 0x1: misaligned address"
    )


def test_many_ways_of_failing_are_cut_short() -> None:
    lines = failures(summary(*(crashed(index, f"error {index}") for index in range(30))))
    assert len(lines) == 11
    assert lines[-1] == "And builds that failed in 20 other ways: see the journal"


def test_a_text_from_a_log_cannot_steer_the_terminal() -> None:
    (line,) = failures(summary(crashed(0, "\x1b[2J")))
    assert "\\x1b[2J" in line


def test_an_ordinary_run_needs_no_line_of_ours() -> None:
    assert not worth_telling(summary(GOOD))
    assert worth_telling(summary(GOOD, crashed(1)))
    assert worth_telling(summary(GOOD, stop=StopReason.TERMINATED))


def test_trials_that_were_cut_short_do_not_count() -> None:
    text = tally(summary(GOOD, CUT_SHORT, stop=StopReason.INTERRUPTED))
    assert (
        text
        == "1 good, 0 bad, 0 unresolved (1 interrupted trial not counted) | Stopped: interrupted by SIGINT"
    )
