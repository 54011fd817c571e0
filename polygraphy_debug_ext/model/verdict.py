"""How one trial was judged: good, bad or unresolved, and why.

*Unresolved* means that nothing was learned about the tactics: an engine that does not exist, or that does not hold the
tactics that were asked for, speaks for none of them.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """What a trial says about the tactics of its engine; the value names the directory of its artifacts."""

    GOOD = "good"
    BAD = "bad"
    UNRESOLVED = "unresolved"


class Reason(enum.Enum):
    """What a verdict rests on; the value is what people read, the name what the journal holds."""

    CHECK_EXIT_CODE = "exit status of the check"
    CHECK_SIGNAL = "the check was killed"
    CHECK_REGEX = "output of the check"
    CHECK_IGNORED_CODE = "ignored exit status of the check"
    CHECK_SKIP_CODE = "the check asked to skip this trial"
    CHECK_TIMEOUT = "the check took too long"
    CHECK_NOT_RUN = "the check could not be started"
    USER = "answer of the user"
    BUILD_ERROR = "the engine could not be built"
    BUILD_CRASH = "the build process died"
    BUILD_TIMEOUT = "the build took too long"
    NOT_RECORDED = "the tactics of the build are not known"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with its reason, and the detail that a person needs to follow it (an exit status, an error)."""

    verdict: Verdict
    reason: Reason
    detail: str = ""

    def __str__(self) -> str:
        """One line, for logs."""
        return f"{self.reason.value}: {self.detail}" if self.detail else self.reason.value
