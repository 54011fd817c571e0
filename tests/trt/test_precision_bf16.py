"""`--bf16` where the builder has no such flag: FP16 only says where casts belong, the numbers come from FP32."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import ModelArgs, OnnxLoadArgs, TrtLoadNetworkArgs

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.simulator.compiler.lowering import lowered
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.trt import precision, precision_onnx
from polygraphy_debug_ext.trt.precision_bf16 import REFUSED, to_bfloat16
from polygraphy_debug_ext.trt.precision_graph import graphs
from polygraphy_debug_ext.trt.precision_onnx import OutOfRange, convert, typed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FLOAT, HALF, BRAIN = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
LOWEST = float(np.finfo(np.float32).min)
Array = np.ndarray[Any, Any]


def weight(name: str, values: object) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype=np.float32), name)


def network(
    nodes: Sequence[Any],
    weights: Sequence[Any] = (),
    shape: Sequence[int | str] = ("n", 4),
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    model = onnx.shape_inference.infer_shapes(model)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model: onnx.ModelProto, x: Array) -> Array:
    """What it computes; ONNX Runtime has no BF16 on a CPU, the simulator computes it in FP32 between casts that round."""
    [found] = open_session(lowered(model).SerializeToString()).run(None, {"x": x})
    return np.asarray(found)


def rows(*shape: int) -> Array:
    return np.random.default_rng(5).standard_normal(shape or (3, 4)).astype(np.float32)


def widened(tensor: onnx.TensorProto) -> Array:
    assert tensor.data_type == BRAIN
    bits = np.frombuffer(tensor.raw_data, np.uint16).astype(np.uint32) << 16
    values: Array = bits.view(np.float32).reshape(tensor.dims)
    return values


def initializers(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for graph in graphs(model.graph) for tensor in graph.initializer}


def assert_no_fp16(model: onnx.ModelProto) -> None:
    """FP16 is nowhere, and no mark is left behind."""
    for graph in graphs(model.graph):
        values = (*graph.input, *graph.output, *graph.value_info)
        assert not [value.name for value in values if value.type.tensor_type.elem_type == HALF]
        tensors = [attribute.t for node in graph.node for attribute in node.attribute]
        for tensor in (*graph.initializer, *tensors):
            assert tensor.data_type != HALF
            assert not tensor.doc_string
        assert not [
            node.name
            for node in graph.node
            for attribute in node.attribute
            if attribute.name in {"to", "dtype"} and attribute.i == HALF
        ]


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (0.0, 0x0000),
        (-0.0, 0x8000),
        (1.0, 0x3F80),
        (1 + 2**-8, 0x3F80),
        (1 + 3 * 2**-8, 0x3F82),
        (-(1 + 2**-8 + 2**-23), 0xBF81),
        (2 - 2**-9, 0x4000),
        (1e-40, 0x0001),
        (65504.0 * 3, 0x4840),
        (np.inf, 0x7F80),
        (-np.inf, 0xFF80),
        (np.nan, 0x7FC0),
        (3.3895313892515355e38, 0x7F7F),
        (LOWEST, 0xFF7F),
    ],
)
def test_values_are_rounded_to_nearest_with_ties_to_even_and_stay_finite(value: float, bits: int) -> None:
    found = to_bfloat16(np.array(value, np.float32))
    assert found.shape == ()
    assert int(found) == bits


def test_nan_with_a_payload_that_goes_stays_nan() -> None:
    payload = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    assert to_bfloat16(payload).tolist() == [0x7FC0, 0xFFC0]


def test_rounding_takes_what_is_nearest_of_all_neighbours() -> None:
    values = np.random.default_rng(1).integers(0, 0x7F000000, 10_000).astype(np.uint32).view(np.float32)
    bits = to_bfloat16(values).astype(np.uint32)
    below, found, above = ((each << 16).view(np.float32) for each in (bits - 1, bits, bits + 1))
    error = np.abs(values - found)
    assert (error <= np.abs(values - below)).all()
    assert (error <= np.abs(values - above)).all()


def test_a_transposed_array_keeps_its_shape_and_order() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(to_bfloat16(values.T), to_bfloat16(values).T)


def test_weights_are_rounded_from_fp32_and_not_from_fp16() -> None:
    # By way of FP16 the first would become 1, the others 65504 and 6e-08.
    model = network(
        [helper.make_node("Mul", ["x", "w"], ["y"])], [weight("w", [1 + 2**-8 + 2**-12, 1e6, -1e30, 1e-20])]
    )
    converted = convert(model, "BF16")
    found = widened(initializers(converted.model)["w"])
    np.testing.assert_allclose(found, [1 + 2**-7, 1e6, -1e30, 1e-20], rtol=2**-8)
    assert found[0] == 1 + 2**-7
    assert not converted.out_of_range


def test_inputs_and_outputs_keep_their_types_and_the_numbers_are_those_of_bf16() -> None:
    model = network(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        [weight("w", np.random.default_rng(1).standard_normal((4, 4)))],
    )
    converted = convert(copy.deepcopy(model), "BF16").model
    ends = (*converted.graph.input, *converted.graph.output)
    assert [value.type.tensor_type.elem_type for value in ends] == [FLOAT, FLOAT]
    assert [node.op_type for node in converted.graph.node] == ["Cast", "MatMul", "Relu", "Cast"]
    assert converted.graph.node[0].attribute[0].i == BRAIN
    assert_no_fp16(converted)
    before, after = run(model, rows()), run(converted, rows())
    assert after.dtype == np.float32
    assert not np.array_equal(before, after)
    np.testing.assert_allclose(after, before, atol=0.03)


def test_constants_of_every_kind_are_retyped() -> None:
    inner = helper.make_graph(
        [helper.make_node("Mul", ["a", "inner"], ["b0"])],
        "inner",
        [],
        [helper.make_tensor_value_info("b0", FLOAT, ["n", 4])],
        [weight("inner", [70000, 1, 1, 1])],
    )
    filler = numpy_helper.from_array(np.array([100000], np.float32))
    nodes = [
        helper.make_node("Constant", [], ["c"], value=weight("", [1e5, 2, 3, 4])),
        helper.make_node("Add", ["x", "c"], ["a0"]),
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("ConstantOfShape", ["s"], ["filled"], value=filler),
        helper.make_node("ConstantOfShape", ["s"], ["zeros"]),
        helper.make_node("Add", ["a0", "filled"], ["a1"]),
        helper.make_node("Add", ["a1", "zeros"], ["a"]),
        helper.make_node("If", ["yes"], ["b"], then_branch=inner, else_branch=_renamed(inner)),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    model = network(nodes, [numpy_helper.from_array(np.array(1, np.bool_), "yes")])
    before = run(model, rows())
    converted = convert(model, "BF16").model
    assert_no_fp16(converted)
    assert widened(initializers(converted)["inner"])[0] == pytest.approx(70000, rel=2**-8)
    np.testing.assert_allclose(run(converted, rows()), before, rtol=0.03)


def _renamed(graph: onnx.GraphProto) -> onnx.GraphProto:
    other = onnx.GraphProto()
    other.CopyFrom(graph)
    other.name = other.initializer[0].name = other.node[0].input[1] = "other"
    other.output[0].name = other.node[0].output[0] = "other_b"
    return other


def test_what_tensorrt_refuses_in_bf16_stays_and_is_named() -> None:
    model = network(
        [
            helper.make_node("ConvTranspose", ["x", "w"], ["a"], name="deconv"),
            helper.make_node("HardSwish", ["a"], ["b"], name="swish"),
            helper.make_node("Max", ["b", "w2"], ["c"], name="bound"),
            helper.make_node("Sigmoid", ["c"], ["y"], name="sigmoid"),
        ],
        [weight("w", np.ones((3, 3, 2, 2))), weight("w2", [0.3])],
        shape=[1, 3, 4, 4],
    )
    before = run(model, rows(1, 3, 4, 4))
    converted = convert(model, "BF16")
    assert converted.kept == {"ConvTranspose": ("deconv",), "HardSwish": ("swish",), "Max": ("bound",)}
    assert initializers(converted.model)["w"].data_type == FLOAT
    order = [node.op_type for node in converted.model.graph.node]
    assert order == ["ConvTranspose", "HardSwish", "Max", "Cast", "Sigmoid", "Cast"]
    assert not [node.name for node in converted.model.graph.node if "fp16" in node.name]
    np.testing.assert_allclose(run(converted.model, rows(1, 3, 4, 4)), before, atol=2**-7)


def test_fp16_does_not_keep_what_only_bf16_is_refused_for() -> None:
    model = network([helper.make_node("HardSwish", ["x"], ["y"])])
    assert "HardSwish" in REFUSED
    assert not convert(model, "FP16").kept


@pytest.mark.parametrize(
    ("outputs", "kept"), [(["y"], {}), (["y", "mean"], {"LayerNormalization": ("norm",)})]
)
def test_layer_normalization_is_converted_unless_its_mean_is_asked_for(
    outputs: list[str], kept: dict[str, tuple[str, ...]]
) -> None:
    model = network(
        [helper.make_node("LayerNormalization", ["x", "w"], outputs, name="norm")], [weight("w", np.ones(4))]
    )
    assert convert(model, "BF16").kept == kept


def test_a_weight_that_a_kept_and_a_converted_node_share_is_rounded_for_the_latter_only() -> None:
    model = network(
        [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Max", ["a", "w"], ["y"])],
        [weight("w", [1.001, 2, 3, 4])],
    )
    found = initializers(convert(model, "BF16").model)
    assert widened(found["w"])[0] == 1
    assert numpy_helper.to_array(found["w_fp32"])[0] == np.float32(1.001)


def test_the_lowest_number_of_fp32_in_a_mask_stays_finite_and_is_counted() -> None:
    model = network(
        [helper.make_node("Add", ["x", "mask"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])],
        [weight("mask", [LOWEST] * 4)],
    )
    converted = convert(model, "BF16")
    assert converted.out_of_range == (OutOfRange(name="mask", large=4, small=0),)
    assert np.isfinite(run(converted.model, rows())).all()


def test_a_network_in_an_opset_that_has_bf16_passes_the_checker_and_others_keep_their_opset() -> None:
    def convolved(opset: int) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["a"], pads=[1] * 4),
            helper.make_node("MaxPool", ["a"], ["b"], kernel_shape=[2, 2]),
            helper.make_node("Relu", ["b"], ["y"]),
        ]
        return network(nodes, [weight("w", np.ones((3, 3, 3, 3)))], shape=[1, 3, 8, 8], opset=opset)

    onnx.checker.check_model(convert(convolved(22), "BF16").model, full_check=True)
    assert convert(convolved(13), "BF16").model.opset_import[0].version == 13


def test_the_scales_of_a_resize_stay_fp32() -> None:
    model = network(
        [helper.make_node("Resize", ["x", "", "s"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        [weight("s", [1, 1, 1.1, 1.1])],
        shape=[1, 1, 10, 10],
    )
    converted = convert(model, "BF16").model
    assert initializers(converted)["s"].data_type == FLOAT
    assert run(converted, rows(1, 1, 10, 10)).shape == (1, 1, 11, 11)


def test_a_large_network_goes_through_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network([helper.make_node("MatMul", ["x", "w"], ["y"])], [weight("w", np.eye(4) / 3)])
    monkeypatch.setattr(precision_onnx, "PROTOBUF_LIMIT", 10)
    converted = convert(model, "BF16").model
    precision_onnx.save(converted, tmp_path / "large.onnx")
    again = onnx.load(str(tmp_path / "large.onnx"))
    np.testing.assert_array_equal(widened(initializers(again)["w"]), widened(initializers(converted)["w"]))


def test_a_network_that_comes_out_wrong_is_refused_by_the_name_of_the_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(precision_onnx, "_blocked", lambda *_: frozenset())
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
        helper.make_node("Cast", ["q"], ["y"], to=FLOAT),
    ]
    with pytest.raises(UsageError, match="--bf16: the network cannot be converted to BF16") as caught:
        convert(network(nodes, [weight("s", 1.0)], opset=13), "BF16")
    assert "--low_precision_type bf16" in caught.value.remedy


class Loading:
    """Polygraphy's groups for one network, which is not parsed but kept."""

    def __init__(self) -> None:
        self.arg_groups: dict[type, Any] = {
            ModelArgs: SimpleNamespace(path="network.onnx", model_type=SimpleNamespace(is_onnx=lambda: True)),
            OnnxLoadArgs: SimpleNamespace(must_use_onnx_loader=lambda **_: True),
            TrtLoadNetworkArgs: self,
        }
        self.parsed: list[onnx.ModelProto] = []

    def load_network(self) -> tuple[object, object, object]:
        if not self.arg_groups[OnnxLoadArgs].must_use_onnx_loader(disable_custom_outputs=True):
            self.parsed.append(onnx.load(self.arg_groups[ModelArgs].path))
        return "builder", "network", "parser"


