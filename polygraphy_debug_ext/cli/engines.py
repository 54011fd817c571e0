"""Engines among the files: their tactics are read through TensorRT's inspector, where TensorRT is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import NotThisFormatError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from polygraphy_debug_ext.model import Assignment


def read_engine(path: Path) -> Assignment:
    """Read the tactics of an engine.

    Raises:
        NotThisFormatError: if this TensorRT cannot read it, or there is none, or the engine does not tell its tactics.
        FormatError: if the file cannot be read.
    """
    from polygraphy_debug_ext.trt.engine import read  # noqa: PLC0415 - nobody else needs TensorRT

    try:
        return read(path)
    except UsageError as error:
        raise NotThisFormatError(path, f"an engine: {error.problem}", error.remedy) from error
