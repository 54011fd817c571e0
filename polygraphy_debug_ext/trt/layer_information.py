"""What an engine says about its layers, where it was built with detailed profiling verbosity (Polygraphy's default)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.backend.trt import util as trt_util
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats.layer_information import parse
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from polygraphy_debug_ext.formats.layer_information import EngineLayer


def layers_of(plan: Any, lines: str = "") -> tuple[EngineLayer, ...]:  # noqa: ANN401 - a buffer of TensorRT's
    """Return the layers of a serialized engine; none, if it cannot be asked.

    `lines` is the list of the layers in the log, where it had one: an engine of TensorRT-RTX can be asked on a GPU only, but may
    well be built without one.
    """
    try:
        return layer_lines.parse(lines, "list of layers in the log") if lines else _layers(plan)
    except Exception as error:  # noqa: BLE001 - names are a courtesy: whatever is wrong, the build has succeeded
        G_LOGGER.extra_verbose(f"The engine does not tell its layers ({type(error).__name__}: {error})")
        return ()


def _layers(plan: Any) -> tuple[EngineLayer, ...]:  # noqa: ANN401
    trt = tensorrt()
    if trt.__name__ == "tensorrt_rtx":
        # The log has all that its engines tell, and takes no GPU.
        return ()
    engine = trt.Runtime(trt_util.get_trt_logger()).deserialize_cuda_engine(plan)
    if engine is None:
        return ()
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    return parse(text, "layer information of the engine")
