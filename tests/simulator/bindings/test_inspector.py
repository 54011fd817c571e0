from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Made, Models, Workbench


def build(bench: Workbench, models: Models, verbosity: str) -> Made:
    def prepare(_: Made, __: Made, config: Made) -> None:
        config.profiling_verbosity = getattr(bench.trt.ProfilingVerbosity, verbosity)

    return bench.engine(bench.build(models.conv_net(), "FP16", prepare=prepare))


@pytest.mark.parametrize("name", ["8.6", "10.13"])
def test_detailed_information_has_kernels_and_tactics(
    workbench: Callable[..., Workbench], models: Models, name: str
) -> None:
    bench = workbench(name)
    engine = build(bench, models, "DETAILED")
    text = engine.create_engine_inspector().get_engine_information(bench.trt.LayerInformationFormat.JSON)
    layers = {layer["Name"]: layer for layer in json.loads(text)["Layers"]}
    assert len(layers) == engine.num_layers
    conv = layers["conv1 + relu1"]
    assert conv["TacticName"].startswith("sm80_xmma_fprop")
    assert conv["TacticValue"].startswith("0x")
    assert len(conv["TacticValue"]) == 18
    assert conv["Metadata"] == "[ONNX Layer: conv1]\x1e[ONNX Layer: relu1]"
    assert conv["Inputs"][0]["Format/Datatype"]
    assert json.loads(text)["Bindings"] == ["x", "y"]


def test_names_only_are_names_only(bench: Workbench, models: Models) -> None:
    inspector = build(bench, models, "LAYER_NAMES_ONLY").create_engine_inspector()
    data = json.loads(inspector.get_engine_information(bench.trt.LayerInformationFormat.JSON))
    assert "conv1 + relu1" in data["Layers"]
    assert (
        json.loads(inspector.get_layer_information(0, bench.trt.LayerInformationFormat.JSON))
        == data["Layers"][0]
    )


def test_none_is_nothing(bench: Workbench, models: Models) -> None:
    inspector = build(bench, models, "NONE").create_engine_inspector()
    assert inspector.get_layer_information(0, bench.trt.LayerInformationFormat.JSON) == "{}"


def test_one_line_is_one_line(bench: Workbench, models: Models) -> None:
    inspector = build(bench, models, "DETAILED").create_engine_inspector()
    line = inspector.get_layer_information(0, bench.trt.LayerInformationFormat.ONELINE)
    assert line.startswith("Name: ")
    assert "Inputs: [ { Name: x, Location: Device, Dimensions: [1,3,16,16]" in line
    assert "\n" not in line


def test_formats_of_dynamic_tensors_need_a_context(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("8.6")

    def prepare(builder: Made, _: Made, config: Made) -> None:
        profile = builder.create_optimization_profile()
        profile.set_shape("x", (1, 1, 4), (2, 3, 4), (4, 8, 4))
        config.add_optimization_profile(profile)

    engine = bench.engine(bench.build(models.dynamic(), prepare=prepare))
    inspector = engine.create_engine_inspector()
    assert "N/A due to dynamic shapes" in inspector.get_layer_information(
        0, bench.trt.LayerInformationFormat.JSON
    )
    inspector.execution_context = engine.create_execution_context()
    assert "Row major linear FP32" in inspector.get_layer_information(
        0, bench.trt.LayerInformationFormat.JSON
    )


def test_inner_layers_have_a_kernel_but_no_tactic_value(bench: Workbench, models: Models) -> None:
    layer = bench.information(bench.build(models.conv_net(), "FP16"))["Layers"][-2]
    assert list(layer) == ["Name", "LayerType", "Inputs", "Outputs", "TacticName", "StreamId", "Metadata"]
    assert layer["LayerType"] == "kgen"
    assert list(layer["Inputs"][0]) == ["Name", "Dimensions", "Format/Datatype"]
    assert layer["Inputs"][0]["Format/Datatype"] in {"Float", "Half"}


def test_the_newest_schema_splits_formats_and_describes_inputs_and_outputs(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("11.4")
    plan = bench.build(models.conv_net())
    data = bench.information(plan)
    assert list(data) == ["ProfilingVerbosity", "Layers", "I/O Tensors", "Engine Metadata"]
    assert len(data["Layers"]) == bench.engine(plan).num_layers
    layer = data["Layers"][1]
    assert list(layer) == [
        "Name",
        "LayerType",
        "Inputs",
        "Constants",
        "Outputs",
        "TacticName",
        "StreamId",
        "Metadata",
    ]
    assert layer["LayerType"] == "correlation"
    assert layer["Metadata"] == "[ONNX Layer: conv1]\x1f[ONNX Layer: relu1]"
    tensor = layer["Outputs"][0]
    assert list(tensor) == ["Name", "Dimensions", "Strides", "StrideOrder", "Datatype", "Format"]
    assert (tensor["Datatype"], tensor["Format"]) == ("Float", "(Linear) Row major linear format")
    assert (tensor["Strides"], tensor["StrideOrder"]) == ([2048, 256, 16, 1], [3, 2, 1, 0])
    x, y = data["I/O Tensors"]
    assert (x["Name"], x["IOMode"], x["DataType"], x["Location"]) == ("x", "Input", "Float", "Device")
    assert x["ProfileInfo"][0]["OptShape"] == [1, 3, 16, 16]
    assert (y["Name"], y["IOMode"]) == ("y", "Output")


def test_names_only_are_names_in_the_newest_schema_too(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("11.4")
    inspector = build(bench, models, "LAYER_NAMES_ONLY").create_engine_inspector()
    data = json.loads(inspector.get_engine_information(bench.trt.LayerInformationFormat.JSON))
    assert data["ProfilingVerbosity"] == "LAYER_NAMES_ONLY"
    assert all(isinstance(name, str) for name in data["Layers"])
    text = inspector.get_engine_information(bench.trt.LayerInformationFormat.ONELINE)
    assert "I/O Tensors:\n Name: x, IOMode: Input" in text
    assert "IsShapeInferenceIO: false" in text
