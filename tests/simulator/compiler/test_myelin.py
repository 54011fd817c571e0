"""Which layers go to Myelin: clusters around a product, a softmax or a normalization on 10.13, everything on 11.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import helper

from polygraphy_debug_ext.simulator import personality
from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion, Layer
from polygraphy_debug_ext.simulator.compiler.myelin import partition

if TYPE_CHECKING:
    import onnx

    from tests.simulator.conftest import Models


def units(model: onnx.ModelProto, trt: str, *, visible: tuple[str, ...] = ()) -> tuple[Layer, ...]:
    graph = graphs.load(model)
    shown = frozenset((*graph.outputs, *visible))
    return partition(Fusion(graph, shown).layers(), personality.load(trt).myelin, shown)


def test_a_convnet_keeps_its_layers_up_to_the_fully_connected_one(models: Models) -> None:
    names = [layer.name for layer in units(models.conv_net(), "10.13")]
    assert names == [
        "conv0 + bn0 + relu0", "conv1 + relu1", "conv2 + add2 + relu2", "pool", "conv3", "PWN(sig3, PWN(mul3))", "gap",
        "{ForeignNode[w4...soft]}",
    ]  # fmt: skip


def test_attention_becomes_one_layer(models: Models) -> None:
    (region,) = units(models.attention(), "10.13")
    assert region.name == "{ForeignNode[wq...mix]}"
    assert (region.inputs, region.outputs) == (("x",), ("y",))


def test_the_newest_takes_everything_and_the_oldest_nothing(models: Models) -> None:
    (whole,) = units(models.conv_net(), "11.4")
    assert whole.name.endswith("...soft]}")
    assert not any(layer.parts for layer in units(models.attention(), "8.6"))


def test_pointwise_layers_alone_stay_outside(models: Models) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["h"], name="a"),
        helper.make_node("Exp", ["h"], ["y"], name="b"),
    ]
    (layer,) = units(models.make(nodes, {"x": [2, 2]}, ["y"]), "10.13")
    assert layer.parts == ()


def test_no_way_leads_out_of_a_region_and_back(models: Models) -> None:
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "w0"], ["a"], name="before"),
        node("Identity", ["a"], ["b"], name="outside"),
        node("MatMul", ["b", "w1"], ["c"], name="after"),
        node("Add", ["a", "c"], ["y"], name="join"),
    ]
    model = models.make(nodes, {"x": [4, 4]}, ["y"], [models.weight("w0", 4, 4), models.weight("w1", 4, 4)])
    found = units(model, "10.13")
    assert [layer.name for layer in found] == [
        "{ForeignNode[w0...before]}",
        "outside",
        "{ForeignNode[w1...join]}",
    ]
    ready = {"x"}
    for layer in found:
        assert ready.issuperset(layer.inputs)
        ready.update(layer.outputs)


def test_what_somebody_wants_to_see_leaves_the_region(models: Models) -> None:
    (region,) = units(models.attention(), "10.13", visible=("s2",))
    assert region.outputs == ("s2", "y")
