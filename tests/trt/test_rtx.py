"""NVIDIA's own TensorRT-RTX, which builds on a CPU: real parser, real builder, real logger, real types of the timing cache."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats.layer_information import stable_names
from polygraphy_debug_ext.trt.capabilities import TacticSource, probe
from polygraphy_debug_ext.trt.precision_bf16 import REFUSED
from polygraphy_debug_ext.trt.precision_onnx import convert

trt = pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx is not installed (extra rtx)")

pytestmark = pytest.mark.filterwarnings("ignore:.*no-ops in TensorRT-RTX:DeprecationWarning")

KEY = "0x1814870c44ff0f8574df6e3dda04cbd7"
BASE: Any = trt.ILogger


class Log(BASE):  # type: ignore[misc]  # there is no type to derive from
    """Keeps what it is told."""

    def __init__(self) -> None:
        BASE.__init__(self)
        self.messages: list[tuple[object, str]] = []

    def log(self, severity: object, msg: str) -> None:
        self.messages.append((severity, msg))

    def errors(self) -> list[str]:
        bad = (trt.ILogger.ERROR, trt.ILogger.INTERNAL_ERROR)
        return [text for severity, text in self.messages if severity in bad]

    def layers(self) -> str:
        [found] = [text for _, text in self.messages if layer_lines.begins(text)]
        return found


# TensorRT keeps the first logger of a process for good.
LOG = Log()


@pytest.fixture
def log() -> Log:
    LOG.messages.clear()
    return LOG


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    generator = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (8, 8, 1, 1)), ("bound", (1, 8, 1, 1)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2"),
        helper.make_node("Max", ["c", "bound"], ["y"], name="bound"),
    ]
    dims = [1, 3, 8, 8], [1, 8, 8, 8]
    inputs, outputs = (
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in zip("xy", dims, strict=True)
    )
    graph = helper.make_graph(nodes, "small", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


class Build:
    """One build; `flags` are names of builder flags."""

    def __init__(self, log: Log, model: onnx.ModelProto, *flags: str) -> None:
        builder = trt.Builder(log)
        network = builder.create_network(0)
        parser = trt.OnnxParser(network, log)
        self.parsed = parser.parse(model.SerializeToString())
        self.parser_errors = [str(parser.get_error(number)) for number in range(parser.num_errors)]
        self.config = builder.create_builder_config()
        self.config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
        for flag in flags:
            self.config.set_flag(getattr(trt.BuilderFlag, flag))
        self.cache = self.config.create_timing_cache(b"")
        self.cache_taken = self.config.set_timing_cache(self.cache, False)
        self.plan = builder.build_serialized_network(network, self.config) if self.parsed else None


def test_it_is_known_for_what_it_is() -> None:
    found = probe(trt)
    assert found.is_rtx
    assert found.strongly_typed_only
    assert found.inspector
    assert found.editable_timing_cache
    assert found.timing_cache_is_no_op
    assert not found.algorithm_selector
    assert found.sources == (TacticSource.LOG,)


def test_reading_a_value_warns_that_the_timing_cache_does_nothing() -> None:
    with pytest.warns(DeprecationWarning, match="Timing cache operations are no-ops in TensorRT-RTX"):
        assert trt.TimingCacheValue(0, 0.0).tacticHash == 0


def test_a_key_is_parsed_and_printed_as_it_was() -> None:
    assert str(trt.TimingCacheKey.parse(KEY)) == KEY
    assert str(trt.TimingCacheKey.parse(KEY.upper().replace("X", "x"))) == KEY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "exactly 34 characters"),
        ("0x12", "exactly 34 characters"),
        (KEY[2:] + "00", "start with prefix"),
        ("0x" + "zz" * 16, "invalid content"),
    ],
)
def test_a_key_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trt.TimingCacheKey.parse(text)


@pytest.mark.parametrize("tactic", [0, 0x665DED9ABBF88, 2**64 - 1])
def test_a_value_holds_an_unsigned_hash_and_a_time(tactic: int) -> None:
    value = trt.TimingCacheValue(tactic, 0.5)
    assert (value.tacticHash, value.timingMSec) == (tactic, 0.5)


@pytest.mark.parametrize("tactic", [-1, 2**64])
def test_a_hash_of_more_than_64_bits_is_refused(tactic: int) -> None:
    with pytest.raises(TypeError):
        trt.TimingCacheValue(tactic, 0.5)


def test_an_empty_cache_answers_as_one_that_works_would(log: Log) -> None:
    cache = trt.Builder(log).create_builder_config().create_timing_cache(b"")
    key = trt.TimingCacheKey.parse(KEY)
    assert cache.queryKeys() == []
    assert cache.query(key).tacticHash == 2**64 - 1
    assert not cache.update(key, trt.TimingCacheValue(1, 1.0))


def test_a_build_leaves_nothing_in_the_editable_cache(log: Log, model: onnx.ModelProto) -> None:
    build = Build(log, model, "EDITABLE_TIMING_CACHE")
    assert build.plan is not None
    assert build.cache_taken
    assert build.cache.queryKeys() == []
    assert not [text for _, text in log.messages if "Autotuning op" in text]


def test_a_build_logs_its_layers_with_kernels_and_onnx_names(log: Log, model: onnx.ModelProto) -> None:
    build = Build(log, model)
    assert build.plan is not None, log.errors()
    layers = layer_lines.parse(log.layers(), "log")
    assert any("conv1 + relu1" in name for name in stable_names(layers))
    assert all(layer.kernel for layer in layers)
    assert all(layer.in_myelin for layer in layers)
    assert "Half" not in log.layers()


def test_two_builds_have_the_same_kernels(log: Log, model: onnx.ModelProto) -> None:
    found = []
    for _ in range(2):
        log.messages.clear()
        assert Build(log, model).plan is not None
        found.append(layer_lines.parse(log.layers(), "log"))
    assert found[0] == found[1]


def test_a_network_that_was_converted_to_fp16_builds_with_half_layers(
    log: Log, model: onnx.ModelProto
) -> None:
    converted = convert(copy.deepcopy(model))
    assert converted.kept == {"Max": ("bound",)}
    build = Build(log, converted.model)
    assert build.plan is not None, log.errors()
    convolutions = [line for line in log.layers().split("\n") if "LayerType: correlation" in line]
    assert len(convolutions) == 2
    assert all("Datatype: Half" in line for line in convolutions)
    assert "Name: x, IOMode: Input, DataType: Float" in log.layers()
    assert "Name: y, IOMode: Output, DataType: Float" in log.layers()


def test_a_network_that_was_converted_to_bf16_builds_with_layers_in_it(
    log: Log, model: onnx.ModelProto
) -> None:
    converted = convert(copy.deepcopy(model), "BF16")
    assert converted.kept == {"Max": ("bound",)}
    build = Build(log, converted.model)
    assert build.plan is not None, log.errors()
    convolutions = [line for line in log.layers().split("\n") if "LayerType: correlation" in line]
    assert len(convolutions) == 2
    assert all("Datatype: BFloat16" in line for line in convolutions)
    assert "Half" not in log.layers()
    assert "Name: x, IOMode: Input, DataType: Float" in log.layers()
    assert "Name: y, IOMode: Output, DataType: Float" in log.layers()


IMAGE, MATRIX, SERIES = (1, 4, 8, 8), (4, 8), (3, 1, 8)
#: Ops, the sizes of their inputs (the first is the network's, a tuple of numbers is a constant), and their attributes.
OPS: list[tuple[str, list[Any], dict[str, Any]]] = [
    *((op, [IMAGE], {}) for op in ("HardSwish", "Mish", "Celu", "Shrink", "GlobalLpPool", "LpNormalization")),
    *((op, [IMAGE], {}) for op in ("MeanVarianceNormalization", "RandomNormalLike", "RandomUniformLike")),
    *((op, [IMAGE], {}) for op in ("Relu", "Erf", "Softmax", "GlobalAveragePool", "LeakyRelu", "Flatten")),
    *((op, [IMAGE, (4, 1, 1)], {}) for op in ("Add", "Mul", "Max", "Pow", "PRelu")),
    *((op, [IMAGE], {"kernel_shape": [2, 2]}) for op in ("LpPool", "MaxPool", "AveragePool")),
    ("ConvTranspose", [IMAGE, (4, 4, 2, 2)], {"strides": [2, 2]}),
    ("Conv", [IMAGE, (4, 4, 3, 3), (4,)], {}),
    ("BatchNormalization", [IMAGE, (4,), (4,), (4,), (4,)], {}),
    ("InstanceNormalization", [IMAGE, (4,), (4,)], {}),
    ("LayerNormalization", [MATRIX, (8,), (8,)], {}),
    ("MatMul", [MATRIX, (8, 8)], {}),
    ("Gemm", [MATRIX, (8, 8), (8,)], {}),
    ("Einsum", [MATRIX, (8, 8)], {"equation": "ij,jk->ik"}),
    ("ReduceMean", [IMAGE], {"axes": [1]}),
    ("GRU", [SERIES, (1, 12, 8), (1, 12, 4)], {"hidden_size": 4}),
    ("LSTM", [SERIES, (1, 16, 8), (1, 16, 4)], {"hidden_size": 4}),
]


@pytest.mark.parametrize(("op", "sizes", "attributes"), OPS, ids=[op for op, _, _ in OPS])
def test_a_network_with_any_op_builds_after_it_was_converted_to_bf16(
    log: Log, op: str, sizes: list[Any], attributes: dict[str, Any]
) -> None:
    """Between two ops that have BF16, so that it is converted around what has not."""
    generator = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(generator.random(size).astype(np.float32) + 0.5, f"w{number}")
        for number, size in enumerate(sizes[1:])
    ]
    # Behind any cast, from FP16 as well, TensorRT-RTX 1.7 cannot build a GRU.
    source = "x" if op == "GRU" else "a"
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="before"),
        helper.make_node(op, [source, *(tensor.name for tensor in weights)], ["b"], name="op", **attributes),
        helper.make_node("Neg", ["b"], ["y"], name="after"),
    ]
    graph = helper.make_graph(
        nodes,
        "op",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes[0])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    converted = convert(onnx.shape_inference.infer_shapes(model), "BF16")
    kept = op in REFUSED | {"Max"}
    assert converted.kept == ({op: ("op",)} if kept else {})
    build = Build(log, converted.model)
    assert build.plan is not None, [*build.parser_errors, *log.errors()]


def test_every_op_that_is_refused_in_bf16_is_tried() -> None:
    # These two make a tensor from nothing: the others with the same check are tried.
    assert REFUSED - {op for op, _, _ in OPS} == {"RandomNormal", "RandomUniform"}


def test_a_network_that_is_wrong_is_not_parsed(log: Log, model: onnx.ModelProto) -> None:
    broken = copy.deepcopy(model)
    broken.graph.node[0].op_type = "NoSuchOp"
    build = Build(log, broken)
    assert not build.parsed
    assert any("NoSuchOp" in error for error in build.parser_errors)
