"""A check by asking a person, when there is no check command; the words are Polygraphy's."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Judgement, Reason, Verdict
from polygraphy_debug_ext.trials.ports import CheckRun

if TYPE_CHECKING:
    from polygraphy_debug_ext.trials.interruption import Interruption


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Asks whether the engine passed."""

    engine: str
    interruption: Interruption
    repetitions: int = 1

    def command(self, index: int) -> None:
        """There is none."""

    def check(self, index: int, repetition: int) -> CheckRun:
        """Ask until there is an answer.

        Raises:
            UsageError: if there is nobody to answer.
            Interrupted: if the run is to end.
        """
        del index, repetition
        begun = time.monotonic()
        answer = self._ask(f"Did '{self.engine}' [p]ass or [f]ail?")
        while answer not in {"p", "f"}:
            answer = self._ask("Please choose either: 'p' or 'f':")
        verdict = Verdict.GOOD if answer == "p" else Verdict.BAD
        return CheckRun(
            judgement=Judgement(verdict=verdict, reason=Reason.USER), seconds=time.monotonic() - begun
        )

    def _ask(self, text: str) -> str:
        try:
            with self.interruption.raising():
                return input(f">>> {text} ").lower()[:1]
        except EOFError as error:
            raise UsageError(
                "Nobody answered whether the engine passed: there is no input", "Give a command with --check."
            ) from error
