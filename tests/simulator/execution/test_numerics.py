"""What tactics compute: real numbers, really rounded, and wrong where a fault is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from polygraphy_debug_ext.simulator.execution import device

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Made, Models, Workbench


def outputs(bench: Workbench, engine: object, **feeds: Array) -> Array:
    result = bench.run(engine, 0, **feeds)
    assert result is not None, bench.text("ERROR")
    return result["y"]


def test_half_precision_is_near_but_not_equal(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model = models.conv_net()
    found = outputs(bench, bench.engine(bench.build(model, "FP16")), x=image)
    wanted = reference(model, x=image)
    assert not np.array_equal(found, wanted)
    np.testing.assert_allclose(found, wanted, atol=5e-3)


def test_half_precision_rounds_inputs_weights_and_outputs(bench: Workbench, models: Models) -> None:
    weight = models.weight("w", 1, 1, 1, 1)
    model = models.make(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], {"x": [1, 1, 1, 64]}, ["y"], [weight]
    )
    values = np.random.default_rng(1).standard_normal((1, 1, 1, 64)).astype(np.float32)

    def prepare(_: Made, network: Made, __: Made) -> None:
        network[0].precision = bench.trt.DataType.HALF

    engine = bench.engine(bench.build(model, "FP16", "OBEY_PRECISION_CONSTRAINTS", prepare=prepare))
    assert {choice.precision for choice in engine._engine.choices if choice.nodes} == {"HALF"}
    factor = np.frombuffer(weight.raw_data, np.float32).astype(np.float16).astype(np.float32)
    wanted = (values.astype(np.float16).astype(np.float32) * factor).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(outputs(bench, engine, x=values), wanted)


def test_the_reference_precision_is_exact(
    bench: Workbench, models: Models, reference: Callable[..., Array]
) -> None:
    model = models.attention()
    values = np.random.default_rng(1).standard_normal((1, 8, 16)).astype(np.float32)
    found = outputs(bench, bench.engine(bench.build(model)), x=values)
    np.testing.assert_allclose(found, reference(model, x=values), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("effect", ["offset", "nan", "zero"])
@pytest.mark.parametrize("layer", ["conv0 + bn0 + relu0", "PWN(sig3, PWN(mul3))", "fc", "soft"])
def test_a_fault_at_any_layer_is_seen_at_the_output(
    workbench: Callable[..., Workbench], models: Models, image: Array, effect: str, layer: str
) -> None:
    plan = workbench(noise=0.0).build(models.conv_net(), "FP16")
    sound, faulty = workbench(), workbench(fault=(f"*@{layer}:{effect}",))
    wanted = outputs(sound, sound.engine(plan), x=image)
    found = outputs(faulty, faulty.engine(plan), x=image)
    if effect == "nan":
        assert np.isnan(found).any()
    else:
        assert np.abs(found - wanted).max() > 1e-2


def test_a_reformat_can_be_faulty(workbench: Callable[..., Workbench], models: Models, image: Array) -> None:
    plan = workbench(noise=0.0).build(models.conv_net(), "FP16")
    bench = workbench(
        fault=("copyVectorizedKernel_*@Reformatting CopyNode for Input Tensor 0 to conv0*:nan",)
    )
    assert np.isnan(outputs(bench, bench.engine(plan), x=image)).any()


@pytest.mark.parametrize("effect", ["offset", "nan", "zero"])
def test_faults_work_on_networks_that_are_half_precision_themselves(
    workbench: Callable[..., Workbench], models: Models, effect: str
) -> None:
    model = models.make([helper.make_node("Exp", ["x"], ["y"], name="exp")], {"x": [4]}, ["y"])
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    values = np.array([0.5, 1, 2, 3], np.float16)
    sound, bad = workbench(noise=0.0), workbench(noise=0.0, fault=(f"*:{effect}",))
    wanted = outputs(sound, sound.engine(sound.build(model)), x=values)
    assert wanted.dtype == np.float16
    assert not np.array_equal(outputs(bad, bad.engine(bad.build(model)), x=values), wanted)


def test_the_size_of_an_offset_can_be_set(workbench: Callable[..., Workbench], models: Models) -> None:
    plan = workbench().build(models.identity())
    bench = workbench(fault=("*:offset:value=2.5",))
    values = np.zeros((1, 1, 2, 2), np.float32)
    np.testing.assert_array_equal(outputs(bench, bench.engine(plan), x=values), values + 2.5)


def test_a_fault_in_another_kernel_changes_nothing(
    workbench: Callable[..., Workbench], models: Models, image: Array
) -> None:
    plan = workbench(noise=0.0).build(models.conv_net(), "FP16")
    sound, other = workbench(), workbench(fault=("sm75_*:nan", "*@nowhere:nan"))
    first, second = outputs(sound, sound.engine(plan), x=image), outputs(other, other.engine(plan), x=image)
    np.testing.assert_array_equal(first, second)


def test_a_flaky_fault_strikes_some_inferences_of_one_engine(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench(fault=("*:nan:rate=0.4",))
    engine = bench.engine(bench.build(models.identity()))
    values = np.zeros((1, 1, 2, 2), np.float32)
    context_runs = [bool(np.isnan(outputs(bench, engine, x=values)).any()) for _ in range(60)]
    assert 8 <= sum(context_runs) <= 42


def test_flaky_faults_repeat_with_a_seed(
    workbench: Callable[..., Workbench], models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = workbench(seed=3, fault=("*:nan:rate=0.5",))
    engine = bench.engine(bench.build(models.identity()))
    values = np.zeros((1, 1, 2, 2), np.float32)
    processes = []
    for repetition in ("0", "0", "1"):
        monkeypatch.setenv("POLYGRAPHY_DEBUG_REPETITION", repetition)
        monkeypatch.setattr(device.DEVICE, "inferences", 0)
        processes.append([bool(np.isnan(outputs(bench, engine, x=values)).any()) for _ in range(20)])
    assert processes[0] == processes[1]
    assert processes[0] != processes[2]


def test_marked_outputs_have_the_values_inside_the_network(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model = models.conv_net()

    def prepare(_: Made, network: Made, __: Made) -> None:
        network.mark_output(network[3].get_output(0))

    found = bench.run(bench.engine(bench.build(model, prepare=prepare)), x=image)
    assert found is not None
    model.graph.output.insert(0, helper.make_tensor_value_info("t3", 1, None))
    np.testing.assert_allclose(found["t3"], reference(model, x=image), rtol=1e-5, atol=1e-6)
