"""Layer information as text: the end of a verbose log of TensorRT-RTX."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext.errors import NotThisFormatError
from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats.layer_information import EngineLayer, stable_names

TENSOR = "{ Name: a_myl0, Dimensions: [1,8], Datatype: Half, Format: (NHWC) Channel major format }"
LAYERS = f"""Layers:
Name: __myl_Cast_myl0_0, LayerType: kgen, Inputs: [ {TENSOR}], Constants: [], Outputs: [ {TENSOR}, {TENSOR}], TacticName: __myl_Cast_0x17, StreamId: 0, Metadata: \n\
Name: conv_myl0_1, LayerType: correlation, Inputs: [ {TENSOR}], Constants: [], Outputs: [], TacticName: void f<int, 3>, TacticValue: 0x1f, StreamId: 0, Metadata: [ONNX Layer: conv]\x1f[ONNX Layer: relu]
Name: jump_myl0_2, LayerType: cjmp, Inputs: [], Constants: [], Outputs: [], TacticName: , StreamId: 0, JumpTargetThen: conv_myl0_1, Metadata: [ONNX Layer: if]

I/O Tensors:
 Name: x, IOMode: Input, DataType: Float

Engine Metadata:
 Multi-Device: Disabled"""


def layer(name: str, kind: str, kernel: str | None, tactic: int | None, *onnx_layers: str) -> EngineLayer:
    return EngineLayer(name=name, layer_type=kind, tactic=tactic, kernel=kernel, onnx_layers=onnx_layers)


def test_every_layer_is_read_with_its_kernel_and_its_onnx_layers() -> None:
    assert layer_lines.parse(LAYERS, "log") == (
        layer("__myl_Cast_myl0_0", "kgen", "__myl_Cast_0x17", None),
        layer("conv_myl0_1", "correlation", "void f<int, 3>", 0x1F, "conv", "relu"),
        layer("jump_myl0_2", "cjmp", None, None, "if"),
    )


def test_names_are_those_that_another_build_has_too() -> None:
    assert stable_names(layer_lines.parse(LAYERS, "log")) == ["__myl_Cast", "conv + relu", "if"]


def test_lines_may_be_indented_as_polygraphy_prints_them() -> None:
    indented = LAYERS.replace("\n", "\n    ")
    assert layer_lines.parse(indented, "log") == layer_lines.parse(LAYERS, "log")


def test_a_message_that_begins_with_the_header_is_the_list() -> None:
    assert layer_lines.begins(LAYERS)
    assert not layer_lines.begins("Layers: 3")
    assert not layer_lines.begins("Engine Layer Information:\nLayer(Myelin): a, Tactic: 0x0, x -> y")


def test_names_alone_are_no_tactics() -> None:
    with pytest.raises(NotThisFormatError, match="LAYER_NAMES_ONLY"):
        layer_lines.parse("Layers:\nconv1 + relu1\nconv2\n\nBindings:\nx", "log")


def test_a_list_without_layers_has_none() -> None:
    assert layer_lines.parse("Layers:\n\nI/O Tensors:", "log") == ()
