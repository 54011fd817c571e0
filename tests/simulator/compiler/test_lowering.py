"""BF16 becomes FP32 for ONNX Runtime, and casts to it round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.lowering import brain_tensor, can_cast, has_brain, lowered
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.simulator.errors import GraphError

if TYPE_CHECKING:
    from tests.simulator.conftest import Array, Models

FLOAT, BRAIN = TensorProto.FLOAT, TensorProto.BFLOAT16


def rounded(models: Models, opset: int = 13) -> onnx.ModelProto:
    """A network that rounds its input to BF16 and adds a weight in BF16."""
    return models.make(
        [
            helper.make_node("Cast", ["x"], ["a"], to=BRAIN, name="down"),
            helper.make_node("Add", ["a", "w"], ["b"], name="add"),
            helper.make_node("Cast", ["b"], ["y"], to=FLOAT, name="up"),
        ],
        {"x": [4]},
        ["y"],
        [brain_tensor(np.array([0, 0, 0, 0.5], np.float32), "w")],
        opset=opset,
    )


def compute(model: onnx.ModelProto, values: list[float]) -> Array:
    session = open_session(lowered(model).SerializeToString())
    [found] = session.run(None, {"x": np.array(values, np.float32)})
    return np.asarray(found)


def test_a_cast_to_bf16_rounds_to_nearest_and_ties_to_even(models: Models) -> None:
    # A unit in the last place of BF16 is 2**-7 at 1.
    found = compute(rounded(models), [1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, 2.0])
    np.testing.assert_array_equal(found, np.array([1, 1 + 2**-6, 1 + 2**-7, 2.5], np.float32))


def test_a_model_without_bf16_stays_what_it_is(models: Models) -> None:
    model = models.conv_net()
    assert not has_brain(model)
    assert lowered(model) is model


def test_the_model_that_is_lowered_does_not_change(models: Models) -> None:
    model = rounded(models)
    before = model.SerializeToString(deterministic=True)
    assert lowered(model) is not model
    assert model.SerializeToString(deterministic=True) == before


def test_weights_are_read_from_either_field(models: Models) -> None:
    model = rounded(models)
    [tensor] = model.graph.initializer
    bits = np.frombuffer(tensor.raw_data, np.uint16).astype(np.int32)
    tensor.ClearField("raw_data")
    tensor.int32_data.extend(bits.tolist())
    [wide] = lowered(model).graph.initializer
    assert wide.data_type == FLOAT
    np.testing.assert_array_equal(numpy_helper.to_array(wide), [0, 0, 0, 0.5])


def test_subgraphs_are_lowered_too(models: Models) -> None:
    branches = {
        name: helper.make_graph(
            [
                helper.make_node("Cast", ["x"], [f"{name}0"], to=BRAIN),
                helper.make_node("Add", [f"{name}0", f"{name}0"], [f"{name}2"]),
                helper.make_node("Cast", [f"{name}2"], [f"{name}1"], to=FLOAT),
            ],
            name,
            [],
            [helper.make_tensor_value_info(f"{name}1", FLOAT, [4])],
        )
        for name in ("then_branch", "else_branch")
    }
    condition = numpy_helper.from_array(np.array(1, np.bool_), "c")
    model = models.make([helper.make_node("If", ["c"], ["y"], **branches)], {"x": [4]}, ["y"], [condition])
    np.testing.assert_array_equal(compute(model, [1 + 2**-9, 3, 4, 5]), np.array([2, 6, 8, 10], np.float32))


def test_constants_in_bf16_are_folded_in_bf16(models: Models) -> None:
    model = models.make(
        [
            helper.make_node("Transpose", ["w"], ["t"], name="turn"),
            helper.make_node("Cast", ["x"], ["a"], to=BRAIN, name="down"),
            helper.make_node("MatMul", ["a", "t"], ["b"], name="mul"),
            helper.make_node("Cast", ["b"], ["y"], to=FLOAT, name="up"),
        ],
        {"x": [1, 3]},
        ["y"],
        [brain_tensor(np.arange(6, dtype=np.float32).reshape(2, 3), "w")],
    )
    graph = graphs.load(model)
    assert [node.name for node in graph.nodes] == ["down", "mul", "up"]
    assert graph.types["t"].elem_type == graph.types["b"].elem_type == BRAIN


def test_an_opset_without_casts_to_bf16_is_lifted(models: Models) -> None:
    model = rounded(models, opset=11)
    assert not can_cast(model)
    assert can_cast(graphs.load(model).model)


def test_bf16_and_fp32_in_one_node_are_refused(models: Models) -> None:
    model = rounded(models)
    model.graph.initializer[0].CopyFrom(models.weight("w", 4))
    with pytest.raises(GraphError, match="BFLOAT16 and another type meet") as caught:
        graphs.load(model)
    assert caught.value.name == "add"
