"""What an engine says about its layers: the names of the kernels, where it was built with detailed profiling verbosity."""

from __future__ import annotations

import json
from typing import Any

from polygraphy.backend.trt import util as trt_util
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.trt.module import tensorrt


def kernels(plan: Any) -> dict[str, str]:  # noqa: ANN401 - a buffer of TensorRT's
    """Return the kernel of each layer of a serialized engine, as far as it says; none, if it cannot be asked."""
    try:
        return _kernels(plan)
    except Exception as error:  # noqa: BLE001 - names are a courtesy: whatever is wrong, the build has succeeded
        G_LOGGER.extra_verbose(f"The engine does not tell its kernels ({type(error).__name__}: {error})")
        return {}


def _kernels(plan: Any) -> dict[str, str]:  # noqa: ANN401
    trt = tensorrt()
    runtime = trt.Runtime(trt_util.get_trt_logger())
    engine = runtime.deserialize_cuda_engine(plan)
    if engine is None:
        return {}
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    # TensorRT 8.6 writes control characters as they are.
    layers = json.loads(text, strict=False).get("Layers", [])
    return {
        layer["Name"]: layer["TacticName"]
        for layer in layers
        if isinstance(layer, dict) and layer.get("Name") and layer.get("TacticName")
    }
