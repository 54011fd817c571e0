"""A check that fails if an engine has a kernel: `reject_kernel.py ENGINE KERNEL`.

It makes a culprit of any kernel, on any machine, without a fault. The engine's layer information is read through TensorRT; Polygraphy
builds engines with the detailed profiling verbosity that it takes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tensorrt as trt


def kernels(engine_path: str) -> set[str]:
    """Return the names of all kernels in an engine."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    engine = runtime.deserialize_cuda_engine(Path(engine_path).read_bytes())
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    return {layer.get("TacticName", "") for layer in json.loads(text, strict=False)["Layers"]}


def main() -> int:
    """Return 1 if the engine has the kernel."""
    engine_path, kernel = sys.argv[1:]
    if kernel in kernels(engine_path):
        print(f"{engine_path} has the kernel {kernel}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
