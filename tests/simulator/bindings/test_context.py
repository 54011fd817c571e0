from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from onnx import TensorProto, helper

from polygraphy_debug_ext.simulator import personality

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Made, Models, Workbench


def two_profiles(builder: Made, _: Made, config: Made) -> None:
    for low, mid, high in (((1, 1, 4), (2, 3, 4), (4, 8, 4)), ((8, 1, 4), (8, 3, 4), (16, 8, 4))):
        profile = builder.create_optimization_profile()
        profile.set_shape("x", low, mid, high)
        config.add_optimization_profile(profile)


@pytest.mark.parametrize("name", personality.names())
@pytest.mark.parametrize(("profile", "batch"), [(0, 3), (1, 9)])
def test_each_profile_runs_its_shapes(
    workbench: Callable[..., Workbench],
    models: Models,
    reference: Callable[..., Array],
    name: str,
    profile: int,
    batch: int,
) -> None:
    bench, model = workbench(name), models.dynamic()
    engine = bench.engine(bench.build(model, prepare=two_profiles))
    values = np.random.default_rng(2).standard_normal((batch, 5, 4)).astype(np.float32)
    found = bench.run(engine, profile, x=values)
    assert found is not None
    np.testing.assert_allclose(found["y"], reference(model, x=values), rtol=1e-5, atol=1e-6)


def test_shapes_outside_of_the_profile_are_refused(bench: Workbench, models: Models) -> None:
    context = bench.engine(bench.build(models.dynamic(), prepare=two_profiles)).create_execution_context()
    assert not context.set_input_shape("x", (9, 5, 4))
    assert "shape [9, 5, 4] of x is outside of profile 0" in bench.text("ERROR")
    assert not context.set_input_shape("y", (1,))
    assert not context.set_optimization_profile_async(2, 0)
    assert context.set_optimization_profile_async(1, 0)
    assert context.set_input_shape("x", (9, 5, 4))


def test_shapes_of_outputs_follow_from_those_of_inputs(bench: Workbench, models: Models) -> None:
    engine = bench.engine(bench.build(models.dynamic(), prepare=two_profiles))
    context = engine.create_execution_context()
    assert engine.get_tensor_shape("y") == (-1, -1)
    assert context.get_tensor_shape("x") == [-1, -1, 4]
    assert context.infer_shapes() == ["x"]
    assert context.set_input_shape("x", (3, 5, 4))
    assert context.get_tensor_shape("y") == (3, 30)
    assert [tuple(shape) for shape in engine.get_tensor_profile_shape("x", 1)] == [
        (8, 1, 4),
        (8, 3, 4),
        (16, 8, 4),
    ]


def test_a_dynamic_network_needs_a_profile(bench: Workbench, models: Models) -> None:
    assert bench.build(models.dynamic()) is None
    assert "no optimization profile has shapes for it" in bench.text("ERROR")


def test_what_is_missing_is_named(bench: Workbench, models: Models) -> None:
    context = bench.engine(bench.build(models.dynamic(), prepare=two_profiles)).create_execution_context()
    assert not context.execute_async_v3(0)
    assert "the shape of input x is not set" in bench.text("ERROR")
    context.set_input_shape("x", (1, 1, 4))
    assert not context.execute_async_v3(0)
    assert "the address of x is not set" in bench.text("ERROR")


def test_addresses_can_be_given_in_order(bench: Workbench, models: Models, image: Array) -> None:
    engine = bench.engine(bench.build(models.conv_net()))
    output = np.zeros((1, 10), np.float32)
    assert engine.create_execution_context().execute_v2([image.ctypes.data, output.ctypes.data])
    np.testing.assert_allclose(output.sum(), 1.0, rtol=1e-5)


def test_the_old_way_by_index_works_where_it_exists(
    workbench: Callable[..., Workbench], models: Models, image: Array
) -> None:
    bench = workbench("8.6")
    engine = bench.engine(bench.build(models.conv_net()))
    assert [engine.get_binding_name(i) for i in range(engine.num_bindings)] == ["x", "y"]
    assert engine.binding_is_input(0)
    assert engine.get_binding_index("y") == 1
    assert engine.get_binding_shape(1) == (1, 10)
    output = np.zeros((1, 10), np.float32)
    assert engine.create_execution_context().execute_async_v2([image.ctypes.data, output.ctypes.data], 0)
    np.testing.assert_allclose(output.sum(), 1.0, rtol=1e-5)


