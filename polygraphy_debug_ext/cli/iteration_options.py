"""Polygraphy's options of iterative debugging, where a run may be resumed, and may go on until its builds decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from polygraphy.logger import G_LOGGER
from polygraphy.tools.debug.subtool.iterative_debug_args import IterativeDebugArgs

if TYPE_CHECKING:
    import argparse

_CONFIDENT: Final = "confident"
_CONFIDENCE: Final = 0.95
_MOST: Final = 200


class Confident(NamedTuple):
    """Until the builds decide with so much confidence, or `most` builds are made."""

    confidence: float
    most: int


class IterationArgs(IterativeDebugArgs):  # type: ignore[misc]  # Polygraphy has no types
    """
    Iterative Debugging: iteratively debugging.

    Depends on:

        - ArtifactSortArgs
        - CheckCmdArgs
        - TrialArgs
    """

    def add_parser_args_impl(self) -> None:
        """Add Polygraphy's options, and how many iterations there may be."""
        super().add_parser_args_impl()
        if not self._allow_until_opt:
            return
        until = next(action for action in self.group._group_actions if action.dest == "until")  # noqa: SLF001 - argparse tells in no other way
        until.help += (
            f"'{_CONFIDENT}' will keep running until the tactic replays that were filed decide: a tactic is the culprit with a "
            f"probability of {_CONFIDENCE}, or no tactic explains the failures; '{_CONFIDENT}=0.99' asks for more. It needs "
            "--save-tactics, and the replay among --artifacts. "
        )
        self.group.add_argument(
            "--max-iterations",
            metavar="N",
            type=int,
            default=_MOST,
            help=f"How many iterations --until {_CONFIDENT} may take. Defaults to {_MOST}.",
        )

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Parse as Polygraphy does; the engine of a run that is resumed may still be there."""
        path, until = args.iter_artifact_path, getattr(args, "until", None)
        if args.resume:
            # Polygraphy refuses to start when it exists.
            args.iter_artifact_path = None
        confident = None
        if isinstance(until, str) and until.partition("=")[0] == _CONFIDENT:
            confident = Confident(_confidence(until), args.max_iterations)
            args.until = None
        super().parse_impl(args)
        args.iter_artifact_path = self.iter_artifact_path = path
        if confident is not None:
            self.until = confident
            args.until = until


def _confidence(until: str) -> float:
    value = until.partition("=")[2]
    try:
        confidence = float(value) if value else _CONFIDENCE
    except ValueError:
        confidence = -1.0
    if not 0.5 < confidence < 1:  # noqa: PLR2004 - at one half, guessing is as good
        G_LOGGER.critical(f"--until {until}: the confidence must be a number between 0.5 and 1")
    return confidence
