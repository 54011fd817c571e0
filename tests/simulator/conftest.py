"""Small models, a workbench that uses the simulator in this process, and a launcher for real child processes."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.simulator import settings
from polygraphy_debug_ext.simulator.module import build_module
from polygraphy_debug_ext.simulator.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

TIMEOUT = 60
WEAK = ("FP16", "INT8", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS")
Array = np.ndarray[Any, np.dtype[Any]]
# An object of a module that is made at run time: there are no types for it.
Made: TypeAlias = Any


class Models:
    """Builds ONNX models; weights depend on nothing but the seed."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(7)

    def weight(self, name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array((self._rng.standard_normal(shape) * 0.3).astype(np.float32), name)

    def make(
        self,
        nodes: Sequence[onnx.NodeProto],
        inputs: Mapping[str, Sequence[int | str]],
        outputs: Sequence[str],
        weights: Sequence[onnx.TensorProto] = (),
        opset: int = 13,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            list(nodes),
            "net",
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
            list(weights),
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)

    def identity(self) -> onnx.ModelProto:
        return self.make([helper.make_node("Identity", ["x"], ["y"])], {"x": [1, 1, 2, 2]}, ["y"])

    def conv_net(self, batch: int | str = 1) -> onnx.ModelProto:
        """Batch norm, residual connection, pooling, a pointwise chain, a fully connected layer and softmax: ten layers."""
        norm = [
            numpy_helper.from_array(np.abs(self._rng.standard_normal(8)).astype(np.float32) + 0.1, f"n{i}")
            for i in range(4)
        ]
        node = helper.make_node
        nodes = [
            node("Conv", ["x", "w0", "b0"], ["t0"], name="conv0", pads=[1] * 4),
            node("BatchNormalization", ["t0", "n0", "n1", "n2", "n3"], ["t1"], name="bn0"),
            node("Relu", ["t1"], ["t2"], name="relu0"),
            node("Conv", ["t2", "w1"], ["t3"], name="conv1", pads=[1] * 4),
            node("Relu", ["t3"], ["t4"], name="relu1"),
            node("Conv", ["t4", "w2"], ["t5"], name="conv2", pads=[1] * 4),
            node("Add", ["t5", "t2"], ["t6"], name="add2"),
            node("Relu", ["t6"], ["t7"], name="relu2"),
            node("MaxPool", ["t7"], ["t8"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["t8", "w3"], ["t9"], name="conv3", pads=[1] * 4),
            node("Sigmoid", ["t9"], ["t10"], name="sig3"),
            node("Mul", ["t10", "t9"], ["t11"], name="mul3"),
            node("GlobalAveragePool", ["t11"], ["t12"], name="gap"),
            node("Flatten", ["t12"], ["t13"], name="flat"),
            node("Gemm", ["t13", "w4", "b4"], ["t14"], name="fc"),
            node("Softmax", ["t14"], ["y"], name="soft", axis=1),
        ]
        sizes = {"w0": (8, 3, 3, 3), "b0": (8,), "w1": (8, 8, 3, 3), "w2": (8, 8, 3, 3), "w3": (16, 8, 3, 3),
                 "w4": (16, 10), "b4": (10,)}  # fmt: skip
        weights = [self.weight(name, *shape) for name, shape in sizes.items()]
        return self.make(nodes, {"x": [batch, 3, 16, 16]}, ["y"], [*weights, *norm])

    def attention(self, head: int = 8) -> onnx.ModelProto:
        """Scaled dot-product attention with two heads, and with the reshapes that exporters write."""
        node, width = helper.make_node, 2 * head
        shape = numpy_helper.from_array(np.array([1, 8, 2, head], np.int64), "split")
        scale = numpy_helper.from_array(np.array(0.35, np.float32), "scale")
        nodes = []
        for side in "qkv":
            nodes += [
                node("MatMul", ["x", f"w{side}"], [f"{side}0"], name=f"{side}_proj"),
                node("Reshape", [f"{side}0", "split"], [f"{side}1"], name=f"{side}_split"),
                node(
                    "Transpose",
                    [f"{side}1"],
                    [f"{side}2"],
                    name=f"{side}_heads",
                    perm=[0, 2, 3, 1] if side == "k" else [0, 2, 1, 3],
                ),
            ]
        nodes += [
            node("MatMul", ["q2", "k2"], ["s0"], name="scores"),
            node("Mul", ["s0", "scale"], ["s1"], name="scaled"),
            node("Softmax", ["s1"], ["s2"], name="weights", axis=-1),
            node("MatMul", ["s2", "v2"], ["y"], name="mix"),
        ]
        return self.make(
            nodes,
            {"x": [1, 8, width]},
            ["y"],
            [*(self.weight(f"w{s}", width, width) for s in "qkv"), shape, scale],
        )

    def half(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The same network in FP16: its weights, inputs and outputs."""
        halved = onnx.ModelProto()
        halved.CopyFrom(model)
        graph = halved.graph
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.FLOAT:
                values = numpy_helper.to_array(tensor).astype(np.float16)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        for value in (*graph.input, *graph.output):
            value.type.tensor_type.elem_type = TensorProto.FLOAT16
        return halved

    def dynamic(self) -> onnx.ModelProto:
        """Batch and length are dynamic, and the reshape is computed from the shape of the input."""
        node = helper.make_node
        nodes = [
            node("MatMul", ["x", "w"], ["h"], name="proj"),
            node("Relu", ["h"], ["r"], name="act"),
            node("Shape", ["r"], ["s"], name="shape"),
            node("Gather", ["s", "zero"], ["b"], name="batch"),
            node("Concat", ["b", "minus"], ["target"], name="target_shape", axis=0),
            node("Reshape", ["r", "target"], ["y"], name="flat"),
        ]
        constants = [
            numpy_helper.from_array(np.array([0], np.int64), "zero"),
            numpy_helper.from_array(np.array([-1], np.int64), "minus"),
            self.weight("w", 4, 6),
        ]
        return self.make(nodes, {"x": ["batch", "length", 4]}, ["y"], constants)


@dataclass
class Workbench:
    """The simulator in this process, as one personality."""

    trt: Made
    logger: Made
    lines: list[tuple[str, str]] = field(default_factory=list)

    def text(self, severity: str | None = None) -> str:
        return "\n".join(text for level, text in self.lines if severity in {None, level})

    def network(self, model: onnx.ModelProto) -> tuple[Made, Made]:
        builder = self.trt.Builder(self.logger)
        network = builder.create_network(0)
        parser = self.trt.OnnxParser(network, self.logger)
        assert parser.parse(model.SerializeToString()), [
            str(parser.get_error(i)) for i in range(parser.num_errors)
        ]
        return builder, network

    def config(self, builder: Made, *flags: str) -> Made:
        config = builder.create_builder_config()
        config.profiling_verbosity = self.trt.ProfilingVerbosity.DETAILED
        for flag in flags:
            # Where precisions follow from the network alone there are no flags for them.
            if flag not in WEAK or hasattr(self.trt.BuilderFlag, flag):
                config.set_flag(getattr(self.trt.BuilderFlag, flag))
        return config

    def build(
        self, model: onnx.ModelProto, *flags: str, prepare: Callable[[Made, Made, Made], None] | None = None
    ) -> bytes | None:
        """The plan, or None; `prepare` gets builder, network and configuration."""
        builder, network = self.network(model)
        config = self.config(builder, *flags)
        if prepare is not None:
            prepare(builder, network, config)
        plan = builder.build_serialized_network(network, config)
        return None if plan is None else bytes(plan)

    def engine(self, plan: bytes | None) -> Made:
        assert plan is not None, self.text("ERROR")
        return self.trt.Runtime(self.logger).deserialize_cuda_engine(plan)

    def information(self, plan: bytes | None) -> dict[str, Any]:
        """The layer information of an engine."""
        inspector = self.engine(plan).create_engine_inspector()
        text = inspector.get_engine_information(self.trt.LayerInformationFormat.JSON)
        found: dict[str, Any] = json.loads(text)
        return found

    def tactics(self, plan: bytes | None) -> dict[str, str]:
        return {
            # The numbers of graph and position differ from build to build.
            re.sub(r"_myl\d+_\d+$", "", layer.name): layer.kernel + str(layer.tactic)
            for layer in self.engine(plan)._engine.layers
        }

    def run(self, engine: Made, profile: int = 0, **feeds: Array) -> dict[str, Array] | None:
        """The outputs, or None if the execution failed."""
        context = engine.create_execution_context()
        assert context.set_optimization_profile_async(profile, 0)
        allocator = self.allocator()
        held = {name: np.ascontiguousarray(value) for name, value in feeds.items()}
        for index in range(engine.num_io_tensors):
            name = engine.get_tensor_name(index)
            if name in held:
                assert context.set_input_shape(name, held[name].shape)
                context.set_tensor_address(name, held[name].ctypes.data)
            else:
                context.set_output_allocator(name, allocator)
        if not context.execute_async_v3(0):
            return None
        dtypes = {
            "FLOAT": np.float32,
            "HALF": np.float16,
            "INT32": np.int32,
            "INT64": np.int64,
            "BOOL": np.bool_,
        }
        return {
            name: np.frombuffer(allocator.buffers[name], dtypes[engine.get_tensor_dtype(name).name]).reshape(
                shape
            )
            for name, shape in allocator.shapes.items()
        }

    def allocator(self) -> Made:
        class Allocator(self.trt.IOutputAllocator):  # type: ignore[misc,name-defined]  # a class of a module made at run time
            def __init__(self) -> None:
                self.buffers: dict[str, ctypes.Array[ctypes.c_char]] = {}
                self.shapes: dict[str, tuple[int, ...]] = {}

            def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
                del memory, alignment
                self.buffers[tensor_name] = ctypes.create_string_buffer(max(1, size))
                if size:
                    self.buffers[tensor_name] = (ctypes.c_char * size)()
                return ctypes.addressof(self.buffers[tensor_name])

            def notify_shape(self, tensor_name: str, shape: Sequence[int]) -> None:
                self.shapes[tensor_name] = tuple(shape)

        return Allocator()


def _workbench(personality: str = "10.13", **options: object) -> Workbench:
    # Without a seed of their own tests are repeatable all the same; one that is about chance says seed=None.
    chosen = Settings(trt=personality, **{"seed": 7, **options})  # type: ignore[arg-type]  # each test names its own
    trt: Made = build_module(personality, chosen)
    lines: list[tuple[str, str]] = []

    class Recorder(trt.ILogger):  # type: ignore[misc]  # a class of a module made at run time
        def log(self, severity: Made, msg: str) -> None:
            lines.append((severity.name, msg))

    return Workbench(trt=trt, logger=Recorder(), lines=lines)


@pytest.fixture
def models() -> Models:
    return Models()


@pytest.fixture
def workbench() -> Callable[..., Workbench]:
    return _workbench


@pytest.fixture
def bench() -> Workbench:
    """TensorRT 10.13 without noise: every build is the same."""
    return _workbench(noise=0.0)


@pytest.fixture
def image() -> NDArray[np.float32]:
    return np.random.default_rng(3).standard_normal((1, 3, 16, 16)).astype(np.float32)


@pytest.fixture
def reference() -> Callable[..., Array]:
    """What ONNX Runtime computes for the first output, without the simulator."""

    def compute(model: onnx.ModelProto, **feeds: Array) -> Array:
        import onnxruntime  # noqa: PLC0415 - most tests do not need it

        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return np.asarray(session.run(None, feeds)[0])

    return compute


@pytest.fixture
def launch(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `polygraphy-trt-sim` as a process, in a directory of its own; options come before `--`, the command after it."""

    def run(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if key != settings.VARIABLE}
        return subprocess.run(
            [sys.executable, "-m", "polygraphy_debug_ext.simulator", *arguments],
            cwd=tmp_path,
            env={**clean, **(env or {})},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    return run
