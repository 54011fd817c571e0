"""Polygraphy's rules for what counts as a failure, with an exit status that means skip."""

from __future__ import annotations

import re

import pytest

from polygraphy_debug_ext.model import Reason, Verdict
from polygraphy_debug_ext.trials.judge import Rules, judge

GOOD, BAD, UNRESOLVED = Verdict.GOOD, Verdict.BAD, Verdict.UNRESOLVED
REGEX = (re.compile("FAIL"),)


@pytest.mark.parametrize(
    ("rules", "exit_code", "matched", "verdict"),
    [
        (Rules(), 0, False, GOOD),
        (Rules(), 1, False, BAD),
        (Rules(), -11, False, BAD),
        (Rules(fail_codes=frozenset({3})), 3, False, BAD),
        (Rules(fail_codes=frozenset({3})), 1, False, GOOD),
        (Rules(ignore_fail_codes=frozenset({2})), 2, False, GOOD),
        (Rules(ignore_fail_codes=frozenset({2})), 1, False, BAD),
        # Without --fail-code the output alone decides.
        (Rules(fail_regexes=REGEX), 0, True, BAD),
        (Rules(fail_regexes=REGEX), 1, False, GOOD),
        # With it, both must hold.
        (Rules(fail_regexes=REGEX, fail_codes=frozenset({3})), 3, True, BAD),
        (Rules(fail_regexes=REGEX, fail_codes=frozenset({3})), 3, False, GOOD),
        (Rules(fail_regexes=REGEX, fail_codes=frozenset({3})), 0, True, GOOD),
        # What is ignored is ignored whatever the output is.
        (Rules(fail_regexes=REGEX, ignore_fail_codes=frozenset({1})), 1, True, GOOD),
        (Rules(skip_codes=frozenset({125})), 125, False, UNRESOLVED),
        (Rules(skip_codes=frozenset({0}), fail_regexes=REGEX), 0, True, UNRESOLVED),
    ],
)
def test_a_check_is_judged_as_polygraphy_judges_it(
    rules: Rules, exit_code: int, *, matched: bool, verdict: Verdict
) -> None:
    assert judge(rules, exit_code, matched=matched).verdict is verdict


def test_a_signal_is_named() -> None:
    judgement = judge(Rules(), -9, matched=False)
    assert judgement.reason is Reason.CHECK_SIGNAL
    assert str(judgement) == "the check was killed: signal 9 (SIGKILL)"
