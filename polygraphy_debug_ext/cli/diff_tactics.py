"""`polygraphy debug diff-tactics`: which tactics make builds fail, and how sure is that?"""

from __future__ import annotations

import argparse

from polygraphy.tools.base import Tool


class DiffTactics(Tool):  # type: ignore[misc]  # Polygraphy has no types
    r"""
    Determine potentially bad TensorRT tactics given sets of good and bad tactic replay files, such as those
    sorted by `debug build`. TensorRT is not needed. Verbose build logs and layer information are read as well.

    Says in one sentence what the builds come to, then lists the suspects, the likeliest first. `with` and `without` are the
    bad/good builds that have a suspect, and that have not; suspects of one class are in the same builds. The probability
    is that of a model in which a build with the culprit fails with one unknown rate, and a build without it with another.
    `stock` is Polygraphy's rule: in every bad build and no good one (strong), in some bad builds and no good one (weak). Ochiai
    and D* are scores of spectrum-based fault localization.

    Builds of different environments (TensorRT, GPU, compute capability, builder flags, model) are not compared with each other.

    Exit status:

        0   suspects were found; or there is no bad build, so that there is nothing to find
        1   wrong options or files: nothing was compared
        3   there are bad builds, but they do not tell which tactic is at fault

    Exit status with --exit-code (of several environments, the first of 10, 12, 11, 0 that one of them has):

        0   no build failed
        1   wrong options or files: nothing was compared
        10  a tactic explains the failures, or some that these builds cannot tell apart, or two together
        11  cannot tell: not enough evidence, no good build, or a choice that is not recorded
        12  no tactic explains the failures

    The typical usage of `debug diff-tactics` is:

        polygraphy debug diff-tactics --dir <artifacts_dir>
    """

    def __init__(self) -> None:
        super().__init__("diff-tactics")

    def add_parser_args(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of stock `inspect diff-tactics`, and ours."""
        _add_places(parser)
        _add_question(parser)
        _add_report(parser)

    def run_impl(self, args: argparse.Namespace) -> int:
        """Compare, and say what was found."""
        # What this imports would be paid for by every start of Polygraphy.
        from polygraphy_debug_ext.cli.short_process import numpy_without_threads  # noqa: PLC0415

        with numpy_without_threads():
            from polygraphy_debug_ext.cli import diff_tactics_run  # noqa: PLC0415 - as above

        return diff_tactics_run.run(args)


def _add_places(parser: argparse.ArgumentParser) -> None:
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


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=["layer", "kernel"],
        default="layer",
        help="What a suspect is: a tactic at one layer, or a kernel at all layers that use it. Defaults to layer.",
    )
    parser.add_argument(
        "--method",
        choices=["posterior", "difference", "ochiai", "dstar"],
        default="posterior",
        help="What suspects are ordered by; the verdict always rests on probabilities. Defaults to posterior.",
    )
    parser.add_argument(
        "--confidence",
        type=probability,
        default=0.95,
        help="The probability that a verdict needs, above 0.5 and below 1. Defaults to 0.95.",
    )
    parser.add_argument(
        "--rates-prior",
        choices=["tentative", "expected", "jeffreys"],
        default="tentative",
        help="What is believed of failure rates beforehand: that builds with the culprit mostly fail and others rarely do (expected), the "
        "same but less firmly (tentative), or nothing (jeffreys). Defaults to tentative.",
    )


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=["text", "json", "markdown", "junit"],
        default="text",
        help="How the answer is written. Where it is not text and goes to standard output, messages go to standard error. Defaults to "
        "text.",
    )
    parser.add_argument("--output", help="The file to write the answer to. Defaults to standard output.")
    parser.add_argument(
        "--save-avoid",
        metavar="FILE",
        help="Write what the verdict names to a list for `debug build --avoid-tactics`. What it names is likely, not proved: "
        "`debug bisect-tactics` proves it.",
    )
    parser.add_argument(
        "--top",
        type=number,
        help="How many suspects to show. Defaults to 10 in text and Markdown, 1000 in JSON.",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="End with a status that tells the verdict, for scripts and CI jobs: see above.",
    )


def probability(text: str) -> float:
    """Return a confidence; less than even odds would name two culprits at once."""
    value = float(text)
    if not 0.5 < value < 1:  # noqa: PLR2004 - even odds
        raise argparse.ArgumentTypeError(f"{text} is not above 0.5 and below 1")
    return value


def number(text: str) -> int:
    """Return a number of suspects."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value
