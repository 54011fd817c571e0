"""Writes replays; and records from the engine alone, where TensorRT tells its choices in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source
from polygraphy_debug_ext.trt.joining import join

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer

#: What TensorRT-RTX writes for a kernel that is compiled on the device (convolutions and pooling of 1.7).
_STUB: Final = "__myelin_CASK_STUB"


class EngineRecorder:
    """Writes the kernels that the engine tells to a replay. They cannot be forced.

    Args:
        path: Where the replay goes.
        metadata: What builds.
    """

    raised = None

    def __init__(self, path: Path, metadata: Mapping[str, object]) -> None:
        self._path = path
        self._metadata = metadata

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Leave the configuration alone."""

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Write the replay."""
        del config
        if not layers:
            G_LOGGER.warning(
                "The engine tells nothing of its layers, so that no tactics were recorded. Was it built without "
                "--profiling-verbosity detailed?"
            )
            return
        stubs = sum(layer.kernel == _STUB for layer in layers)
        if stubs:
            G_LOGGER.warning(
                f"{stubs} of {len(layers)} layers have no kernel yet: it is chosen on the device, when the engine is first "
                "loaded there. The replay does not tell which.",
                mode=LogMode.ONCE,
            )
        assignment = Assignment(
            layers=join({}, (), layers),
            source=Source.ENGINE,
            fields=frozenset(),
            metadata=self._metadata,
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
