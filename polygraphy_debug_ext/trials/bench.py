"""One trial: build, check, judge, file. The journal is told before each step that counts, and after it.

However the trial ends, it ends with a verdict, and its artifacts are filed under that one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import BuildResult, Judgement, Reason, Trial, Verdict
from polygraphy_debug_ext.trials.check import CheckNotStarted
from polygraphy_debug_ext.trials.interruption import Interrupted
from polygraphy_debug_ext.trials.journal import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import BuildFailure, Proposal
    from polygraphy_debug_ext.trials.artifacts import Artifacts
    from polygraphy_debug_ext.trials.journal import Journal
    from polygraphy_debug_ext.trials.ports import Builder, Checker, CheckRun, Observer
    from polygraphy_debug_ext.trials.scratch import Scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where trials are made.

    `build_failure` is the verdict on an engine that does not exist; `factors` are those that a search varies, in the order of
    the journal.
    """

    builder: Builder
    checker: Checker
    artifacts: Artifacts
    scratch: Scratch
    journal: Journal
    observer: Observer
    build_failure: Verdict = Verdict.UNRESOLVED
    factors: Sequence[str] = ()

    def try_out(self, index: int, proposal: Proposal) -> Trial:
        """Make a trial.

        Raises:
            StorageError: if the journal or the artifacts cannot be kept: the run must end.
            UsageError: if the check cannot be started.
        """
        begun = time.monotonic()
        not_started: CheckNotStarted | None = None
        result = BuildResult(seconds=0.0)
        self.observer.trial_starts(index)
        self.journal.append(
            form.TrialStarted(
                trial=index, time=now(), bad=self._numbers(proposal.bad), purpose=proposal.purpose
            )
        )
        with self.scratch.cleared(self.observer):
            try:
                result = self._build(index, proposal)
                judgement = self._judged_build(result.failure) if result.failure else self._check(index)
            except Interrupted as error:
                judgement = _unresolved(Reason.INTERRUPTED, str(error))
            except CheckNotStarted as error:
                judgement = _unresolved(Reason.CHECK_NOT_RUN, str(error))
                not_started = error
            trial = Trial(
                index=index,
                judgement=judgement,
                seconds=time.monotonic() - begun,
                failure=result.failure,
                realised=result.realised,
            )
            self.conclude(trial)
            self.observer.trial_ended(trial)
        if not_started is not None:
            raise UsageError(
                f"The check command could not be started ({not_started})",
                "Correct the command after --check.",
            )
        return trial

    def conclude(self, trial: Trial) -> None:
        """File the artifacts of a trial whose verdict is known.

        Raises:
            StorageError: if something cannot be kept.
        """
        placements, missing = self.artifacts.place(trial.index, trial.verdict)
        self.journal.append(
            form.TrialJudged(
                trial=trial.index,
                verdict=trial.verdict.value,
                reason=trial.judgement.reason.name,
                detail=trial.judgement.detail,
                seconds=trial.seconds,
                placements=placements,
            )
        )
        # What was never built leaves nothing; everybody else should have.
        if trial.failure is None and not trial.interrupted:
            for name in missing:
                self.observer.missing(name)
        self.artifacts.file(placements, self.observer)
        # Before the trial is over: whoever resumes it removes what it left, and nothing of others.
        self.scratch.clear(self.observer)
        self.journal.append(form.TrialEnded(trial=trial.index))

    def _build(self, index: int, proposal: Proposal) -> BuildResult:
        result = self.builder.build(index, proposal)
        self.journal.append(self._built(index, result))
        if result.failure is None:
            self.scratch.describe(index)
        else:
            self.observer.build_failed(result.failure)
        return result

    def _numbers(self, names: frozenset[str] | None) -> list[int] | None:
        return None if names is None else [n for n, name in enumerate(self.factors) if name in names]

    def _built(self, index: int, result: BuildResult) -> form.TrialBuilt:
        if result.failure is None:
            realised = result.realised
            return form.TrialBuilt(
                trial=index,
                seconds=result.seconds,
                bad=self._numbers(realised.bad if realised else None),
                neither=self._numbers(realised.neither if realised else None) or [],
            )
        site = result.failure.site
        return form.TrialBuilt(
            trial=index,
            seconds=result.seconds,
            failure=result.failure.reason.name,
            text=result.failure.text,
            site=form.Site(layer=site.layer, runner=site.runner, tactic=site.tactic, error=site.error)
            if site
            else None,
        )

    def _judged_build(self, failure: BuildFailure) -> Judgement:
        return Judgement(verdict=self.build_failure, reason=failure.reason, detail=failure.text)

    def _check(self, index: int) -> Judgement:
        """Check as often as asked for; the worst verdict counts, and a bad one ends it."""
        worst: CheckRun | None = None
        for repetition in range(self.checker.repetitions):
            self.observer.check_starts(self.checker.command(index))
            run = self.checker.check(index, repetition)
            self.journal.append(_checked(index, repetition, run))
            self.observer.check_ended(run)
            if worst is None or _RANK[run.judgement.verdict] > _RANK[worst.judgement.verdict]:
                worst = run
            if run.judgement.verdict is Verdict.BAD:
                break
        if worst is None:
            raise ValueError(f"a check of {self.checker.repetitions} repetitions")
        return worst.judgement


_RANK = {Verdict.GOOD: 0, Verdict.UNRESOLVED: 1, Verdict.BAD: 2}


def _unresolved(reason: Reason, detail: str) -> Judgement:
    return Judgement(verdict=Verdict.UNRESOLVED, reason=reason, detail=detail)


def _checked(index: int, repetition: int, run: CheckRun) -> form.TrialChecked:
    return form.TrialChecked(
        trial=index,
        repetition=repetition,
        seconds=run.seconds,
        verdict=run.judgement.verdict.value,
        reason=run.judgement.reason.name,
        exit_code=run.exit_code,
        detail=run.judgement.detail,
    )
