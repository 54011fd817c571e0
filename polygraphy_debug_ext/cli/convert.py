"""`polygraphy debug convert-tactics`: tactics from any source, as a replay, a table or a timing cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.tools.base import Tool

if TYPE_CHECKING:
    import argparse


class ConvertTactics(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Read the tactics of builds from any source, and write them in another form.

    Sources are recognised by their content: tactic replays of every Polygraphy version, verbose build logs of TensorRT 7 to 11
    (of trtexec, the Python API, Polygraphy, ONNX Runtime, Triton), layer information (JSON or text), each as it is or compressed by
    gzip, xz or zstd; and engines, where the TensorRT that built them is installed.

    The output is a tactic replay (.json), comma-separated values (.csv) or a timing cache (.cache, .timing) for
    `trtexec --timingCacheFile`. A replay holds one build; of several, each is written to its own file in the directory that
    --output names. A timing cache can be made of replays that were recorded from the editable timing cache (TensorRT 10.8 and
    later), and needs TensorRT.

    The typical usage of `debug convert-tactics` is:

        polygraphy debug convert-tactics build.log -o replay.json
        polygraphy debug convert-tactics replays/good/replay_0.json -o tactics.cache
    """

    def __init__(self) -> None:
        super().__init__("convert-tactics")

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument(
            "inputs", metavar="IN", nargs="+", help="Files, or directories of files, to read."
        )
        parser.add_argument(
            "-o", "--output", required=True, help="The file to write; or, for several replays, a directory."
        )
        parser.add_argument(
            "--to",
            choices=["replay", "csv", "timing-cache"],
            help="What to write. By default the extension of the output decides.",
        )

    def run_impl(self, args: argparse.Namespace) -> int:
        """Read and write."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli import convert_run  # noqa: PLC0415

        return convert_run.run(args.inputs, args.output, args.to)
