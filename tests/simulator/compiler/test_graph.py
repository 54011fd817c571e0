from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler import sizing
from polygraphy_debug_ext.simulator.errors import GraphError

if TYPE_CHECKING:
    from tests.simulator.conftest import Models


def test_constants_are_folded(models: Models) -> None:
    shape = numpy_helper.from_array(np.array([4], np.int64), "half")
    nodes = [
        helper.make_node("Constant", [], ["two"], value_ints=[2]),
        helper.make_node("Mul", ["half", "two"], ["target"], name="target"),
        helper.make_node("Reshape", ["x", "target"], ["y"], name="flat"),
    ]
    graph = graphs.load(models.make(nodes, {"x": [2, 4]}, ["y"], [shape]))
    assert [node.name for node in graph.nodes] == ["flat"]
    assert graph.constant("target").tolist() == [8]


def test_the_shape_of_a_static_tensor_is_a_constant(models: Models) -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], name="shape"),
        helper.make_node("ConstantOfShape", ["s"], ["zeros"], name="zeros"),
        helper.make_node("Add", ["x", "zeros"], ["y"], name="add"),
    ]
    graph = graphs.load(models.make(nodes, {"x": [2, 3]}, ["y"]))
    assert [node.name for node in graph.nodes] == ["add"]


def test_a_constant_output_keeps_a_layer(models: Models) -> None:
    one = numpy_helper.from_array(np.ones(3, np.float32), "one")
    nodes = [
        helper.make_node("Add", ["one", "one"], ["y"], name="sum"),
        helper.make_node("Relu", ["x"], ["z"], name="r"),
    ]
    graph = graphs.load(models.make(nodes, {"x": [2]}, ["y", "z"], [one]))
    assert [node.name for node in graph.nodes] == ["r", "node_of_y"]


def test_names_are_made_unique(models: Models) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="same"),
        helper.make_node("Relu", ["a"], ["y"], name="same"),
    ]
    graph = graphs.load(models.make(nodes, {"x": [2]}, ["y"]))
    assert [node.name for node in graph.nodes] == ["same", "same_1"]


def test_an_unknown_operator_names_the_node(models: Models) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="r"),
        helper.make_node("Frobnicate", ["a"], ["y"], name="frob"),
    ]
    with pytest.raises(GraphError) as caught:
        graphs.load(models.make(nodes, {"x": [2]}, ["y"]))
    assert (caught.value.node, caught.value.name, caught.value.operator) == (1, "frob", "Frobnicate")


def test_an_operator_that_onnx_runtime_lacks_names_the_node(models: Models) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="frob", domain="my.domain")
    model = models.make([node], {"x": [2]}, ["y"])
    model.opset_import.append(helper.make_opsetid("my.domain", 1))
    with pytest.raises(GraphError) as caught:
        graphs.load(model)
    assert (caught.value.node, caught.value.name) == (0, "frob")


def test_old_opsets_and_local_functions_are_understood(models: Models) -> None:
    assert graphs.load(
        models.make([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], opset=7)
    ).nodes
    body = [helper.make_node("Relu", ["a"], ["t"]), helper.make_node("Add", ["t", "t"], ["b"])]
    model = models.make([helper.make_node("Mine", ["x"], ["y"], domain="local", name="f")], {"x": [2]}, ["y"])
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(
        helper.make_function("local", "Mine", ["a"], ["b"], body, [helper.make_opsetid("", 13)])
    )
    assert [node.op for node in graphs.load(model).nodes] == ["Relu", "Add"]


def test_subgraphs_count_as_readers_of_the_outer_graph(models: Models) -> None:
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
        branches[name] = helper.make_graph([helper.make_node(op, ["a"], [name])], name, [], [output])
    nodes = [
        helper.make_node("Exp", ["x"], ["a"], name="exp"),
        helper.make_node("ReduceSum", ["x"], ["s"], name="sum", keepdims=0),
        helper.make_node("Cast", ["s"], ["c"], name="cast", to=TensorProto.BOOL),
        helper.make_node("If", ["c"], ["y"], name="if", **branches),
    ]
    graph = graphs.load(models.make(nodes, {"x": [2]}, ["y"]))
    assert graph.nodes[-1].inputs == ("c", "a")


def test_computed_reshapes_have_shapes(models: Models) -> None:
    model = models.dynamic()
    assert sizing.symbolic(model)["y"].shape == (-1, -1)
    assert sizing.concrete(model, {"x": (3, 5, 4)})["y"].shape == (3, 30)


def test_inputs_that_hold_shapes_are_found(models: Models) -> None:
    model = models.make([helper.make_node("Reshape", ["x", "target"], ["y"], name="r")], {"x": [2, 3]}, ["y"])
    model.graph.input.append(helper.make_tensor_value_info("target", onnx.TensorProto.INT64, [1]))
    assert graphs.load(model).shape_inputs == ("target",)
