"""Builds inside this process, as stock Polygraphy does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.model import BuildFailure, BuildResult, Reason
from polygraphy_debug_ext.trials.worker import ForcedBuild
from polygraphy_debug_ext.trt.build import EngineBuilder, Report

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.model import Proposal
    from polygraphy_debug_ext.trials.interruption import Interruption

#: Tells whoever builds which trial this is; `polygraphy-trt-sim --seed` depends on it.
ITERATION = "POLYGRAPHY_DEBUG_ITERATION"


class InProcessBuilder:
    """Builds here. What crashes takes the run with it."""

    def __init__(self, engine_builder: EngineBuilder, interruption: Interruption) -> None:
        self._builder = engine_builder
        self._interruption = interruption

    def start(self) -> dict[str, str]:
        """Load the network."""
        self._builder.load()
        return self._builder.environment

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        """Build an engine."""
        del proposal
        return self._built(index, None, ()).result

    def build_forced(self, index: int, force: Path, caches: Sequence[Path] = ()) -> ForcedBuild:
        """Build an engine with the tactics of a replay, as the worker does."""
        return self._built(index, force, caches)

    def _built(self, index: int, force: Path | None, caches: Sequence[Path]) -> ForcedBuild:
        self._interruption.check()
        begun = time.monotonic()
        os.environ[ITERATION] = str(index)
        failure = None
        report = Report()
        try:
            with G_LOGGER.indent():
                report = self._builder.build(force, caches)
        except BuildError as error:
            failure = BuildFailure(reason=Reason.BUILD_ERROR, text=error.problem)
        return ForcedBuild(
            result=BuildResult(seconds=time.monotonic() - begun, failure=failure),
            not_honoured=report.not_honoured,
            void=report.void,
        )

    def close(self) -> None:
        """Nothing is left to do."""
        os.environ.pop(ITERATION, None)


def in_process_builder(
    groups: Mapping[type, Any], args: argparse.Namespace, interruption: Interruption
) -> InProcessBuilder:
    """Return a builder for these options."""
    return InProcessBuilder(EngineBuilder(groups, args), interruption)
