"""ONNX Runtime sessions as the simulator needs them: quiet, single-threaded, and with nothing optimized away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


def open_session(model: bytes) -> onnxruntime.InferenceSession:
    """A session that computes the model as it is written: an optimizer would remove casts, and with them the rounding."""
    import onnxruntime  # noqa: PLC0415 - importing `tensorrt` must stay light

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
