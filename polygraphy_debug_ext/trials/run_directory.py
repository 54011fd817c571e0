"""The directory of runs: begin a new run in it, or go on with the last one, as its journal tells."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from polygraphy_debug_ext import __version__
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import BuildFailure, FaultSite, Judgement, Realised, Reason, Trial, Verdict
from polygraphy_debug_ext.trials.journal import DiskJournal, now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.trials.artifacts import Artifacts
    from polygraphy_debug_ext.trials.bench import Bench
    from polygraphy_debug_ext.trials.ports import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that may go on: the trials that are over, and the one that was in hand when the process died."""

    stamp: str
    journal: DiskJournal
    trials: tuple[Trial, ...] = ()
    in_hand: form.Record | None = None
    factors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run is to do: what must be the same when it goes on, and how it was asked for."""

    settings: Mapping[str, Any]
    command: Sequence[str]
    directory: str = field(default_factory=os.getcwd)


def begin(root: Path, plan: Plan, time_of: Callable[[datetime], str]) -> Begun:
    """Begin a new run, after those that the journal holds. `time_of` makes the stamp of a time.

    Raises:
        FormatError: if there is a journal that cannot be read.
        StorageError: if it cannot be written.
    """
    path = root / form.NAME
    before = form.read(path) if path.exists() else form.Journal(runs=[], size=0)
    stamp = _unused(root, {run.start.stamp for run in before.runs}, time_of)
    journal = DiskJournal(path, before.size)
    journal.append(
        form.RunStarted(
            version=form.VERSION,
            stamp=stamp,
            time=now(),
            tool=f"polygraphy-debug-ext {__version__}",
            command=list(plan.command),
            directory=plan.directory,
            settings=dict(plan.settings),
        )
    )
    return Begun(stamp=stamp, journal=journal)


def resume(root: Path, plan: Plan) -> Begun:
    """Go on with the last run of the journal. A line that was never finished is cut off.

    Raises:
        UsageError: if there is none, or if it was asked for otherwise.
        FormatError: if the journal cannot be read.
        StorageError: if it cannot be written.
    """
    path = root / form.NAME
    journal = form.read(path) if path.exists() else None
    if journal is None or not journal.runs:
        raise UsageError(
            f"There is no run in {root} to go on with", "Leave --resume out, or name its --artifacts-dir."
        )
    run = journal.runs[-1]
    _require_same(run.start, plan)
    disk = DiskJournal(path, journal.size)
    disk.append(form.RunResumed(time=now(), command=list(plan.command)))
    records = [run.trials[index] for index in sorted(run.trials)]
    over = [record for record in records if record.ended]
    in_hand = [record for record in records if not record.ended]
    return Begun(
        stamp=run.start.stamp,
        journal=disk,
        trials=tuple(trial_of(record, run.factors) for record in over),
        factors=tuple(run.factors),
        in_hand=in_hand[-1] if in_hand else None,
    )


def conclude(begun: Begun, bench: Bench, artifacts: Artifacts, observer: Observer) -> tuple[Trial, ...]:
    """Finish the trial that was in hand; return all trials so far.

    If it was judged, its artifacts are filed as they were going to be. If not, nothing was learned.

    Raises:
        StorageError: if something cannot be kept.
    """
    artifacts.remove_leftovers()
    if begun.in_hand is None:
        return begun.trials
    trial = trial_of(begun.in_hand, begun.factors)
    if begun.in_hand.judged is not None:
        artifacts.settle(trial.index, begun.in_hand.judged.placements, observer)
        bench.scratch.clear(observer)
        begun.journal.append(form.TrialEnded(trial=trial.index))
    else:
        bench.conclude(trial)
    observer.trial_ended(trial)
    return (*begun.trials, trial)


def trial_of(record: form.Record, factors: Sequence[str] = ()) -> Trial:
    """Return the trial that a record tells of; if it was never judged, it was interrupted. `factors` are those of its run."""
    judged, built = record.judged, record.built
    failure = None
    if built is not None and built.failure:
        site = built.site
        failure = BuildFailure(
            reason=Reason[built.failure],
            text=built.text,
            site=FaultSite(layer=site.layer, runner=site.runner, tactic=site.tactic, error=site.error)
            if site
            else None,
        )
    if judged is None:
        judgement = Judgement(
            verdict=Verdict.UNRESOLVED, reason=Reason.INTERRUPTED, detail="the run ended before its verdict"
        )
        return Trial(index=record.started.trial, judgement=judgement, seconds=0.0, failure=failure)
    return Trial(
        index=judged.trial,
        judgement=Judgement(
            verdict=Verdict(judged.verdict), reason=Reason[judged.reason], detail=judged.detail
        ),
        seconds=judged.seconds,
        failure=failure,
        realised=_realised(built, factors),
    )


def _realised(built: form.TrialBuilt | None, factors: Sequence[str]) -> Realised | None:
    if built is None or built.bad is None:
        return None
    bad, neither = (
        frozenset(factors[number] for number in numbers if 0 <= number < len(factors))
        for numbers in (built.bad, built.neither)
    )
    return Realised(bad=bad, neither=neither)


def _unused(root: Path, used: set[str], time_of: Callable[[datetime], str]) -> str:
    """The stamp of this second, or of the next one that no run had: clocks go backwards, and runs can be short."""
    moment = datetime.now()  # noqa: DTZ005 - names have the local time, as in Polygraphy
    while (stamp := time_of(moment)) in used or any(root.glob(f"*/*_{stamp}_N*")):
        moment += timedelta(seconds=1)
    return stamp


def _require_same(start: form.RunStarted, plan: Plan) -> None:
    before = {**start.settings, "directory": start.directory}
    after = {**plan.settings, "directory": plan.directory}
    different = [
        f"{name}: {_shown(before.get(name))} then, {_shown(after.get(name))} now"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]
    if different:
        raise UsageError(
            "The run to be resumed was asked for otherwise:\n    " + "\n    ".join(different),
            "Use the same options (--until may differ), or leave --resume out to begin a new run.",
        )


def _shown(value: object) -> str:
    return "not given" if value is None else str(value)