def test_values_of_a_shape_input_come_from_the_host(bench: Workbench, models: Models) -> None:
    model = models.make(
        [helper.make_node("Reshape", ["x", "target"], ["y"], name="r")], {"x": [2, 12]}, ["y"]
    )
    model.graph.input.append(helper.make_tensor_value_info("target", TensorProto.INT64, [2]))

    def prepare(builder: Made, network: Made, config: Made) -> None:
        assert network.get_input(1).is_shape_tensor
        profile = builder.create_optimization_profile()
        profile.set_shape_input("target", (1, 1), (4, 6), (24, 24))
        config.add_optimization_profile(profile)

    engine = bench.engine(bench.build(model, prepare=prepare))
    assert engine.is_shape_inference_io("target")
    assert engine.get_tensor_location("target").name == "HOST"
    values = np.arange(24, dtype=np.float32).reshape(2, 12)
    found = bench.run(engine, x=values, target=np.array([3, 8]))
    assert found is not None
    assert found["y"].shape == (3, 8)


@pytest.mark.parametrize(("name", "dtype"), [("8.6", np.int32), ("10.13", np.int64)])
def test_64_bit_integers_are_what_the_version_makes_of_them(
    workbench: Callable[..., Workbench],
    models: Models,
    name: str,
    dtype: type[np.integer[np.generic]],  # type: ignore[type-var]
) -> None:
    bench = workbench(name)
    model = models.make([helper.make_node("Add", ["i", "i"], ["j"], name="twice")], {}, ["j"])
    model.graph.input.append(helper.make_tensor_value_info("i", TensorProto.INT64, [3]))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    found = bench.run(bench.engine(bench.build(model)), i=np.arange(3, dtype=dtype))
    assert found is not None
    assert found["j"].dtype == dtype
    assert found["j"].tolist() == [0, 2, 4]


def test_inputs_and_outputs_can_have_other_types_and_formats(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model = models.conv_net()

    def prepare(_: Made, network: Made, __: Made) -> None:
        network.get_input(0).dtype = bench.trt.DataType.HALF
        network.get_input(0).allowed_formats = 1 << int(bench.trt.TensorFormat.HWC)
        network.get_output(0).dtype = bench.trt.DataType.HALF

    engine = bench.engine(bench.build(model, prepare=prepare))
    assert engine.get_tensor_format("x") == bench.trt.TensorFormat.HWC
    packed = np.ascontiguousarray(image.transpose(0, 2, 3, 1).astype(np.float16))
    output = np.zeros((1, 10), np.float16)
    assert engine.create_execution_context().execute_v2([packed.ctypes.data, output.ctypes.data])
    wanted = reference(model, x=image.astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(output, wanted.astype(np.float16), atol=1e-3)


def test_debug_tensors_go_to_the_listener(bench: Workbench, models: Models, image: Array) -> None:
    heard: list[tuple[str, tuple[int, ...]]] = []

    class Listener(bench.trt.IDebugListener):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def process_debug_tensor(self, *arguments: Made) -> None:
            heard.append((arguments[4], tuple(arguments[3])))

    def prepare(_: Made, network: Made, __: Made) -> None:
        network.mark_debug(network[3].get_output(0))

    engine = bench.engine(bench.build(models.conv_net(), prepare=prepare))
    assert engine.num_io_tensors == 2
    context, output = engine.create_execution_context(), np.zeros((1, 10), np.float32)
    assert context.set_debug_listener(Listener())
    assert context.execute_v2([image.ctypes.data, output.ctypes.data])
    assert heard == []
    assert context.set_all_tensors_debug_state(True)
    assert context.execute_v2([image.ctypes.data, output.ctypes.data])
    assert heard == [("t3", (1, 8, 16, 16))]


def test_a_profiler_hears_of_every_layer(bench: Workbench, models: Models, image: Array) -> None:
    engine, times = bench.engine(bench.build(models.conv_net())), dict[str, float]()

    class Profiler(bench.trt.IProfiler):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def report_layer_time(self, layer_name: str, ms: float) -> None:
            times[layer_name] = ms

    context, output = engine.create_execution_context(), np.zeros((1, 10), np.float32)
    context.profiler = Profiler()
    assert context.execute_v2([image.ctypes.data, output.ctypes.data])
    assert len(times) == engine.num_layers
    assert min(times.values()) > 0
