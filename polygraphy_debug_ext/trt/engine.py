"""The tactics of an engine file, as its inspector tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polygraphy.backend.trt import util as trt_util

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError, UsageError
from polygraphy_debug_ext.formats.layer_information import parse, tactics
from polygraphy_debug_ext.model import Assignment, Source
from polygraphy_debug_ext.trt.module import environment, tensorrt

if TYPE_CHECKING:
    from pathlib import Path

_REMEDY: Final = (
    "Read it with the TensorRT, and on the kind of GPU, that built it; or export its layer information there."
)


def read(path: Path) -> Assignment:
    """Read the engine at `path`.

    Raises:
        UsageError: if there is no TensorRT, or it has no inspector for this.
        NotThisFormatError: if this TensorRT cannot read it, or it was built without detailed profiling verbosity.
        FormatError: if the file cannot be read.
    """
    trt = tensorrt()
    try:
        plan = path.read_bytes()
    except OSError as error:
        raise FormatError(path, f"cannot be read ({error.strerror})", "Check its permissions.") from error
    try:
        engine = trt.Runtime(trt_util.get_trt_logger()).deserialize_cuda_engine(plan)
    except RuntimeError as error:
        # TensorRT-RTX has no runtime without a GPU.
        raise UsageError(f"it cannot be loaded here ({error})", _REMEDY) from error
    if engine is None:
        raise NotThisFormatError(
            path, f"an engine that {trt.__name__} {trt.__version__} cannot read", _REMEDY
        )
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    return Assignment(
        layers=tactics(parse(text, str(path))),
        source=Source.ENGINE,
        origin=str(path),
        variant="engine",
        fields=frozenset(),
        metadata={trt.__name__: environment()[trt.__name__]},
    )
