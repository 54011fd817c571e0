"""What every TensorRT does, held against the simulator's personalities and, where its API allows, NVIDIA's TensorRT-RTX.

Each test runs unchanged on all of them. With a GPU and NVIDIA's TensorRT, it runs on that too.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.simulator.module import build_module
from polygraphy_debug_ext.simulator.settings import Settings

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.filterwarnings("ignore:.*no-ops in TensorRT-RTX:DeprecationWarning")

SIMULATED = ("8.6", "10.13", "11.4")
KEY = "0x1814870c44ff0f8574df6e3dda04cbd7"


def real_modules() -> list[str]:
    """The modules of NVIDIA's that can build here: RTX builds on a CPU, the other one needs its device."""
    has_device = os.path.exists("/dev/nvidia0")  # noqa: PTH110 - a device
    wanted = ["tensorrt_rtx", *(["tensorrt"] if has_device else [])]
    return [name for name in wanted if importlib.util.find_spec(name) is not None]


class Bench:
    """A module, with a logger that keeps what it is told."""

    def __init__(self, module: ModuleType) -> None:
        self.trt: Any = module
        base: Any = self.trt.ILogger
        messages: list[tuple[Any, str]] = []

        class Log(base):  # type: ignore[misc]  # a class of a module that has no types
            def __init__(self) -> None:
                base.__init__(self)

            def log(self, severity: Any, msg: str) -> None:  # noqa: ANN401
                messages.append((severity, msg))

        self.messages = messages
        self.logger = Log()

    def parse(self, data: bytes) -> tuple[Any, Any, Any, bool]:
        builder = self.trt.Builder(self.logger)
        # Up to 8.x a network has to be asked for an explicit batch.
        flags = self.trt.NetworkDefinitionCreationFlag
        explicit = 1 << int(flags.EXPLICIT_BATCH) if hasattr(flags, "EXPLICIT_BATCH") else 0
        network = builder.create_network(explicit)
        parser = self.trt.OnnxParser(network, self.logger)
        return builder, network, parser, parser.parse(data)

    def build(self, *flags: str) -> Any:  # noqa: ANN401
        builder, network, _, parsed = self.parse(MODEL)
        assert parsed
        config = builder.create_builder_config()
        config.profiling_verbosity = self.trt.ProfilingVerbosity.DETAILED
        for flag in flags:
            config.set_flag(getattr(self.trt.BuilderFlag, flag))
        return builder.build_serialized_network(network, config)

    def errors(self) -> list[str]:
        bad = (self.trt.ILogger.ERROR, self.trt.ILogger.INTERNAL_ERROR)
        return [text for severity, text in self.messages if severity in bad]


def model() -> bytes:
    draw = np.random.default_rng(3)
    weight = numpy_helper.from_array(draw.standard_normal((8, 3, 3, 3)).astype(np.float32), "w")
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["y"], name="relu1"),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 8, 8])]
        for name, channels in (("x", 3), ("y", 8))
    ]
    graph = helper.make_graph(nodes, "small", *ends, [weight])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data: bytes = made.SerializeToString()
    return data


MODEL = model()
#: NVIDIA's keeps the first logger of a process for good.
BENCHES: dict[str, Bench] = {}


def bench_of(name: str) -> Bench:
    if name not in BENCHES:
        simulated = name in SIMULATED
        module = (
            build_module(name, Settings(trt=name, noise=0.0)) if simulated else importlib.import_module(name)
        )
        BENCHES[name] = Bench(module)
    BENCHES[name].messages.clear()
    return BENCHES[name]


@pytest.fixture(params=[*SIMULATED, *real_modules()])
def bench(request: pytest.FixtureRequest) -> Bench:
    return bench_of(request.param)


@pytest.fixture(params=[*SIMULATED[1:], *real_modules()])
def cached(request: pytest.FixtureRequest) -> Bench:
    """A TensorRT that has the types of the editable timing cache, as all from 10.8 on."""
    return bench_of(request.param)


def test_the_version_is_a_version(bench: Bench) -> None:
    assert re.fullmatch(r"\d+(\.\d+){2,3}", bench.trt.__version__)


