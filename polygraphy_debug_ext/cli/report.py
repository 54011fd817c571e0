"""`polygraphy debug report`: one HTML page of what an artifacts directory holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.tools.base import Tool

if TYPE_CHECKING:
    import argparse


class Report(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Write one HTML page of what an artifacts directory of `debug build` holds: the verdict, the suspects, a map of layers
    and builds, and all trials with their times, reasons and logs. TensorRT is not needed.

    The page is a single file that loads nothing from anywhere; logs and artifacts are linked relative to where the page is
    written, so move it together with them.

    Exit status:

        0  the page was written
        1  wrong options or files, or nothing to show: no page was written

    The typical usage of `debug report` is:

        polygraphy debug report --dir <artifacts_dir> -o report.html
    """

    def __init__(self) -> None:
        super().__init__("report")

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--dir", required=True, help="The --artifacts-dir of `debug build`.")
        parser.add_argument(
            "-o",
            "--output",
            help="Where to write the page; an earlier report there is replaced. Defaults to 'report.html' in --dir.",
        )
        parser.add_argument("--title", default="Tactic report", help="The title of the page.")

    def run_impl(self, args: argparse.Namespace) -> int:
        """Write the page, and say where it is."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli import report_run  # noqa: PLC0415

        return report_run.run(args.dir, args.output, args.title)
