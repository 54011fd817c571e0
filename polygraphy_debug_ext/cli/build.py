"""`polygraphy debug build`: builds again and again, checks each engine, and files what is good and what is bad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.tools.base import Tool
from polygraphy.tools.debug.subtool.iterative_debug_args import ArtifactSortArgs, CheckCmdArgs

from polygraphy_debug_ext.cli.groups import builder_groups
from polygraphy_debug_ext.cli.iteration_options import IterationArgs
from polygraphy_debug_ext.cli.trial_options import TrialArgs

if TYPE_CHECKING:
    import argparse


class Build(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Repeatedly build an engine to isolate faulty tactics.

    `debug build` follows the same general process as other `debug` subtools (refer to the help output
    of the `debug` tool for more background information and details).

    Specifically, it does the following during each iteration:

    1. Builds a TensorRT engine, in a process of its own, and saves it as `polygraphy_debug.engine` in the current
        directory by default. If the build fails, crashes or hangs, the layer and the tactic that were being timed are
        reported, and the next iteration begins in a fresh process.
    2. Evaluates it using the `--check` command if it was provided, or in interactive mode otherwise.
        In the command, {engine}, {iteration} (from 0) and {artifacts_dir} are replaced; the environment has the same values
        as POLYGRAPHY_DEBUG_ENGINE, POLYGRAPHY_DEBUG_ITERATION and POLYGRAPHY_DEBUG_ARTIFACTS_DIR.
    3. Sorts files specified by `--artifacts` into `good` and `bad` directories based on (2), and into `unresolved` if the
        iteration tells nothing about the tactics. This is useful for sorting tactic replays, which can then be further
        analyzed with `debug diff-tactics`.

    Everything that happens is written to `trials.jsonl` in the artifacts directory, and what builds and checks say to `logs`.
    A run that was interrupted, or whose machine went down, goes on with --resume.

    Exit status:

        0    the run is finished
        1    wrong options, or something that must be mended before the run can go on
        2    options that are not known
        3    --until confident: --max-iterations were made, some failed, and they do not decide
        130  interrupted by SIGINT (Ctrl-C); the trial in hand was ended. A second one ends the process at once
        143  terminated by SIGTERM; the same

    The typical usage of `debug build` is:

        polygraphy debug build <model> [trt_build_options...] [--save-tactics <replay_file>] \
            [--artifacts <replay_file>] --until <num_iterations> \
            [--check <check_command>]

    `polygraphy run` is usually a good choice for the `--check` command.
    """

    def __init__(self) -> None:
        super().__init__("build")

    def get_subscriptions_impl(self) -> list[Any]:
        """Return the groups of the stock tool, and ours."""
        return [
            CheckCmdArgs(),
            ArtifactSortArgs(allow_no_artifacts_warning=True),
            IterationArgs(
                iter_art_opt_default="polygraphy_debug.engine", allow_until_opt=True, allow_debug_replay=False
            ),
            TrialArgs(),
            *builder_groups(),
        ]

    def show_start_end_logging_impl(self, args: argparse.Namespace) -> bool:
        """Log the command at the start and at the end, as the stock tool does."""
        del args
        return True

    def run_impl(self, args: argparse.Namespace) -> int:
        """Run the trials."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli import build_run  # noqa: PLC0415

        return build_run.run(self.arg_groups, args)