def loaded(monkeypatch: pytest.MonkeyPatch, model: onnx.ModelProto) -> onnx.ModelProto | None:
    """What is parsed with `--bf16`; None if it is the network as it is."""
    loading = Loading()
    monkeypatch.setattr("polygraphy.tools.args.util.run_script", lambda _: lambda: model)
    assert precision.load_network(loading.arg_groups, "BF16") == ("builder", "network")
    return loading.parsed[0] if loading.parsed else None


def test_what_was_done_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [
        helper.make_node("Add", ["x", "mask"], ["a"]),
        helper.make_node("HardSwish", ["a"], ["y"], name="swish"),
    ]
    with G_LOGGER.verbosity(G_LOGGER.INFO):
        parsed = loaded(monkeypatch, network(nodes, [weight("mask", [1e6, 0, LOWEST, LOWEST])]))
    assert parsed is not None
    assert typed(parsed) == "BF16"
    said = "".join(capsys.readouterr())
    assert "It was converted to BF16; its inputs and outputs keep their types." in said
    assert "Kept in FP32: HardSwish (swish), because the converter or TensorRT has no BF16 for it." in said
    assert "Out of the range of BF16: 2 value(s) above 3.39e+38 in size were clamped: mask (2)." in said


@pytest.mark.parametrize("kind", ["FP16", "BF16"])
def test_a_typed_network_is_parsed_as_it_is_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    elem_type = HALF if kind == "FP16" else BRAIN
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=elem_type),
        helper.make_node("Cast", ["a"], ["y"], to=FLOAT),
    ]
    assert loaded(monkeypatch, network(nodes)) is None
    assert f"--bf16: the network has {kind} types of its own already, and is left as it is" in "".join(
        capsys.readouterr()
    )


def test_a_network_in_which_nothing_would_be_bf16_is_parsed_as_it_is_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert loaded(monkeypatch, network([helper.make_node("HardSwish", ["x"], ["y"])])) is None
    assert "--bf16: nothing in the network would be computed in BF16" in "".join(capsys.readouterr())