def test_a_network_has_the_names_of_the_onnx_graph(bench: Bench) -> None:
    _, network, parser, parsed = bench.parse(MODEL)
    assert parsed
    assert parser.num_errors == 0
    names = [network.get_layer(index).name for index in range(network.num_layers)]
    assert [name for name in names if name in {"conv1", "relu1"}] == ["conv1", "relu1"]
    assert (network.num_inputs, network.num_outputs) == (1, 1)
    assert (network.get_input(0).name, tuple(network.get_input(0).shape)) == ("x", (1, 3, 8, 8))
    assert (network.get_output(0).name, tuple(network.get_output(0).shape)) == ("y", (1, 8, 8, 8))
    assert network.get_input(0).dtype == bench.trt.DataType.FLOAT


def test_what_is_no_network_is_refused_with_an_error(bench: Bench) -> None:
    _, _, parser, parsed = bench.parse(b"no network")
    assert not parsed
    assert parser.num_errors > 0 or bench.errors()


def test_an_operator_that_does_not_exist_is_named(bench: Bench) -> None:
    wrong = onnx.load_from_string(MODEL)
    wrong.graph.node[0].op_type = "NoSuchOperator"
    _, _, parser, parsed = bench.parse(wrong.SerializeToString())
    assert not parsed
    assert "NoSuchOperator" in "\n".join(str(parser.get_error(index)) for index in range(parser.num_errors))


def test_a_build_gives_a_plan_that_is_a_buffer(bench: Bench) -> None:
    plan = bench.build()
    assert plan is not None
    assert len(bytes(plan)) == plan.nbytes > 0
    assert not bench.errors()


def test_a_build_tells_its_story_at_verbose_level(bench: Bench) -> None:
    assert bench.build() is not None
    severities = {severity for severity, _ in bench.messages}
    assert bench.trt.ILogger.VERBOSE in severities
    text = "\n".join(message for _, message in bench.messages)
    assert "Autotuning format combination" in text
    assert "Chose Runner Type" in text


def test_the_layers_of_the_engine_are_in_the_log(bench: Bench) -> None:
    assert bench.build() is not None
    text = "\n".join(message for _, message in bench.messages)
    assert "Engine Layer Information:" in text or "\nLayers:" in text or text.startswith("Layers:")
    assert "conv1" in text


def test_a_flag_is_off_until_it_is_set(bench: Bench) -> None:
    config = bench.trt.Builder(bench.logger).create_builder_config()
    flag = bench.trt.BuilderFlag.DEBUG
    assert not config.get_flag(flag)
    config.set_flag(flag)
    assert config.get_flag(flag)
    config.clear_flag(flag)
    assert not config.get_flag(flag)


def test_enums_have_names_numbers_and_members(bench: Bench) -> None:
    enum = bench.trt.DataType
    assert str(enum.FLOAT) == "DataType.FLOAT"
    assert enum.FLOAT.name == "FLOAT"
    assert enum.__members__["HALF"] == enum.HALF
    assert int(enum.FLOAT) == 0
    assert enum.FLOAT != enum.HALF


def test_a_key_is_parsed_and_printed_as_it_was(cached: Bench) -> None:
    assert str(cached.trt.TimingCacheKey.parse(KEY)) == KEY


@pytest.mark.parametrize("text", ["", "0x12", KEY + "0", "0x" + "z" * 32])
def test_a_key_that_is_none_is_refused(cached: Bench, text: str) -> None:
    with pytest.raises(ValueError, match=r"34 characters|invalid content"):
        cached.trt.TimingCacheKey.parse(text)


def test_a_value_holds_hash_and_time(cached: Bench) -> None:
    value = cached.trt.TimingCacheValue(0x665DED9ABBF88, 0.5)
    assert (value.tacticHash, value.timingMSec) == (0x665DED9ABBF88, 0.5)


def test_an_empty_cache_has_no_keys_and_takes_none(cached: Bench) -> None:
    config = cached.trt.Builder(cached.logger).create_builder_config()
    config.set_flag(cached.trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    cache = config.create_timing_cache(b"")
    assert list(cache.queryKeys()) == []
    assert not cache.update(cached.trt.TimingCacheKey.parse(KEY), cached.trt.TimingCacheValue(5, 1.0))
    assert config.set_timing_cache(cache, False)
