"""Writes replays; and records from the engine alone, where TensorRT tells its choices in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source
from polygraphy_debug_ext.trt.joining import join
from polygraphy_debug_ext.trt.module import environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer


class EngineRecorder:
    """Writes the kernels that the engine tells to a replay. They cannot be forced.

    Args:
        path: Where the replay goes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Leave the configuration alone."""

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Write the replay."""
        del config
        if not layers:
            G_LOGGER.warning("The engine tells nothing of its layers, so that no tactics were recorded.")
            return
        assignment = Assignment(
            layers=join({}, (), layers),
            source=Source.ENGINE,
            fields=frozenset(),
            metadata=dict(environment()),
        )
        G_LOGGER.info(f"Saving tactic replay file to {self._path}")
        write_replay(self._path, assignment)


def write_replay(path: Path, assignment: Assignment) -> None:
    """Write a replay.

    Raises:
        BuildError: if it cannot be written.
    """
    try:
        replay.write(path, assignment)
    except OSError as error:
        raise BuildError(
            f"The tactic replay {path} cannot be written ({error.strerror})",
            "Make room or mend the permissions.",
        ) from error
