"""The module `tensorrt`, or `tensorrt_rtx` if Polygraphy was told to use that one. It is imported when it is asked for."""

from __future__ import annotations

import importlib
import platform
from typing import Any

import polygraphy

from polygraphy_debug_ext import __version__
from polygraphy_debug_ext.errors import UsageError


def tensorrt() -> Any:  # noqa: ANN401 - it has no types
    """Import TensorRT.

    Raises:
        UsageError: if it is not there.
    """
    # Polygraphy before 0.49.27 does not know TensorRT-RTX.
    name = "tensorrt_rtx" if getattr(polygraphy.config, "USE_TENSORRT_RTX", False) else "tensorrt"
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"The module {name} cannot be imported ({error})",
            f"Install it (python -m pip install {name.replace('_', '-')}), or rehearse with polygraphy-trt-sim.",
        ) from error


def environment() -> dict[str, str]:
    """What builds here: builds of another environment cannot be compared with ours."""
    trt = tensorrt()
    return {
        trt.__name__: str(getattr(trt, "__version__", "unknown")),
        "polygraphy": polygraphy.__version__,
        "polygraphy-debug-ext": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "host": platform.node(),
    }
