"""What tactics compute: real numbers, really rounded, and wrong where a fault is planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.simulator.compiler.lowering import brain_tensor, lowered
from polygraphy_debug_ext.simulator.execution import device

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from tests.simulator.conftest import Array, Made, Models, Workbench


def outputs(bench: Workbench, engine: object, **feeds: Array) -> Array:
    result = bench.run(engine, 0, **feeds)
    assert result is not None, bench.text("ERROR")
    return result["y"]


def brain(values: Array) -> Array:
    """The values rounded to BF16, to nearest and ties to even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


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


def test_bf16_rounds_inputs_weights_and_outputs(bench: Workbench, models: Models) -> None:
    weight = models.weight("w", 1, 1, 1, 1)
    model = models.make(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv")], {"x": [1, 1, 1, 64]}, ["y"], [weight]
    )
    values = np.random.default_rng(1).standard_normal((1, 1, 1, 64)).astype(np.float32)

    def prepare(_: Made, network: Made, __: Made) -> None:
        network[0].precision = bench.trt.DataType.BF16

    engine = bench.engine(bench.build(model, "BF16", "OBEY_PRECISION_CONSTRAINTS", prepare=prepare))
    [choice] = [choice for choice in engine._engine.choices if choice.nodes]
    assert choice.precision == "BF16"
    assert "_bf16bf16_" in choice.kernel
    wanted = brain(brain(values) * brain(np.frombuffer(weight.raw_data, np.float32)))
    np.testing.assert_array_equal(outputs(bench, engine, x=values), wanted)


def test_a_builder_with_flags_chooses_between_all_floats(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("10.13", seed=None)
    seen = set()
    for _ in range(20):
        engine = bench.engine(bench.build(models.conv_net(), "FP16", "BF16"))
        seen |= {choice.precision for choice in engine._engine.choices if choice.nodes}
    assert {"HALF", "BF16"} <= seen


def test_bf16_in_an_opset_without_casts_to_it_is_said_to_have_no_effect(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model = models.conv_net()
    model.opset_import[0].version = 12
    found = outputs(bench, bench.engine(bench.build(model, "BF16")), x=image)
    assert "BF16 from opset 13 on only" in bench.text("WARNING")
    np.testing.assert_allclose(found, reference(model, x=image), rtol=1e-5, atol=1e-6)


def brained(models: Models) -> onnx.ModelProto:
    """A matrix product in BF16, between casts."""
    weight = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
    return models.make(
        [
            helper.make_node("Cast", ["x"], ["a"], to=TensorProto.BFLOAT16, name="down"),
            helper.make_node("MatMul", ["a", "w"], ["b"], name="mul"),
            helper.make_node("Cast", ["b"], ["y"], to=TensorProto.FLOAT, name="up"),
        ],
        {"x": [4, 8]},
        ["y"],
        [brain_tensor(brain(weight), "w")],
    )


@pytest.mark.parametrize("personality", ["10.13", "11.4"])
def test_networks_in_bf16_have_layers_in_it_and_numbers_of_it(
    workbench: Callable[..., Workbench], models: Models, personality: str
) -> None:
    bench, model = workbench(personality, noise=0.0), brained(models)
    plan = bench.build(model)
    assert "'BFloat16'" in str(bench.information(plan)["Layers"])
    assert any("_bf16bf16_" in kernel for kernel in bench.tactics(plan).values())
    values = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    wide = numpy_helper.to_array(lowered(model).graph.initializer[0])
    wanted = brain(brain(values) @ wide)
    found = outputs(bench, bench.engine(plan), x=values)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, brain(found))
    # A sum in another order may round to the neighbour.
    np.testing.assert_allclose(found, wanted, rtol=2**-7)
    assert not np.array_equal(found, values @ wide)


@pytest.mark.parametrize("effect", ["offset", "nan", "zero"])
def test_faults_work_on_networks_in_bf16(
    workbench: Callable[..., Workbench], models: Models, effect: str
) -> None:
    model, values = brained(models), np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    plan = workbench("11.4", noise=0.0).build(model)
    sound, bad = workbench("11.4"), workbench("11.4", fault=(f"*bf16bf16*:{effect}",))
    wanted, found = (outputs(bench, bench.engine(plan), x=values) for bench in (sound, bad))
    assert not np.array_equal(found, wanted)


def test_a_version_without_bf16_does_not_parse_it(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("8.6")
    parser = bench.trt.OnnxParser(bench.trt.Builder(bench.logger).create_network(0), bench.logger)
    assert not parser.parse(brained(models).SerializeToString())
    assert "BFLOAT16, which this TensorRT lacks" in str(parser.get_error(0))


def test_outputs_in_bf16_are_refused(bench: Workbench, models: Models) -> None:
    def prepare(_: Made, network: Made, __: Made) -> None:
        network.mark_output(network[1].get_output(0))

    assert bench.build(brained(models), prepare=prepare) is None
    assert "no inputs and outputs in BF16, which b is" in bench.text("ERROR")


def test_the_scales_of_a_resize_are_not_rounded(bench: Workbench, models: Models) -> None:
    scales = numpy_helper.from_array(np.array([1, 1, 1.1, 1.1], np.float32), "s")
    model = models.make(
        [helper.make_node("Resize", ["x", "", "s"], ["y"], name="resize")],
        {"x": [1, 1, 100, 100]},
        ["y"],
        [scales],
    )

    def prepare(_: Made, network: Made, __: Made) -> None:
        network[0].precision = bench.trt.DataType.BF16

    engine = bench.engine(bench.build(model, "BF16", "OBEY_PRECISION_CONSTRAINTS", prepare=prepare))
    assert outputs(bench, engine, x=np.ones((1, 1, 100, 100), np.float32)).shape == (1, 1, 110, 110)


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
