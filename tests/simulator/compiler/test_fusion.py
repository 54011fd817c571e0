from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import helper

from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion

if TYPE_CHECKING:
    import onnx

    from tests.simulator.conftest import Models


def names(model: onnx.ModelProto, *visible: str) -> list[str]:
    graph = graphs.load(model)
    return [layer.name for layer in Fusion(graph, frozenset(visible)).layers()]


def test_layers_are_named_as_tensorrt_names_them(models: Models) -> None:
    assert names(models.conv_net()) == [
        "conv0 + bn0 + relu0",
        "conv1 + relu1",
        "conv2 + add2 + relu2",
        "pool",
        "conv3",
        "PWN(sig3, PWN(mul3))",
        "gap",
        "flat",
        "fc",
        "soft",
    ]


def test_a_tensor_that_somebody_wants_to_see_stops_fusion(models: Models) -> None:
    found = names(models.conv_net(), "t3", "t10")
    assert "conv1" in found
    assert "PWN(relu1)" in found
    assert "PWN(sig3)" in found


def test_reshapes_and_transposes_become_one_shuffle(models: Models) -> None:
    found = names(models.attention())
    assert "q_split + q_heads" in found
    assert "PWN(scaled)" in found


def test_an_unnamed_node_is_named_after_its_output(models: Models) -> None:
    assert names(models.identity()) == ["node_of_y"]


def test_a_layer_comes_after_all_that_it_reads(models: Models) -> None:
    graph = graphs.load(models.conv_net())
    made = set(graph.inputs)
    for layer in Fusion(graph, frozenset()).layers():
        assert set(layer.inputs) <= made
        made.update(layer.outputs)


def test_what_nobody_reads_is_dropped(models: Models) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["y"], name="used"),
        helper.make_node("Exp", ["x"], ["z"], name="unused"),
    ]
    assert names(models.make(nodes, {"x": [2]}, ["y"])) == ["PWN(used)"]


def test_a_residual_with_another_shape_is_not_fused(models: Models) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1] * 4),
        helper.make_node("GlobalMaxPool", ["x"], ["b"], name="peak"),
        helper.make_node("Add", ["a", "b"], ["y"], name="add"),
    ]
    found = names(models.make(nodes, {"x": [1, 2, 4, 4]}, ["y"], [models.weight("w", 2, 2, 3, 3)]))
    assert found == ["conv", "peak", "PWN(add)"]
