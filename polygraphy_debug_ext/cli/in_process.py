"""Builds inside this process, as stock Polygraphy does."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.model import BuildFailure, BuildResult, Reason
from polygraphy_debug_ext.trt.build import EngineBuilder
from polygraphy_debug_ext.trt.module import environment

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

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
        return environment()

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        """Build an engine."""
        del proposal
        self._interruption.check()
        begun = time.monotonic()
        os.environ[ITERATION] = str(index)
        failure = None
        try:
            with G_LOGGER.indent():
                self._builder.build()
        except BuildError as error:
            failure = BuildFailure(reason=Reason.BUILD_ERROR, text=error.problem)
        return BuildResult(seconds=time.monotonic() - begun, failure=failure)

    def close(self) -> None:
        """Nothing is left to do."""
        os.environ.pop(ITERATION, None)


def in_process_builder(
    groups: Mapping[type, Any], args: argparse.Namespace, interruption: Interruption
) -> InProcessBuilder:
    """Return a builder for these options."""
    return InProcessBuilder(EngineBuilder(groups, args), interruption)
