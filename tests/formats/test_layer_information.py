"""Layer information of every TensorRT is read; without tactics it says how to rebuild the engine."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import layer_information
from polygraphy_debug_ext.model import Source
from polygraphy_debug_ext.model.answer import Rank

CASES = Path(__file__).parent.parent / "data" / "cases"
DETAILED = CASES / "06-layerinfo-trt10-detailed"
NAMES_ONLY = CASES / "08-layerinfo-names-only"
MYELIN = CASES / "12-replay-identical-myelin-hides-it" / "layerinfo"


def expected(case: Path) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((case / "expected.json").read_text())
    return answers


def test_case_06_tactics_by_value_or_by_kernel() -> None:
    wanted = expected(DETAILED)["files"]["layers.json"]
    layers = layer_information.parse((DETAILED / "layers.json").read_bytes(), "layers.json")
    found = [
        {
            "name": each.name,
            "type": each.layer_type,
            "tactic": None if each.tactic is None else f"0x{each.tactic:016x}",
            "kernel": each.kernel,
        }
        for each in layers
    ]
    assert found == wanted["layers"]
    assert sum(each.tactic is None for each in layers) == wanted["layers_without_tactic_value"]
    for name, onnx_layers in wanted["onnx_layers"].items():
        assert next(each.onnx_layers for each in layers if each.name == name) == tuple(onnx_layers)


def test_a_layer_without_any_tactic_is_never_a_suspect() -> None:
    assignment = layer_information.read(DETAILED / "layers.json")
    assert assignment.source is Source.LAYER_INFORMATION
    assert len(assignment.layers) == 7
    assert not any("mye260" in name for name in assignment.layers)


@pytest.mark.parametrize("name", ["li.json", "li_trt11.json"])
def test_case_08_names_only_says_which_option_is_missing(name: str) -> None:
    with pytest.raises(NotThisFormatError, match=r"no tactic information.*LAYER_NAMES_ONLY") as caught:
        layer_information.read(NAMES_ONLY / name)
    assert "--profilingVerbosity=detailed" in caught.value.remedy


def test_case_12_the_choice_inside_myelin_is_found_by_the_names_in_the_metadata() -> None:
    wanted = expected(MYELIN.parent)["layerinfo"]
    sides = [
        [layer_information.read(path) for path in sorted((MYELIN / side).iterdir())]
        for side in ("good", "bad")
    ]
    (suspect,) = (each for each in rank(table_of(*sides)).suspects if each.rank is not Rank.NOT_SUSPECT)
    (answer,) = wanted["suspects"]
    assert suspect.layers == (" + ".join(answer["onnx_layers"]),)
    assert suspect.tactic.kernel == answer["kernel"]
    assert [tactic.kernel for tactic in suspect.alternatives] == answer["good_kernels"]
    assert (suspect.counts.bad_with, suspect.counts.good_with) == (
        answer["bad_builds"],
        answer["good_builds"],
    )
    assert suspect.rank.value == answer["rank"]


def test_equal_stable_names_are_numbered() -> None:
    entries = [
        {"Name": f"__myl_Add_myl{graph}_{place}", "TacticName": f"k{place}"}
        for graph, place in ((0, 0), (0, 1))
    ]
    layers = layer_information.parse(json.dumps({"Layers": entries}), "x")
    assert layer_information.stable_names(layers) == ["__myl_Add", "__myl_Add #2"]


def test_raw_control_characters_in_metadata_are_read() -> None:
    text = (
        '{"Layers": [{"Name": "a + b", "TacticName": "k", "Metadata": "[ONNX Layer: a]\x1e[ONNX Layer: b]"}]}'
    )
    (layer,) = layer_information.parse(text, "x")
    assert layer.onnx_layers == ("a", "b")


def test_layer_information_of_tensorrt_11_is_read(tmp_path: Path) -> None:
    tensor = {"Name": "x", "IOMode": "Input", "DataType": "Float", "Dimensions": [1], "ProfileInfo": []}
    document = {
        "ProfilingVerbosity": "DETAILED",
        "Layers": [
            {
                "Name": "a",
                "LayerType": "kgen",
                "TacticName": "k",
                "StreamId": 0,
                "Metadata": "[ONNX Layer: a]",
            }
        ],
        "I/O Tensors": [tensor],
        "Engine Metadata": {"Multi-Device": "Disabled"},
    }
    path = tmp_path / "layers.json"
    path.write_text(json.dumps(document, indent=1))
    assert {name: tactic.kernel for name, tactic in layer_information.read(path).layers.items()} == {"a": "k"}


def test_long_metadata_takes_no_more_than_linear_time() -> None:
    entry = {"Name": "a", "TacticName": "k", "Metadata": "[ONNX Layer: " * 80_000}
    started = time.process_time()
    layer_information.parse(json.dumps({"Layers": [entry]}), "x")
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"Layers": [{"Name": "a", "TacticValue": 7}]}', "layer 'a': TacticValue is 7"),
        ('{"Layers": [{"Name": "a", "TacticValue": "0xg"}]}', "layer 'a': TacticValue is '0xg'"),
        ('{"Layers": [{"Name": "a", "TacticName": []}]}', "layer 'a': TacticName is list, not text"),
        ('{"Layers": [{"Name": 3}]}', "Name is int, not text"),
        ('{"Layers": [{}]}', "layer 0: Name is missing"),
        ('{"Layers": [{"Name": "a"}, 4]}', "layer 1: int, not an object"),
        ('{"Layers": [{"Name": "a"', "damaged layer information"),
    ],
)
def test_damage_is_named(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        layer_information.parse(text, "layers.json")
    assert not isinstance(caught.value, NotThisFormatError)


@pytest.mark.parametrize("text", ["hello", "[]", "{}", '{"Layers": 3}', '{"replay": {}}', "[" * 100_000])
def test_something_else_is_told_from_damage(text: str) -> None:
    with pytest.raises(NotThisFormatError):
        layer_information.parse(text, "x")
