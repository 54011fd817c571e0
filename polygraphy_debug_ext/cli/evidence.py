"""What the builds of a run say so far about its tactics: each replay is read once, when its trial is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.model.answer import Conclusion

if TYPE_CHECKING:
    from polygraphy_debug_ext.model import Trial
    from polygraphy_debug_ext.model.answer import Answer
    from polygraphy_debug_ext.trials.artifacts import Artifacts

#: Conclusions that end a run which goes on until it is decided.
_DECIDED = {Conclusion.CULPRIT, Conclusion.PAIR, Conclusion.NO_TACTIC}


class Evidence:
    """Collects the replays of good and bad trials.

    Args:
        artifacts: Knows where the artifacts of a trial are filed.
        replay: The name of the replay, as it is among the artifacts.
        confidence: How probable a conclusion must be.
    """

    def __init__(self, artifacts: Artifacts, replay: str, confidence: float = 0.95) -> None:
        from polygraphy_debug_ext.analysis.table import TableBuilder  # noqa: PLC0415 - numpy takes its time
        from polygraphy_debug_ext.formats.collection import Reader  # noqa: PLC0415

        self._artifacts = artifacts
        self._replay = replay
        self._confidence = confidence
        self._reader = Reader()
        self._table = TableBuilder()
        self._taken = 0
        self._unresolved = 0

    def take(self, trial: Trial) -> None:
        """Read what a trial left; a replay that cannot be read is said aloud, and passed over."""
        if trial.verdict is Verdict.UNRESOLVED:
            self._unresolved += not trial.interrupted
            return
        place = self._artifacts.root / self._artifacts.destination(self._replay, trial.index, trial.verdict)
        try:
            for assignment in self._reader.records(place):
                self._table.add(assignment, trial.verdict)
                self._taken += 1
        except FormatError as error:
            G_LOGGER.warning(f"Not counted as evidence: {error.problem}. {error.remedy}")

    def answer(self) -> Answer | None:
        """What they say; None if there is none."""
        from polygraphy_debug_ext.analysis import rank  # noqa: PLC0415 - numpy takes its time

        if not self._taken:
            return None
        return rank(self._table.table(), confidence=self._confidence, unresolved=self._unresolved)

    def decides(self, trial: Trial) -> bool:
        """Take a trial; say whether all of them together decide."""
        self.take(trial)
        answer = self.answer()
        return answer is not None and answer.conclusion in _DECIDED
