"""What `debug build` does: puts the parts together by the options, and lets the loop run."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import ModelArgs
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs, CheckCmdArgs

from polygraphy_debug_ext.cli.front_door import guarded
from polygraphy_debug_ext.cli.in_process import in_process_builder
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.watching import LogObserver
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import StopReason, Verdict
from polygraphy_debug_ext.search.sampling import Sampling
from polygraphy_debug_ext.trials.artifacts import Artifacts
from polygraphy_debug_ext.trials.ask import Question
from polygraphy_debug_ext.trials.bench import Bench
from polygraphy_debug_ext.trials.check import Command, CommandCheck
from polygraphy_debug_ext.trials.guarding import Guard
from polygraphy_debug_ext.trials.interruption import Interrupted, Interruption
from polygraphy_debug_ext.trials.journal import now
from polygraphy_debug_ext.trials.judge import Rules
from polygraphy_debug_ext.trials.lock import locked
from polygraphy_debug_ext.trials.logs import Logs
from polygraphy_debug_ext.trials.loop import Limits, Loop
from polygraphy_debug_ext.trials.moving import digest
from polygraphy_debug_ext.trials.processes import Nursery
from polygraphy_debug_ext.trials.run_directory import Begun, Plan, begin, conclude, resume
from polygraphy_debug_ext.trials.scratch import Scratch
from polygraphy_debug_ext.trials.worker import Launch, WorkerBuilder

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from datetime import datetime

    from polygraphy_debug_ext.model import Summary
    from polygraphy_debug_ext.trials.ports import Builder, Checker

#: Options that a resumed run need not share with the run before: what is shown, and how far to go.
_FREE: Final = frozenset(
    {
        *("verbose", "quiet", "verbosity", "silent", "log_format", "log_file"),
        *("show_output", "hide_fail_output", "until", "resume", "in_process"),
        *("tools", "subtool", "subcommand"),
    }
)
#: Trials in a row that may teach nothing before a run that waits for a good or a bad build gives up.
_PATIENCE: Final = 20


def run(groups: Mapping[type, Any], args: argparse.Namespace) -> int:
    """Run the trials; return the exit status."""
    return guarded(lambda: BuildRun(groups, args).run())


class BuildRun:
    """One call of `debug build`."""

    def __init__(self, groups: Mapping[type, Any], args: argparse.Namespace) -> None:
        self._groups = groups
        self._args = args
        self._root = Path(groups[ArtifactSortArgs].output_dir)
        self._engine: str = groups[IterationArgs].iter_artifact_path
        self._guard = Guard()
        self._nursery = Nursery(self._guard.born, self._guard.gone)
        self._observer = self._make_observer()
        self._interruption = Interruption(self._stop_at_once)

    def run(self) -> int:
        """Check the options, hold the directory, build and check."""
        with ExitStack() as stack:
            stack.callback(self._guard.close)
            self._require_sense()
            stack.enter_context(locked(self._root, sys.argv))
            stack.enter_context(self._interruption.watched())
            stack.callback(self._nursery.end_all)
            try:
                summary = self._trials(stack)
            except Interrupted as error:
                G_LOGGER.warning(f"Interrupted by {error} before there was a trial")
        if self._interruption.reason is not None:
            return self._interruption.exit_status
        return 1 if summary.stop is StopReason.NOTHING_LEARNED else 0

    def _stop_at_once(self) -> None:
        self._nursery.kill_all()
        self._observer.abandon()

    def _trials(self, stack: ExitStack) -> Summary:
        plan = Plan(settings=self._settings(), command=sys.argv)
        artifacts = self._artifacts("")
        artifacts.require_distinct()
        if not self._args.resume:
            artifacts.require_absent()
        begun = resume(self._root, plan) if self._args.resume else begin(self._root, plan, _stamp)
        stack.callback(begun.journal.close)
        builder = self._builder(begun)
        stack.callback(builder.close)
        bench = self._bench(begun, builder)
        before = conclude(begun, bench, bench.artifacts, self._observer)
        bench.artifacts.require_absent()
        bench.scratch.require_absent()
        begun.journal.append(form.Surroundings(values=dict(builder.start())))
        until = self._until()
        loop = Loop(
            strategy=Sampling(until),
            bench=bench,
            observer=self._observer,
            interruption=self._interruption,
            limits=_limits(until),
        )
        summary = loop.run(before)
        begun.journal.append(form.RunStopped(time=now(), reason=summary.stop.name))
        return summary

    def _bench(self, begun: Begun, builder: Builder) -> Bench:
        return Bench(
            builder=builder,
            checker=self._checker(Logs(root=self._root, stamp=begun.stamp)),
            artifacts=self._artifacts(begun.stamp),
            scratch=Scratch(
                engine=self._engine,
                owned=self._groups[ArtifactSortArgs].artifacts,
                remove_engine=self._groups[IterationArgs].remove_intermediate,
                description=self._groups[IterationArgs].iteration_info_path,
            ),
            journal=begun.journal,
            observer=self._observer,
            build_failure=Verdict(self._args.build_failure),
        )

    def _builder(self, begun: Begun) -> Builder:
        # The worker needs descriptors that are passed on, which only POSIX has.
        if self._args.in_process or os.name != "posix":
            return in_process_builder(self._groups, self._args, self._interruption)
        return WorkerBuilder(
            Launch(command=_worker_command(), arguments=_plain(self._args)),
            self._nursery,
            self._interruption,
            Logs(root=self._root, stamp=begun.stamp),
            self._observer.said,
            timeout=self._args.build_timeout,
        )

    def _make_observer(self) -> LogObserver:
        stock = self._groups[CheckCmdArgs]
        if not sys.stdout.isatty() or G_LOGGER.module_severity.get() > G_LOGGER.FINISH:
            return LogObserver(show_output=stock.show_output, hide_fail_output=stock.hide_fail_output)
        from polygraphy_debug_ext.cli.progress import LiveObserver  # noqa: PLC0415 - it is for terminals only

        until = self._until()
        return LiveObserver(
            None if isinstance(until, Verdict) else until,
            show_output=stock.show_output,
            hide_fail_output=stock.hide_fail_output,
        )

    def _checker(self, logs: Logs) -> Checker:
        stock = self._groups[CheckCmdArgs]
        if stock.check is None:
            return Question(engine=self._engine, interruption=self._interruption)
        rules = Rules(
            fail_codes=None if stock.fail_codes is None else frozenset(stock.fail_codes),
            ignore_fail_codes=frozenset(stock.ignore_fail_codes or ()),
            skip_codes=frozenset(self._args.skip_codes or ()),
            fail_regexes=None if stock.fail_regexes is None else tuple(stock.fail_regexes),
        )
        return CommandCheck(
            line=self._command(),
            rules=rules,
            nursery=self._nursery,
            interruption=self._interruption,
            logs=logs,
            timeout=self._args.check_timeout,
            repetitions=self._args.check_repeat,
        )

    def _command(self) -> Command:
        return Command(
            words=tuple(self._groups[CheckCmdArgs].check),
            engine=self._engine,
            artifacts_dir=str(self._root),
        )

    def _artifacts(self, stamp: str) -> Artifacts:
        return Artifacts(root=self._root, stamp=stamp, names=tuple(self._groups[ArtifactSortArgs].artifacts))

    def _until(self) -> int | Verdict:
        until = self._groups[IterationArgs].until
        # Polygraphy holds the index of the last iteration.
        return Verdict(until) if isinstance(until, str) else until + 1

    def _require_sense(self) -> None:
        for option in ("build_timeout", "check_timeout"):
            value = getattr(self._args, option)
            if value is not None and not value > 0:
                raise UsageError(
                    f"--{option.replace('_', '-')} {value:g} is no time", "Give a number of seconds above 0."
                )
        if self._args.check_repeat < 1:
            raise UsageError(f"--check-repeat {self._args.check_repeat} would never check", "Give 1 or more.")
        if self._groups[CheckCmdArgs].check is not None:
            self._command().require_startable()

    def _settings(self) -> dict[str, Any]:
        """What a resumed run must share with the run before."""
        given = {
            name: value
            for name, value in vars(self._args).items()
            if name not in _FREE and value is not None and value is not False and value != []
        }
        model = Path(self._groups[ModelArgs].path)
        if model.is_file():
            given["model_digest"] = digest(model)
        return given


def _limits(until: int | Verdict) -> Limits:
    if until is Verdict.GOOD:
        return Limits(done=StopReason.FIRST_GOOD, patience=_PATIENCE)
    if until is Verdict.BAD:
        return Limits(done=StopReason.FIRST_BAD, patience=_PATIENCE)
    return Limits(done=StopReason.ITERATIONS_DONE)


def _stamp(moment: datetime) -> str:
    # What Polygraphy's `%x` and `%X` come to in the C locale, with dashes.
    return moment.strftime("%m-%d-%y_%H-%M-%S")


def _worker_command() -> list[str]:
    # As in Polygraphy's own script, the current directory is not on the path: what lies there must not be imported.
    program = (
        "import sys; sys.path[:] = [each for each in sys.path if each]; "
        "from polygraphy_debug_ext.cli.worker_main import main; main(sys.argv[1:])"
    )
    return [sys.executable, "-u", "-c", program, str(os.getpid())]


def _plain(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments without the tool that Polygraphy puts among them."""
    return {name: value for name, value in vars(args).items() if name != "subcommand"}
