"""Layer information as text: the end of a verbose log of TensorRT-RTX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats.layer_information import EngineLayer, stable_names
from polygraphy_debug_ext.model import Source

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize(
    "text",
    [
        LAYERS,
        LAYERS.replace("\n", "\r\n"),
        f"&&&& RUNNING TensorRT.trtexec [TensorRT v8502]\n[08/11/2026-09:14:20] [I] {LAYERS}\nmore\n",
        f"Layer information:\n\n{LAYERS}",
        LAYERS.partition("\n")[2],
        LAYERS.partition("\n\n")[0],
        "\n".join(f"2026-08-11T09:14:20.1234567Z {line}" for line in LAYERS.split("\n")),
    ],
    ids=["alone", "Windows", "log", "heading", "no header", "no end", "CI"],
)
def test_a_file_with_a_list_is_known_and_read_whatever_is_around_it(text: str, tmp_path: Path) -> None:
    assert layer_lines.recognises(text.encode())
    path = tmp_path / "layers.txt"
    path.write_bytes(text.encode())
    assignment = layer_lines.read(path)
    assert list(assignment.layers) == ["__myl_Cast", "conv + relu"]
    assert assignment.layers["conv + relu"].tactic == 0x1F
    assert assignment.source is Source.LAYER_INFORMATION
    assert (assignment.origin, assignment.fields) == (str(path), frozenset())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{LAYERS}\n{LAYERS}", "more than one list of layers"),
        (LAYERS[: LAYERS.index(", StreamId: 0, JumpTargetThen")], "the list of layers is cut off"),
        (LAYERS.replace("0x1f,", "0x11112222333344445,"), "TacticValue is '0x11112222333344445'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "layers.txt"
    path.write_text(text)
    with pytest.raises(FormatError, match=message) as caught:
        layer_lines.read(path)
    assert not isinstance(caught.value, NotThisFormatError)


def test_a_file_with_names_alone_says_which_option_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "layers.txt"
    path.write_text("[I] Layers:\nconv1 + relu1\nconv2\n\nBindings:\nx")
    with pytest.raises(NotThisFormatError, match="LAYER_NAMES_ONLY"):
        layer_lines.read(path)
    path.write_text("nothing of the sort\n")
    with pytest.raises(NotThisFormatError, match="no list of layers"):
        layer_lines.read(path)
