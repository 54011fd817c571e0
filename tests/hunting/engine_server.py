"""Judges engines for `client.py`: a check as cheap as a check can be, so that hundreds of them take seconds.

Started under `polygraphy-trt-sim` with the path of a socket. A request is one line of JSON: the settings of the simulator
(which faults are planted), the engine, the input and the right output (`.npy`). The answer is the exit status of the check.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorrt as trt

TOLERANCE = 0.02


class Quiet(trt.ILogger):  # type: ignore[misc]  # TensorRT has no types
    """A logger that says nothing."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)

    def log(self, severity: object, msg: str) -> None:
        del severity, msg


def outputs(path: str, image: np.ndarray[Any, Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Run an engine with one input and one output."""
    engine = trt.Runtime(Quiet()).deserialize_cuda_engine(Path(path).read_bytes())
    context = engine.create_execution_context()
    buffers = {
        trt.TensorIOMode.INPUT: np.ascontiguousarray(image),
        trt.TensorIOMode.OUTPUT: np.empty(shape, np.float32),
    }
    for index in range(engine.num_io_tensors):
        name = engine.get_tensor_name(index)
        address = buffers[engine.get_tensor_mode(name)].ctypes.data_as(ctypes.c_void_p).value
        assert context.set_tensor_address(name, address)
    assert context.execute_async_v3(0)
    return buffers[trt.TensorIOMode.OUTPUT]


def judge(request: dict[str, str]) -> int:
    """Return 0 if the outputs are right, else 1."""
    os.environ["POLYGRAPHY_TRT_SIM"] = request["simulator"]
    right = np.load(request["output"])
    found = outputs(request["engine"], np.load(request["input"]), right.shape)
    return 0 if np.allclose(found, right, rtol=TOLERANCE, atol=TOLERANCE) else 1


def main() -> None:
    """Serve one request after the other, until somebody kills this process."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sys.argv[1])
        server.listen()
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rw") as stream:
                stream.write(f"{judge(json.loads(stream.readline()))}\n")


if __name__ == "__main__":
    main()
