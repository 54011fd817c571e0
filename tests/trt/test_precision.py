"""`--fp16` converts the network where the builder has no such flag; what cannot be had so is refused, with what to do."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import ModelArgs, OnnxLoadArgs, TrtConfigArgs, TrtLoadNetworkArgs

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.trt import precision, precision_onnx
from polygraphy_debug_ext.trt.capabilities import Capabilities
from polygraphy_debug_ext.trt.precision_onnx import Half, OutOfRange, convert, typed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
ROWS = ["n", 4]


def weight(name: str, values: object, dtype: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype=dtype), name)


def network(
    nodes: Sequence[Any],
    weights: Sequence[Any] = (),
    *,
    inputs: Sequence[tuple[str, int]] = (("x", FLOAT),),
    outputs: Sequence[tuple[str, int]] = (("y", FLOAT),),
    opset: int = 17,
) -> onnx.ModelProto:
    """A network on tensors of n rows."""
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info(name, kind, ROWS) for name, kind in inputs],
        [helper.make_tensor_value_info(name, kind, ROWS) for name, kind in outputs],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model: onnx.ModelProto, **feeds: np.ndarray[Any, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # It would drop casts that round.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, feeds))


def agree(
    model: onnx.ModelProto, tolerance: float = 1e-2, **feeds: np.ndarray[Any, Any]
) -> precision_onnx.Converted:
    """Convert, and hold the outputs against those of the network as it was."""
    before = run(model, **feeds)
    converted = convert(copy.deepcopy(model))
    for old, new in zip(before, run(converted.model, **feeds), strict=True):
        assert new.dtype == old.dtype
        np.testing.assert_allclose(new, old, rtol=tolerance, atol=tolerance)
    return converted


def rows(count: int = 3) -> np.ndarray[Any, Any]:
    return np.random.default_rng(5).standard_normal((count, 4)).astype(np.float32)


def types_of(model: onnx.ModelProto) -> dict[str, int]:
    return {tensor.name: tensor.data_type for tensor in model.graph.initializer}


def strong(name: str = "tensorrt") -> Capabilities:
    return Capabilities(
        name=name,
        version="11.4.0",
        algorithm_selector=False,
        editable_timing_cache=True,
        timing_cache_is_no_op=False,
        weak_types=frozenset(),
        timing_cache_flags=frozenset(),
        inspector=True,
    )


WEAK = replace(strong(), version="10.13", weak_types=frozenset({"FP16", "INT8"}))


def options(
    config: dict[str, object] | None = None, load: dict[str, object] | None = None
) -> dict[type, Any]:
    return {
        TrtConfigArgs: SimpleNamespace(**{"fp16": None, "bf16": None, **(config or {})}),
        TrtLoadNetworkArgs: SimpleNamespace(**(load or {})),
    }


def test_inputs_and_outputs_keep_their_types_and_the_numbers_are_those_of_fp16() -> None:
    model = network(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
        [weight("w", np.random.default_rng(1).standard_normal((4, 4)))],
    )
    x = rows()
    converted = agree(model, x=x)
    assert [value.type.tensor_type.elem_type for value in converted.model.graph.input] == [FLOAT]
    assert types_of(converted.model) == {"w": HALF}
    assert not np.array_equal(run(model, x=x)[0], run(converted.model, x=x)[0])
    assert not converted.kept
    assert not converted.out_of_range


def test_dynamic_shapes_stay_dynamic() -> None:
    converted = convert(network([helper.make_node("Relu", ["x"], ["y"])]))
    dims = converted.model.graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ROWS
    assert run(converted.model, x=rows(5))[0].shape == (5, 4)


def test_ops_of_the_block_list_stay_and_are_named() -> None:
    model = network([helper.make_node("Max", ["x", "w"], ["y"], name="biggest")], [weight("w", [0, 1, 2, 3])])
    assert agree(model, 1e-3, x=rows()).kept == {"Max": ("biggest",)}


def test_ops_without_floats_are_not_named_as_kept() -> None:
    model = network(
        [
            helper.make_node("Max", ["i", "i"], ["j"]),
            helper.make_node("Cast", ["j"], ["k"], to=FLOAT),
            helper.make_node("Add", ["x", "k"], ["y"]),
        ],
        inputs=(("x", FLOAT), ("i", INT64)),
    )
    assert not agree(model, x=rows(), i=np.ones((3, 4), dtype=np.int64)).kept


def test_a_weight_that_a_kept_and_a_converted_node_share_is_rounded_for_the_latter_only() -> None:
    values = [1.0001, 2, 3, 4]
    model = network(
        [helper.make_node("Add", ["x", "w"], ["a"]), helper.make_node("Max", ["a", "w"], ["y"])],
        [weight("w", values)],
    )
    converted = agree(model, x=rows())
    assert types_of(converted.model) == {"w": HALF, "w_fp32": FLOAT}
    [kept] = [each for each in converted.model.graph.initializer if each.name == "w_fp32"]
    assert numpy_helper.to_array(kept)[0] == np.float32(1.0001)


def test_casts_that_were_there_are_converted_too() -> None:
    model = network(
        [
            helper.make_node("Cast", ["i"], ["f"], to=FLOAT),
            helper.make_node("Mul", ["f", "w"], ["g"]),
            helper.make_node("Cast", ["g"], ["h"], to=INT64),
            helper.make_node("Cast", ["h"], ["y"], to=FLOAT),
        ],
        [weight("w", [1, 2, 3, 4])],
        inputs=(("i", INT64),),
    )
    agree(model, i=np.arange(12).reshape(3, 4))


def branch(name: str, op: str) -> onnx.GraphProto:
    """A graph with a weight of its own, a kept op, and a tensor from outside."""
    return helper.make_graph(
        [
            helper.make_node("Mul", ["r", f"w{name}"], [f"m{name}"]),
            helper.make_node(op, [f"m{name}", "r"], [f"k{name}"]),
            helper.make_node("Sub", [f"k{name}", "r"], [f"o{name}"]),
        ],
        name,
        [],
        [helper.make_tensor_value_info(f"o{name}", FLOAT, ROWS)],
        [weight(f"w{name}", [2, 3, 4, 5])],
    )


@pytest.mark.parametrize("condition", [True, False])
def test_kept_ops_in_subgraphs_get_their_casts_there(condition: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("If", ["c"], ["z"], then_branch=branch("a", "Max"), else_branch=branch("b", "Min")),
        helper.make_node("Neg", ["z"], ["y"]),
    ]
    model = network(nodes, [weight("c", condition, bool)])
    assert agree(model, x=rows()).kept == {"Max": ("node_of_ka",), "Min": ("node_of_kb",)}


def test_ops_that_have_no_fp16_in_this_opset_stay() -> None:
    model = network(
        [
            helper.make_node("Mul", ["x", "w"], ["a"]),
            helper.make_node("QuantizeLinear", ["a", "s", "z"], ["q"], name="quantize"),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"], name="dequantize"),
            helper.make_node("Mul", ["d", "w"], ["y"]),
        ],
        [weight("w", [1, 2, 3, 4]), weight("s", 0.125), weight("z", 0, np.int8)],
        opset=13,
    )
    kept = agree(model, 0.2, x=rows()).kept
    assert kept == {"DequantizeLinear": ("dequantize",), "QuantizeLinear": ("quantize",)}


def test_nodes_are_in_order_and_in_their_old_one() -> None:
    names = ["first", "second", "third"]
    tensors = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node("Relu", [tensors[number]], [tensors[number + 1]], name=name)
        for number, name in enumerate(names)
    ]
    converted = convert(network(nodes)).model
    onnx.checker.check_model(converted, full_check=True)
    order = [node.name for node in converted.graph.node]
    assert order == ["graph_input_cast0", *names, "graph_output_cast0"]


def test_kept_ops_in_a_row_and_at_the_borders_round_nothing() -> None:
    model = network(
        [
            helper.make_node("Max", ["x", "w"], ["a"]),
            helper.make_node("Min", ["a", "w2"], ["y"]),
            helper.make_node("Mul", ["a", "w"], ["z"]),
        ],
        [weight("w", [0.1, 0.2, 0.3, 0.4]), weight("w2", [0.7, 0.8, 0.9, 1])],
        outputs=(("y", FLOAT), ("z", FLOAT)),
    )
    converted = agree(model, x=rows())
    assert converted.kept == {"Max": ("node_of_a",), "Min": ("node_of_y",)}
    assert np.array_equal(run(converted.model, x=rows())[0], run(model, x=rows())[0])
    # What is left goes into the multiplication and out of it.
    assert [node.op_type for node in converted.model.graph.node] == ["Max", "Min", "Cast", "Mul", "Cast"]


@pytest.mark.parametrize("name", ["", "named"])
def test_data_that_is_only_moved_from_inputs_to_outputs_is_not_rounded(name: str) -> None:
    model = network(
        [
            helper.make_node("Identity", ["x"], ["a"], name=name),
            helper.make_node("Concat", ["a", "w"], ["b"], axis=0),
            helper.make_node("Identity", ["b"], ["y"]),
            helper.make_node("Sigmoid", ["x"], ["s"]),
            helper.make_node("Identity", ["s"], ["z"]),
        ],
        [weight("w", [[0.1, 0.2, 0.3, 0.4]])],
        outputs=(("y", FLOAT), ("z", FLOAT)),
    )
    before = run(model, x=rows())
    converted = convert(copy.deepcopy(model))
    assert len(converted.moves) == 3
    after = run(converted.model, x=rows())
    assert np.array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])


def test_a_network_that_only_moves_data_stays_as_it_is_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network([helper.make_node("Identity", ["x"], ["y"])])
    assert loaded(monkeypatch, model).parsed == ["as it is"]
    assert "nothing in the network would be computed in FP16" in "".join(capsys.readouterr())


def test_values_out_of_range_are_counted_by_name_and_clamped() -> None:
    constant = numpy_helper.from_array(np.array([1e30, -1e5, 1, 1e-20], dtype=np.float32))
    model = network(
        [
            helper.make_node("Constant", [], ["c"], value=constant),
            helper.make_node("Add", ["x", "c"], ["a"]),
            helper.make_node("Mul", ["a", "w"], ["y"]),
        ],
        [weight("w", [0, 1, np.inf, 65504])],
    )
    converted = convert(model)
    assert converted.out_of_range == (OutOfRange(name="c", large=2, small=1),)
    found = run(converted.model, x=np.zeros((1, 4), dtype=np.float32))[0]
    assert found[0, 1] == -65504


def test_values_of_kept_ops_are_not_out_of_range() -> None:
    model = network([helper.make_node("Max", ["x", "w"], ["y"])], [weight("w", [1e30] * 4)])
    assert not convert(model).out_of_range


def test_weights_that_are_inputs_as_well_are_converted() -> None:
    model = network([helper.make_node("Mul", ["x", "w"], ["y"])], [weight("w", [[1, 2, 3, 4]])])
    model.graph.input.append(helper.make_tensor_value_info("w", FLOAT, [1, 4]))
    agree(model, x=rows())


def test_local_functions_are_converted() -> None:
    body = helper.make_function(
        "local",
        "Double",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 17)],
    )
    model = network([helper.make_node("Relu", ["x"], ["y"])])
    model.graph.node[0].CopyFrom(helper.make_node("Double", ["x"], ["y"], domain="local"))
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(body)
    agree(model, x=rows())


def test_a_large_network_goes_through_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = network(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [weight("w", np.eye(4) / 3)],
    )
    monkeypatch.setattr(precision_onnx, "PROTOBUF_LIMIT", 10)
    converted = convert(copy.deepcopy(model))
    assert types_of(converted.model) == {"w": HALF}
    precision_onnx.save(converted.model, tmp_path / "large.onnx")
    assert (tmp_path / "large.onnx").is_file()
    again = onnx.load(str(tmp_path / "large.onnx"))
    np.testing.assert_allclose(run(again, x=rows())[0], run(model, x=rows())[0], rtol=1e-2, atol=1e-2)


def test_a_network_that_comes_out_wrong_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_onnx, "_blocked", lambda *_: frozenset())
    model = network(
        [
            helper.make_node("QuantizeLinear", ["x", "s"], ["q"]),
            helper.make_node("Cast", ["q"], ["y"], to=FLOAT),
        ],
        [weight("s", 1.0)],
        opset=13,
    )
    with pytest.raises(UsageError, match="--fp16: the network cannot be converted to FP16") as caught:
        convert(model)
    assert "modelopt" in caught.value.remedy


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (network([helper.make_node("Relu", ["x"], ["y"])]), None),
        (
            network([helper.make_node("Relu", ["x"], ["y"])], inputs=(("x", HALF),), outputs=(("y", HALF),)),
            "FP16",
        ),
        (
            network(
                [
                    helper.make_node("Cast", ["x"], ["a"], to=TensorProto.BFLOAT16),
                    helper.make_node("Cast", ["a"], ["y"], to=FLOAT),
                ]
            ),
            "BF16",
        ),
        (
            network([helper.make_node("Relu", ["x"], ["y"])], [weight("unused", [1, 2], np.float16)]),
            "FP16",
        ),
    ],
)
def test_a_network_with_types_of_its_own_is_known(model: onnx.ModelProto, kind: str | None) -> None:
    assert typed(model) == kind


def test_a_builder_with_flags_keeps_its_options() -> None:
    groups = options({"fp16": True, "int8": True})
    assert not precision.take_off(groups, WEAK)
    assert groups[TrtConfigArgs].fp16


@pytest.mark.parametrize("fp16", [True, None])
def test_fp16_is_taken_off_where_there_is_no_flag(fp16: bool | None) -> None:  # noqa: FBT001 - a parameter of pytest
    groups = options({"fp16": fp16})
    assert precision.take_off(groups, strong()) == ("FP16" if fp16 else None)
    assert groups[TrtConfigArgs].fp16 is None


def test_bf16_is_taken_off_where_there_is_no_flag() -> None:
    groups = options({"bf16": True})
    assert precision.take_off(groups, strong("tensorrt_rtx")) == "BF16"
    assert groups[TrtConfigArgs].bf16 is None


def test_a_builder_with_flags_may_choose_between_both_and_a_strongly_typed_network_cannot() -> None:
    both: dict[str, object] = {"fp16": True, "bf16": True}
    groups = options(both)
    assert precision.take_off(groups, replace(WEAK, weak_types=frozenset({"FP16", "BF16"}))) is None
    assert groups[TrtConfigArgs].fp16
    assert groups[TrtConfigArgs].bf16
    with pytest.raises(UsageError, match=r"--fp16, --bf16: tensorrt 11\.4\.0 builds strongly") as caught:
        precision.take_off(options(both), strong())
    assert "Leave one of them out" in caught.value.remedy


def test_bf16_is_refused_by_a_builder_with_flags_that_has_none_for_it() -> None:
    with pytest.raises(UsageError, match=r"--bf16: tensorrt 10\.13 has no BF16") as caught:
        precision.take_off(options({"bf16": True}), WEAK)
    assert "use --fp16" in caught.value.remedy


def test_a_network_that_is_to_be_strongly_typed_is_converted_by_a_builder_with_flags_too() -> None:
    groups = options({"fp16": True}, {"strongly_typed": True})
    assert precision.take_off(groups, WEAK)
    assert groups[TrtConfigArgs].fp16 is None
    with pytest.raises(
        UsageError, match="--int8: with --strongly-typed a network has the types that it says"
    ):
        precision.take_off(options({"int8": True}, {"strongly_typed": True}), WEAK)


@pytest.mark.parametrize(
    ("config", "load", "option", "remedy"),
    [
        ({"int8": True}, {}, "--int8", "Quantize"),
        ({"fp8": True}, {}, "--fp8", "Quantize"),
        ({"calibration_cache": "c"}, {}, "--calibration-cache", "Quantize"),
        ({"quantization_flags": []}, {}, "--quantization-flags", "Quantize"),
        ({"precision_constraints": "obey"}, {}, "--precision-constraints", "Cast nodes"),
        ({}, {"layer_precisions": {"a": "float16"}}, "--layer-precisions", "Cast nodes"),
        ({}, {"tensor_datatypes": {"a": "float16"}}, "--tensor-datatypes", "Cast nodes"),
        ({"int8": True, "bf16": True}, {}, "--int8", "Quantize"),
    ],
)
def test_what_only_a_builder_with_flags_can_do_is_refused(
    config: dict[str, object], load: dict[str, object], option: str, remedy: str
) -> None:
    with pytest.raises(UsageError) as caught:
        precision.take_off(options(config, load), strong())
    assert caught.value.problem.startswith(f"{option}: tensorrt 11.4.0 builds strongly typed networks only")
    assert remedy in caught.value.remedy


def test_several_refusals_are_one_message() -> None:
    with pytest.raises(UsageError, match="--int8, --fp8, --precision-constraints: "):
        precision.take_off(
            options({"int8": True, "fp8": True, "precision_constraints": "prefer"}), strong("tensorrt_rtx")
        )


def test_dla_is_refused_on_tensorrt_rtx_only() -> None:
    precision.take_off(options({"use_dla": True}), strong())
    with pytest.raises(UsageError, match=r"--use-dla: tensorrt_rtx 11\.4\.0 has no DLA"):
        precision.take_off(options({"use_dla": True}), strong("tensorrt_rtx"))


class Loading:
    """Polygraphy's groups for one network, which is not parsed but kept."""

    def __init__(self, model: onnx.ModelProto, *, is_onnx: bool = True) -> None:
        self.arg_groups: dict[type, Any] = {
            ModelArgs: SimpleNamespace(
                path="network.onnx", model_type=SimpleNamespace(is_onnx=lambda: is_onnx)
            ),
            OnnxLoadArgs: SimpleNamespace(must_use_onnx_loader=lambda **_: True),
            TrtLoadNetworkArgs: self,
        }
        self.model = model
        self.parsed: list[Any] = []

    def load_network(self) -> tuple[object, object, object]:
        path = self.arg_groups[ModelArgs].path
        changed = self.arg_groups[OnnxLoadArgs].must_use_onnx_loader(disable_custom_outputs=True)
        self.parsed.append("as it is" if changed else onnx.load(path))
        return "builder", "network", "parser"


