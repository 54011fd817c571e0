"""Polygraphy's options of iterative debugging, where a run may be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.tools.debug.subtool.iterative_debug_args import IterativeDebugArgs

if TYPE_CHECKING:
    import argparse


class IterationArgs(IterativeDebugArgs):  # type: ignore[misc]  # Polygraphy has no types
    """
    Iterative Debugging: iteratively debugging.

    Depends on:

        - ArtifactSortArgs
        - CheckCmdArgs
        - TrialArgs
    """

    def parse_impl(self, args: argparse.Namespace) -> None:
        """Parse as Polygraphy does; the engine of a run that is resumed may still be there."""
        path = args.iter_artifact_path
        if args.resume:
            # Polygraphy refuses to start when it exists.
            args.iter_artifact_path = None
        super().parse_impl(args)
        args.iter_artifact_path = self.iter_artifact_path = path
