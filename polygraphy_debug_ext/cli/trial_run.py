"""What every subtool does that makes trials: puts the parts together by the options, and lets the loop run."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import ModelArgs
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs, CheckCmdArgs

from polygraphy_debug_ext.cli.in_process import in_process_builder
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.watching import LogObserver
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import Verdict
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
from polygraphy_debug_ext.trials.loop import Loop
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
    from polygraphy_debug_ext.trials.ports import Builder, Checker, Strategy

#: Options that a resumed run need not share with the run before: what is shown, and how far to go.
FREE: Final = frozenset(
    {
        *("verbose", "quiet", "verbosity", "silent", "log_format", "log_file"),
        *(
            "show_output",
            "hide_fail_output",
            "until",
            "max_iterations",
            "max_builds",
            "output",
            "save_avoid",
            "resume",
            "in_process",
        ),
        *("tools", "subtool", "subcommand"),
    }
)


class TrialRun(ABC):
    """One call of a subtool that makes trials. What it searches for, and when it stops, is said by the subtool."""

    def __init__(self, groups: Mapping[type, Any], args: argparse.Namespace) -> None:
        self.groups = groups
        self.args = args
        self.root = Path(groups[ArtifactSortArgs].output_dir)
        self._engine: str = groups[IterationArgs].iter_artifact_path
        self._guard = Guard()
        self._nursery = Nursery(self._guard.born, self._guard.gone)
        self.observer = self._make_observer()
        self.interruption = Interruption(self._stop_at_once)

    def run(self) -> int:
        """Check the options, hold the directory, build and check."""
        with ExitStack() as stack:
            stack.callback(self._guard.close)
            self._require_sense()
            stack.enter_context(locked(self.root, sys.argv))
            stack.enter_context(self.interruption.watched())
            stack.callback(self._nursery.end_all)
            try:
                summary = self._trials(stack)
            except Interrupted as error:
                G_LOGGER.warning(f"Interrupted by {error} before there was a trial")
        if self.interruption.reason is not None:
            return self.interruption.exit_status
        return self.conclude(summary)

    @abstractmethod
    def strategy(self, artifacts: Artifacts) -> tuple[Strategy, int | None]:
        """Return what says which trial comes next, and how many in a row may teach nothing. `artifacts` knows where they are filed."""

    @abstractmethod
    def conclude(self, summary: Summary) -> int:
        """Say what the run came to; return the exit status."""

    def builder(self, begun: Begun) -> Builder:
        """Return who builds."""
        if self.in_process:
            return in_process_builder(self.groups, self.args, self.interruption)
        return self.worker(begun)

    @property
    def in_process(self) -> bool:
        """Whether builds are made here."""
        # The worker needs descriptors that are passed on, which only POSIX has.
        return self.args.in_process or os.name != "posix"

    def worker(self, begun: Begun) -> WorkerBuilder:
        """Return who builds in a process of its own."""
        return WorkerBuilder(
            Launch(command=_worker_command(), arguments=_plain(self.args)),
            self._nursery,
            self.interruption,
            Logs(root=self.root, stamp=begun.stamp),
            self.observer.said,
            timeout=self.args.build_timeout,
        )

    def expected_trials(self) -> int | None:
        """How many trials there will be, if that is known."""
        return None

    def factors(self) -> tuple[str, ...]:
        """What the search varies; nothing, if builds are free."""
        return ()

    def settings(self) -> dict[str, Any]:
        """What a resumed run must share with the run before."""
        given = {
            name: value
            for name, value in vars(self.args).items()
            if name not in FREE and value is not None and value is not False and value != []
        }
        for name, path in (
            ("model", self.groups[ModelArgs].path),
            ("avoid_tactics", self.args.avoid_tactics),
        ):
            if path and Path(path).is_file():
                given[f"{name}_digest"] = digest(Path(path))
        return given

    def _stop_at_once(self) -> None:
        self._nursery.kill_all()
        self.observer.abandon()

    def _trials(self, stack: ExitStack) -> Summary:
        plan = Plan(settings=self.settings(), command=sys.argv)
        artifacts = self._artifacts("")
        artifacts.require_distinct()
        if not self.args.resume:
            artifacts.require_absent()
        begun = resume(self.root, plan) if self.args.resume else begin(self.root, plan, _stamp)
        stack.callback(begun.journal.close)
        builder = self.builder(begun)
        stack.callback(builder.close)
        bench = self._bench(begun, builder)
        before = conclude(begun, bench, bench.artifacts, self.observer)
        bench.artifacts.require_absent()
        bench.scratch.require_absent()
        begun.journal.append(form.Surroundings(values=dict(builder.start())))
        if bench.factors and not begun.factors:
            begun.journal.append(form.Factors(names=list(bench.factors)))
        strategy, patience = self.strategy(bench.artifacts)
        loop = Loop(
            strategy=strategy,
            bench=bench,
            observer=self.observer,
            interruption=self.interruption,
            patience=patience,
        )
        summary = loop.run(before)
        begun.journal.append(form.RunStopped(time=now(), reason=summary.stop.name))
        return summary

    def _bench(self, begun: Begun, builder: Builder) -> Bench:
        return Bench(
            builder=builder,
            checker=self._checker(Logs(root=self.root, stamp=begun.stamp)),
            artifacts=self._artifacts(begun.stamp),
            scratch=Scratch(
                engine=self._engine,
                owned=self.groups[ArtifactSortArgs].artifacts,
                remove_engine=self.groups[IterationArgs].remove_intermediate,
                description=self.groups[IterationArgs].iteration_info_path,
            ),
            journal=begun.journal,
            observer=self.observer,
            build_failure=Verdict(self.args.build_failure),
            factors=self.factors(),
        )

    def _make_observer(self) -> LogObserver:
        stock = self.groups[CheckCmdArgs]
        if not sys.stdout.isatty() or G_LOGGER.module_severity.get() > G_LOGGER.FINISH:
            return LogObserver(show_output=stock.show_output, hide_fail_output=stock.hide_fail_output)
        from polygraphy_debug_ext.cli.progress import LiveObserver  # noqa: PLC0415 - it is for terminals only

        return LiveObserver(
            self.expected_trials(),
            show_output=stock.show_output,
            hide_fail_output=stock.hide_fail_output,
        )

    def _checker(self, logs: Logs) -> Checker:
        stock = self.groups[CheckCmdArgs]
        if stock.check is None:
            return Question(engine=self._engine, interruption=self.interruption)
        rules = Rules(
            fail_codes=None if stock.fail_codes is None else frozenset(stock.fail_codes),
            ignore_fail_codes=frozenset(stock.ignore_fail_codes or ()),
            skip_codes=frozenset(self.args.skip_codes or ()),
            fail_regexes=None if stock.fail_regexes is None else tuple(stock.fail_regexes),
        )
        return CommandCheck(
            line=self._command(),
            rules=rules,
            nursery=self._nursery,
            interruption=self.interruption,
            logs=logs,
            timeout=self.args.check_timeout,
            repetitions=self.args.check_repeat,
        )

    def _command(self) -> Command:
        return Command(
            words=tuple(self.groups[CheckCmdArgs].check),
            engine=self._engine,
            artifacts_dir=str(self.root),
        )

    def _artifacts(self, stamp: str) -> Artifacts:
        return Artifacts(root=self.root, stamp=stamp, names=tuple(self.groups[ArtifactSortArgs].artifacts))

    def _require_sense(self) -> None:
        for option in ("build_timeout", "check_timeout"):
            value = getattr(self.args, option)
            if value is not None and not value > 0:
                raise UsageError(
                    f"--{option.replace('_', '-')} {value:g} is no time", "Give a number of seconds above 0."
                )
        if self.args.check_repeat < 1:
            raise UsageError(f"--check-repeat {self.args.check_repeat} would never check", "Give 1 or more.")
        if self.groups[CheckCmdArgs].check is not None:
            self._command().require_startable()


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
