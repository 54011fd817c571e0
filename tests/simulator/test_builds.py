"""What users rely on from build to build: difference, repetition, and faults that strike while kernels are timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from polygraphy_debug_ext.simulator import personality
from polygraphy_debug_ext.simulator.compiler import timing
from polygraphy_debug_ext.simulator.compiler.timing import ITERATION
from polygraphy_debug_ext.simulator.execution import device

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Made, Models, Workbench


@pytest.fixture(autouse=True)
def _fresh_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: builds are counted from zero, and the device is sound."""
    monkeypatch.setattr(timing, "_COUNTER", timing._Counter())
    monkeypatch.setattr(device.DEVICE, "sticky", "")


@pytest.mark.parametrize("name", personality.names())
def test_builds_differ_without_a_seed(workbench: Callable[..., Workbench], models: Models, name: str) -> None:
    bench, model = workbench(name, seed=None), models.conv_net()
    seen = {tuple(bench.tactics(bench.build(model, "FP16")).items()) for _ in range(12)}
    assert len(seen) >= 6


def test_builds_repeat_with_a_seed_from_process_to_process(
    workbench: Callable[..., Workbench], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, processes = models.conv_net(), []
    for _ in range(2):
        monkeypatch.setattr(timing, "_COUNTER", timing._Counter())
        bench = workbench(seed=5)
        processes.append([bench.tactics(bench.build(model, "FP16")) for _ in range(4)])
    assert processes[0] == processes[1]
    assert any(build != processes[0][0] for build in processes[0])


def test_a_seeded_build_depends_on_the_iteration_not_on_what_came_before(
    workbench: Callable[..., Workbench], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, model = workbench(seed=5), models.conv_net()
    monkeypatch.setenv(ITERATION, "3")
    first = bench.tactics(bench.build(model, "FP16"))
    for other in ("4", "5"):
        monkeypatch.setenv(ITERATION, other)
        bench.build(model, "FP16")
    monkeypatch.setenv(ITERATION, "3")
    assert bench.tactics(bench.build(model, "FP16")) == first


def test_a_build_of_ten_layers_takes_well_under_50_ms_of_the_processor(
    bench: Workbench, models: Models
) -> None:
    import time  # noqa: PLC0415 - only here

    builder, network = bench.network(models.conv_net())
    config = bench.config(builder, "FP16")
    best = 1.0
    for _ in range(5):
        start = time.process_time()
        builder.build_serialized_network(network, config)
        best = min(best, time.process_time() - start)
    assert best < 0.05


def test_a_lower_optimization_level_times_fewer_candidates(bench: Workbench, models: Models) -> None:
    counts = []
    for level in (0, 2, 3):
        bench.lines.clear()

        def prepare(_: Made, __: Made, config: Made, level: int = level) -> None:
            config.builder_optimization_level = level

        bench.build(models.conv_net(), "FP16", prepare=prepare)
        counts.append(bench.text().count(" Time: "))
    assert counts[0] < counts[1] < counts[2]


def test_obeyed_precisions_are_in_the_engine(bench: Workbench, models: Models) -> None:
    def prepare(_: Made, network: Made, __: Made) -> None:
        for layer in network:
            if layer.name in {"conv1", "conv3"}:
                layer.precision = bench.trt.DataType.FLOAT

    plan = bench.build(models.conv_net(), "FP16", "OBEY_PRECISION_CONSTRAINTS", prepare=prepare)
    precisions = {choice.name: choice.precision for choice in bench.engine(plan)._engine.choices}
    assert precisions["conv1 + relu1"] == precisions["conv3"] == "FLOAT"
    assert precisions["conv2 + add2 + relu2"] == "HALF"


def test_a_precision_that_no_kernel_has_fails_if_it_must_be_obeyed(bench: Workbench, models: Models) -> None:
    def prepare(_: Made, network: Made, __: Made) -> None:
        network[0].precision = bench.trt.DataType.HALF

    assert bench.build(models.conv_net(), "OBEY_PRECISION_CONSTRAINTS", prepare=prepare) is None
    assert "Could not find any implementation for node conv0 + bn0 + relu0." in bench.text("ERROR")
    assert bench.build(models.conv_net(), "PREFER_PRECISION_CONSTRAINTS", prepare=prepare) is not None


@pytest.mark.parametrize("name", ["8.6", "10.13"])
def test_a_failing_kernel_is_skipped_with_its_line(
    workbench: Callable[..., Workbench], models: Models, name: str
) -> None:
    bench = workbench(name, noise=0.0, fault=("*tilesize128x64x8*:build-error",))
    plan = bench.build(models.conv_net())
    assert "Skipping tactic 0xe4ac9b1c9b033984 due to exception no kernel image" in bench.text()
    assert not any("tilesize128x64x8" in tactic for tactic in bench.tactics(plan).values())


@pytest.mark.parametrize(
    ("layer", "node"), [("conv3", "conv3"), ("fc", "{ForeignNode[w4...soft]}")], ids=["cask", "myelin"]
)
def test_without_a_kernel_left_the_node_is_named(
    workbench: Callable[..., Workbench], models: Models, layer: str, node: str
) -> None:
    bench = workbench(fault=(f"*@{layer}:build-error",))
    assert bench.build(models.conv_net(), "FP16") is None
    wanted = f"Error Code 10: Internal Error (Could not find any implementation for node {node}.)"
    assert wanted in bench.text("ERROR")


def test_a_flaky_build_fault_strikes_some_builds(workbench: Callable[..., Workbench], models: Models) -> None:
    bench, model = workbench(seed=1, fault=("*@fc:build-error:rate=0.5",)), models.conv_net()
    outcomes = [bench.build(model) is None for _ in range(24)]
    assert 4 <= sum(outcomes) <= 20


def test_a_sticky_error_fails_every_later_build_and_execution(
    workbench: Callable[..., Workbench], models: Models, image: Array
) -> None:
    good = workbench(noise=0.0)
    engine = good.engine(good.build(models.conv_net()))
    bench = workbench(fault=("*@conv1 + relu1:sticky",))
    assert bench.build(models.conv_net()) is None
    assert "Cuda Runtime (misaligned address)" in bench.text("ERROR")
    assert good.build(models.identity()) is None
    assert good.run(engine, x=image) is None
    assert "misaligned address" in good.lines[-1][1]


def test_a_progress_monitor_can_cancel(bench: Workbench, models: Models) -> None:
    class Monitor(bench.trt.IProgressMonitor):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def step_complete(self, phase_name: str, step: int) -> bool:
            del phase_name, step
            return False

    def prepare(_: Made, __: Made, config: Made) -> None:
        config.progress_monitor = Monitor()

    assert bench.build(models.identity(), prepare=prepare) is None
    assert "cancelled by the progress monitor" in bench.text("ERROR")


def test_a_strongly_typed_network_takes_no_precision_flags(bench: Workbench, models: Models) -> None:
    builder = bench.trt.Builder(bench.logger)
    network = builder.create_network(1 << int(bench.trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    bench.trt.OnnxParser(network, bench.logger).parse(models.identity().SerializeToString())
    assert network.get_flag(bench.trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    assert builder.build_serialized_network(network, bench.config(builder, "FP16")) is None
    assert builder.build_serialized_network(network, bench.config(builder)) is not None


def test_the_announcement_comes_once_per_process(
    workbench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    from polygraphy_debug_ext.simulator.bindings import base  # noqa: PLC0415 - its state is what is tested

    monkeypatch.setattr(base, "_ANNOUNCEMENT", base._Announcement())
    bench = workbench("8.6")
    for _ in range(2):
        bench.trt.Builder(bench.logger)
        bench.trt.Runtime(bench.logger)
    wanted = "TensorRT simulator (personality 8.6, no GPU is used): results are not those of NVIDIA TensorRT"
    assert bench.lines == [("WARNING", wanted)]


def test_numbers_are_real(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model = models.conv_net()
    outputs = bench.run(bench.engine(bench.build(model)), x=image)
    assert outputs is not None
    np.testing.assert_allclose(outputs["y"], reference(model, x=image), rtol=1e-5, atol=1e-6)


def test_a_strongly_typed_network_has_the_types_of_its_tensors(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("10.13")
    for halve, wanted in ((False, {"FLOAT"}), (True, {"HALF"})):
        model = models.conv_net()
        builder = bench.trt.Builder(bench.logger)
        flag = bench.trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED
        network = builder.create_network(1 << int(flag))
        parser = bench.trt.OnnxParser(network, bench.logger)
        assert parser.parse((models.half(model) if halve else model).SerializeToString())
        engine = bench.engine(bytes(builder.build_serialized_network(network, bench.config(builder))))
        assert {layer.precision for layer in engine._engine.layers} == wanted


def test_without_weak_typing_there_are_no_flags_selectors_or_calibrators(
    workbench: Callable[..., Workbench],
) -> None:
    trt = workbench("11.4").trt
    for flag in ("FP16", "BF16", "INT8", "FP8", "OBEY_PRECISION_CONSTRAINTS"):
        assert not hasattr(trt.BuilderFlag, flag)
    for name in ("IAlgorithmSelector", "IInt8EntropyCalibrator2", "IStreamReader"):
        assert not hasattr(trt, name)
    assert not hasattr(trt.IBuilderConfig, "algorithm_selector")
    assert not hasattr(trt.IBuilderConfig, "int8_calibrator")
    assert not hasattr(trt.Builder, "platform_has_fast_fp16")
    assert hasattr(trt.BuilderFlag, "TF32")
    assert hasattr(trt, "IStreamReaderV2")


def test_everything_is_one_layer_of_myelin_in_the_newest(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("11.4")
    bench.build(models.conv_net())
    block = next(text for _, text in bench.lines if text.startswith("Engine Layer Information:"))
    (line,) = block.splitlines()[1:]
    assert line.startswith("Layer(Myelin): {ForeignNode[")
    assert line.endswith("Tactic: 0x0000000000000000, x (Float[1,3,16,16]) -> y (Float[1,10])")


def test_the_newest_says_what_a_graph_is_made_of(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench("11.4")
    bench.build(models.identity())
    wanted = "ForeignNode {ForeignNode[node_of_y]} metadata: [ONNX Layer: node_of_y]"
    assert ("VERBOSE", wanted) in bench.lines