def loaded(
    monkeypatch: pytest.MonkeyPatch, model: onnx.ModelProto, half: Half = "FP16", *, is_onnx: bool = True
) -> Loading:
    loading = Loading(model, is_onnx=is_onnx)
    monkeypatch.setattr("polygraphy.tools.args.util.run_script", lambda _: lambda: model)
    assert precision.load_network(loading.arg_groups, half) == ("builder", "network")
    return loading


def test_the_converted_network_is_what_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network([helper.make_node("Mul", ["x", "w"], ["y"])], [weight("w", [1, 2, 3, 4])])
    loading = loaded(monkeypatch, model)
    assert types_of(loading.parsed[0]) == {"w": HALF}
    assert loading.arg_groups[ModelArgs].path == "network.onnx"


def test_a_typed_network_is_parsed_as_it_is_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = network([helper.make_node("Relu", ["x"], ["y"])], [weight("unused", [1], np.float16)])
    assert loaded(monkeypatch, model).parsed == ["as it is"]
    assert "has FP16 types of its own already, and is left as it is" in "".join(capsys.readouterr())


@pytest.mark.parametrize("half", ["FP16", "BF16"])
def test_a_network_that_is_not_onnx_is_refused(monkeypatch: pytest.MonkeyPatch, half: Half) -> None:
    with pytest.raises(UsageError, match=f"--{half.lower()}: only ONNX networks can be converted to {half}"):
        loaded(monkeypatch, None, half, is_onnx=False)


def test_what_was_kept_and_clamped_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [helper.make_node("Mul", ["x", "w"], ["t0"])]
    nodes += [
        helper.make_node("Max", [f"t{number}", "x"], [f"t{number + 1}"], name=f"m{number}")
        for number in range(7)
    ]
    nodes.append(helper.make_node("Relu", ["t7"], ["y"]))
    with G_LOGGER.verbosity(G_LOGGER.INFO):
        loaded(monkeypatch, network(nodes, [weight("w", [1e6, 1e-12, -1e30, 1])]))
    said = "".join(capsys.readouterr())
    assert "Kept in FP32: Max (m0, m1, m2, m3, m4 and 2 more)" in said
    assert "Out of the range of FP16: 2 value(s) above 65504 in size were clamped: w (2)." in said
    assert "Out of the range of FP16: 1 value(s) below 6e-08 in size were raised to that: w (1)." in said
