"""From the exit status and the output of a check to a verdict, by Polygraphy's rules and a code that means *skip*."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Judgement, Reason, Verdict

if TYPE_CHECKING:
    import re


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as a failure; None where nothing was asked for."""

    fail_codes: frozenset[int] | None = None
    ignore_fail_codes: frozenset[int] = frozenset()
    skip_codes: frozenset[int] = frozenset()
    fail_regexes: tuple[re.Pattern[str], ...] | None = None


def judge(rules: Rules, exit_code: int, *, matched: bool) -> Judgement:
    """Judge one run of the check; `matched` says whether one of the regular expressions was found in its output."""
    status = _status(exit_code)
    if exit_code in rules.skip_codes:
        return Judgement(verdict=Verdict.UNRESOLVED, reason=Reason.CHECK_SKIP_CODE, detail=status)
    if exit_code in rules.ignore_fail_codes:
        return Judgement(verdict=Verdict.GOOD, reason=Reason.CHECK_IGNORED_CODE, detail=status)
    by_code = exit_code != 0 if rules.fail_codes is None else exit_code in rules.fail_codes
    if rules.fail_regexes is None:
        reason = Reason.CHECK_SIGNAL if by_code and exit_code < 0 else Reason.CHECK_EXIT_CODE
        return Judgement(verdict=Verdict.BAD if by_code else Verdict.GOOD, reason=reason, detail=status)
    # As in Polygraphy: with --fail-code both must hold, without it the output alone decides.
    failed = matched and (by_code or rules.fail_codes is None)
    found = "--fail-regex was found" if matched else "--fail-regex was not found"
    return Judgement(
        verdict=Verdict.BAD if failed else Verdict.GOOD,
        reason=Reason.CHECK_REGEX,
        detail=f"{found}, {status}",
    )


def _status(exit_code: int) -> str:
    """The exit status in words; a negative one is that of a signal."""
    return f"exit status {exit_code}" if exit_code >= 0 else signal_text(-exit_code)


def signal_text(number: int) -> str:
    """`signal 11 (SIGSEGV)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"
