"""`polygraphy debug bisect-tactics`: which tactic is at fault, proved by builds that differ in nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.tools.args.base import BaseArgs
from polygraphy.tools.base import Tool
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs, CheckCmdArgs

from polygraphy_debug_ext.cli.groups import builder_groups
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.trial_options import TrialArgs

if TYPE_CHECKING:
    import argparse


class BisectionArgs(BaseArgs):  # type: ignore[misc]  # Polygraphy has no types
    """
    Bisection: where to search, how sure to be, and when to give up.

    Depends on:

        - IterationArgs
    """

    def allows_abbreviation_impl(self) -> bool:
        """Refuse abbreviations: they break the rest of the line that --check takes."""
        return False

    def add_parser_args_impl(self) -> None:
        """Add the options."""
        add = self.group.add_argument
        add(
            "--dir",
            help="A directory with tactic replays in directories called 'good' and 'bad': the --artifacts-dir of "
            "`debug build`. The good and the bad one that differ least are taken.",
        )
        add("--good", help="A good tactic replay, or a directory of such ones. Defaults to 'good' in --dir.")
        add("--bad", help="A bad tactic replay, or a directory of such ones. Defaults to 'bad' in --dir.")
        add(
            "--confidence",
            type=float,
            default=0.99,
            help="How probable a culprit must be before it is put to the proof: between 0.5 and 1. Defaults to 0.99.",
        )
        add(
            "--max-builds",
            metavar="N",
            type=int,
            default=200,
            help="Give up after N builds. Defaults to 200.",
        )
        add(
            "--rates-prior",
            choices=["expected", "jeffreys"],
            default="expected",
            help="What is believed beforehand of the failure rates: 'expected' (a culprit mostly shows, failures without it "
            "are rare) or 'jeffreys' (nothing).",
        )
        add("--search-seed", metavar="N", type=int, default=0, help="Seed of the search. Defaults to 0.")
        add(
            "--dry-run",
            action="store_true",
            help="Say what would be built, and how many builds are expected; build nothing.",
        )
        add(
            "--save-avoid", metavar="FILE", help="Write the confirmed culprits to a list for --avoid-tactics."
        )
        add("--output", metavar="FILE", help="Write the result as JSON.")


class BisectTactics(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Find the tactic that makes builds fail, by building engines that have some tactics of a bad build and all others of a good one.

    It takes a good and a bad tactic replay of one network, and does the following:

    1. It proves the ends: the good tactics pass the `--check` command, the bad ones fail.
    2. It forces mixtures of both, each chosen so that its verdict tells most, until one tactic is left. Checks that fail or
       pass now and then only cost more builds. What counts is what an engine really has, never what was asked for.
    3. It puts the culprit to the proof: the good tactics with it alone must fail, the bad ones without it must pass.

    Each engine is built as `debug build` does, and what it has is filed as polygraphy_debug_replay.json under --artifacts-dir.
    A run that was interrupted goes on with --resume.

    Exit status:

        0    a culprit, or a set of culprits, is confirmed
        1    wrong options or files, or something that must be mended before the run can go on
        3    the builds allowed by --max-builds, or those that can be made, did not decide
        4    the ends do not reproduce: the bad tactics pass, or the good ones fail
        5    no tactic explains the failures
        130  interrupted by SIGINT (Ctrl-C)
        143  terminated by SIGTERM

    The typical usage of `debug bisect-tactics` is:

        polygraphy debug bisect-tactics <model> [trt_build_options...] --dir <artifacts_dir_of_debug_build> \
            --check <check_command>
    """

    def __init__(self) -> None:
        super().__init__("bisect-tactics")

    def get_subscriptions_impl(self) -> list[Any]:
        """Return the groups of `debug build`, and ours."""
        return [
            CheckCmdArgs(),
            ArtifactSortArgs(allow_no_artifacts_warning=False),
            IterationArgs(
                iter_art_opt_default="polygraphy_debug.engine",
                allow_until_opt=False,
                allow_debug_replay=False,
            ),
            TrialArgs(),
            BisectionArgs(),
            *builder_groups(),
        ]

    def show_start_end_logging_impl(self, args: argparse.Namespace) -> bool:
        """Log the command at the start and at the end, as stock subtools do."""
        del args
        return True

    def run_impl(self, args: argparse.Namespace) -> int:
        """Search."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli import bisect_run  # noqa: PLC0415

        return bisect_run.run(self.arg_groups, args)
