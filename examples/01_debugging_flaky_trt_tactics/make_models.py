"""Makes the two networks of this example: `identity.onnx` and `convnet.onnx`, the same ones at every run."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.float32]

OPSET = 13
#: Written so that ONNX Runtime 1.17 and later can read it.
IR_VERSION = 8


def identity() -> onnx.ModelProto:
    """One Identity node."""
    node = helper.make_node("Identity", ["x"], ["y"], name="identity")
    return model([node], {"x": [1, 1, 2, 2]}, {"y": [1, 1, 2, 2]}, {})


def convnet() -> onnx.ModelProto:
    """Four convolutions, one of them around a residual connection, and a classifier."""
    random = np.random.default_rng(0)

    def weight(*shape: int) -> Array:
        return np.asarray(random.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:])), np.float32)

    def bias(size: int) -> Array:
        return np.asarray(random.standard_normal(size) * 0.1, np.float32)

    weights = {
        "w1": weight(16, 3, 3, 3), "b1": bias(16),
        "w2": weight(16, 16, 3, 3), "b2": bias(16),
        "w3": weight(32, 16, 3, 3), "b3": bias(32),
        "w4": weight(32, 32, 1, 1), "b4": bias(32),
        "w5": weight(10, 32), "b5": bias(10),
    }  # fmt: skip
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], name="conv1", **same),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", **same),
        helper.make_node("Add", ["c2", "r1"], ["a2"], name="add2"),
        helper.make_node("Relu", ["a2"], ["r2"], name="relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], name="pool2", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p2", "w3", "b3"], ["c3"], name="conv3", **same),
        helper.make_node("Relu", ["c3"], ["r3"], name="relu3"),
        helper.make_node("Conv", ["r3", "w4", "b4"], ["c4"], name="conv4", kernel_shape=[1, 1]),
        helper.make_node("Relu", ["c4"], ["r4"], name="relu4"),
        helper.make_node("GlobalAveragePool", ["r4"], ["p4"], name="pool4"),
        helper.make_node("Flatten", ["p4"], ["f4"], name="flatten"),
        helper.make_node("Gemm", ["f4", "w5", "b5"], ["scores"], name="fc", transB=1),
    ]
    return model(nodes, {"image": [1, 3, 32, 32]}, {"scores": [1, 10]}, weights)


def model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int]],
    outputs: dict[str, list[int]],
    weights: dict[str, Array],
) -> onnx.ModelProto:
    """Put a checked model together; names go with shapes, all of them FP32."""
    graph = helper.make_graph(
        nodes,
        "example",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(made, full_check=True)
    return made


def main() -> None:
    """Write both into the directory that is named (the current one by default)."""
    directory = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    for name, made in (("identity", identity()), ("convnet", convnet())):
        onnx.save(made, directory / f"{name}.onnx")


if __name__ == "__main__":
    main()
