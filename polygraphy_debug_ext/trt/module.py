"""The module `tensorrt`, or `tensorrt_rtx` if Polygraphy was told to use that one. It is imported when it is asked for."""

from __future__ import annotations

import importlib
import os
import platform
from typing import Any, Final

import polygraphy

from polygraphy_debug_ext import __version__
from polygraphy_debug_ext.errors import UsageError

#: Read by Polygraphy when it is imported.
_USE_RTX: Final = "POLYGRAPHY_USE_TENSORRT_RTX"


def tensorrt() -> Any:  # noqa: ANN401 - it has no types
    """Import TensorRT.

    Raises:
        UsageError: if it is not there, or if this Polygraphy cannot work with it.
    """
    if os.environ.get(_USE_RTX, "0") != "0" and not hasattr(polygraphy.config, "USE_TENSORRT_RTX"):
        raise UsageError(
            f"{_USE_RTX} is set, but Polygraphy {polygraphy.__version__} does not know TensorRT-RTX",
            "Upgrade Polygraphy, or unset it.",
        )
    rtx = getattr(polygraphy.config, "USE_TENSORRT_RTX", False)
    name = "tensorrt_rtx" if rtx else "tensorrt"
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        package = "tensorrt-rtx-cu13" if rtx else "tensorrt"
        raise UsageError(
            f"The module {name} cannot be imported ({error})",
            f"Install it (python -m pip install {package}), or rehearse with polygraphy-trt-sim.",
        ) from error
    if rtx:
        _require_new_polygraphy(module)
    return module


def _require_new_polygraphy(module: Any) -> None:  # noqa: ANN401
    """Polygraphy 0.49.26, for one, asks for a flag that TensorRT-RTX 1.5 and later do not have."""
    from polygraphy.backend.trt import CreateNetwork  # noqa: PLC0415 - Polygraphy loads it when it is needed

    if CreateNetwork().explicit_batch and not hasattr(module.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH"):
        raise UsageError(
            f"Polygraphy {polygraphy.__version__} is too old for {module.__name__} {module.__version__}",
            "Upgrade Polygraphy.",
        )


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
