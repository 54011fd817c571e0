"""`polygraphy debug diff-tactics`: which tactics do bad builds have that good builds do not have?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.tools.base import Tool

if TYPE_CHECKING:
    import argparse


class DiffTactics(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Determine potentially bad TensorRT tactics given sets of good and bad tactic replay files, such as those
    sorted by `debug build`. TensorRT is not needed.

    A tactic is suspect if a bad build has it at a layer, and no good build has it there. How many builds stand
    behind each suspect is shown, those that are in every bad build come first.

    Replay files of every Polygraphy version since 0.27 are read. Files of another kind are left out and named.

    Exit status:

        0  suspects were found; or there is no bad build, so that there is nothing to find
        1  wrong options or files: nothing was compared
        3  there are bad builds, but they do not tell which tactic is at fault

    The typical usage of `debug diff-tactics` is:

        polygraphy debug diff-tactics --dir <artifacts_dir>
    """

    def __init__(self) -> None:
        super().__init__("diff-tactics")

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of stock `inspect diff-tactics`."""
        parser.add_argument(
            "--dir",
            help="A directory with tactic replay files, such as the ones saved by --save-tactics, in directories called "
            "'good' and 'bad': the --artifacts-dir of `debug build`.",
        )
        parser.add_argument(
            "--good",
            help="Either a directory with good tactic replay files or a single good file. Defaults to 'good' in --dir.",
        )
        parser.add_argument(
            "--bad",
            help="Either a directory with bad tactic replay files or a single bad file. Defaults to 'bad' in --dir.",
        )

    def run_impl(self, args: argparse.Namespace) -> int:
        """Compare, and say what was found."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli import diff_tactics_run  # noqa: PLC0415

        return diff_tactics_run.run(args.dir, args.good, args.bad)
