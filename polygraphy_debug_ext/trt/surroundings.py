"""What builds: versions, GPU, builder flags, network. Builds of different surroundings cannot be compared.

Each is left out where it cannot be told (a machine without a GPU, a network that is no file); asking never fails a build.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from pathlib import Path
from typing import Any, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.trt.module import environment, tensorrt

#: cudaDeviceAttr: the two parts of the compute capability.
_MAJOR, _MINOR = 75, 76
#: More than any cudaDeviceProp takes, whose first 256 bytes are the name.
_PROPERTIES_SIZE: Final = 16384
_CHUNK: Final = 2**20
#: Flags that say how tactics are recorded, not what is built.
_OURS: Final = frozenset({"EDITABLE_TIMING_CACHE", "DISABLE_COMPILATION_CACHE", "DISABLE_TIMING_CACHE"})


def surroundings(model: str | None) -> dict[str, str]:
    """What is known before the first build: versions, host, GPU, and the SHA-256 of the file of the network.

    External data of an ONNX model is not part of the digest. Builder flags (see `flags`) are known when there is a configuration.
    """
    found = {**environment(), **gpu()}
    digest = None if model is None else _digest(Path(model))
    return found if digest is None else {**found, "model": digest}


@cache
def gpu() -> dict[str, str]:
    """`gpu` (its name), `compute_capability`, `driver` and `cuda` (the versions of CUDA that driver and runtime have).

    The runtime is asked that Polygraphy finds for itself. Without one, or without a device, nothing is told.
    """
    try:
        from polygraphy.cuda import wrapper  # noqa: PLC0415 - it loads numpy; not all that build need it

        with G_LOGGER.verbosity(G_LOGGER.CRITICAL):
            library = wrapper().handle
        return _device(library)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with CUDA, it is not told here
        G_LOGGER.extra_verbose(f"The GPU cannot be asked what it is ({type(error).__name__}: {error})")
        return {}


def flags(config: Any, *, converted: str = "") -> str:  # noqa: ANN401 - TensorRT has no types
    """The builder flags that are set, sorted, and the optimization level: `FP16,TF32; optimization level 3`.

    Args:
        config: The configuration, before it is changed to record or to force tactics.
        converted: What the types of the network were converted to, where that is not the builder's to do.
    """
    known = tensorrt().BuilderFlag.__members__
    names = [name for name, flag in known.items() if name not in _OURS and config.get_flag(flag)]
    text = ",".join(sorted([*names, *([f"network converted to {converted}"] if converted else [])]))
    level = getattr(config, "builder_optimization_level", None)
    return text if level is None else f"{text}; optimization level {level}"


def _device(library: Any) -> dict[str, str]:  # noqa: ANN401 - functions of a library have no types
    number = ctypes.c_int()
    found = {}
    for name, function in (("driver", "cudaDriverGetVersion"), ("cuda", "cudaRuntimeGetVersion")):
        if getattr(library, function)(ctypes.byref(number)) == 0 and number.value:
            found[name] = f"{number.value // 1000}.{number.value % 1000 // 10}"
    device = ctypes.c_int()
    if library.cudaGetDevice(ctypes.byref(device)) != 0:
        return found
    properties = ctypes.create_string_buffer(_PROPERTIES_SIZE)
    if library.cudaGetDeviceProperties(properties, device) == 0:
        found["gpu"] = properties.value.decode(errors="replace")
    parts = [
        str(number.value)
        for attribute in (_MAJOR, _MINOR)
        if library.cudaDeviceGetAttribute(ctypes.byref(number), attribute, device) == 0
    ]
    if len(parts) > 1:
        found["compute_capability"] = ".".join(parts)
    return found


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            digest = hashlib.sha256()
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError:
        return None
    return f"sha256:{digest.hexdigest()}"
