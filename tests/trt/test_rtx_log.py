"""The log that NVIDIA's real builder (TensorRT-RTX, on a CPU) writes at verbose level is read as a build log."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.formats import build_log, layer_lines, replay
from polygraphy_debug_ext.formats.build_log import Status
from polygraphy_debug_ext.formats.layer_information import stable_names
from polygraphy_debug_ext.model import Source

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx is not installed (extra rtx)")

#: Builds twice with TensorRT's own logger, which writes to the standard error.
BUILD = """
import sys
import tensorrt_rtx as trt

builder = trt.Builder(trt.Logger(trt.Logger.VERBOSE))
for _ in range(2):
    network = builder.create_network(0)
    assert trt.OnnxParser(network, builder.logger).parse_from_file(sys.argv[1])
    config = builder.create_builder_config()
    config.profiling_verbosity = getattr(trt.ProfilingVerbosity, sys.argv[2])
    assert builder.build_serialized_network(network, config) is not None
"""
POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    generator = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (8, 8, 1, 1)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2"),
        helper.make_node("Softmax", ["c"], ["y"], name="softmax", axis=1),
    ]
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [1, 3, 8, 8]), ("y", [1, 8, 8, 8]))
    ]
    graph = helper.make_graph(nodes, "small", *ends, weights)
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def built(model: Path, verbosity: str) -> Path:
    """The log of two builds."""
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(model), verbosity], capture_output=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    path = model.with_name("build.log")
    path.write_bytes(done.stdout + done.stderr)
    return path


def test_the_log_of_a_live_build_tells_the_layers_that_the_inspector_prints(model: Path) -> None:
    path = built(model, "DETAILED")
    text = path.read_text()
    assert build_log.recognises(path.read_bytes()[: 2**16])
    builds = build_log.read(path).builds
    assert [build.status for build in builds] == [Status.FINISHED] * 2
    # At the end of a build the inspector's own text is in the log.
    lists = [part.partition("\n\n")[0] for part in text.split("Layers:\n")[1:]]
    assert len(lists) == 2
    for build, lines in zip(builds, lists, strict=True):
        layers = layer_lines.parse(f"Layers:\n{lines}\n", "log")
        assert len(layers) == len(lines.split("\n"))
        assert build.assignment is not None
        names = stable_names(layers)
        assert {name: tactic.kernel for name, tactic in build.assignment.layers.items()} == {
            name: layer.kernel for name, layer in zip(names, layers, strict=True) if layer.kernel is not None
        }
        assert any("conv1" in name and "relu1" in name for name in names)
        assert build.assignment.source is Source.LOG
        assert not build.failure.skipped


@pytest.mark.parametrize("verbosity", ["LAYER_NAMES_ONLY", "NONE"])
def test_without_details_the_final_list_has_the_graph_as_one_layer(model: Path, verbosity: str) -> None:
    path = built(model, verbosity)
    assert path.read_text().count("Engine Layer Information:\nLayer(Myelin): {ForeignNode[") == 2
    for build in build_log.read(path).builds:
        assert build.status is Status.FINISHED
        assert build.assignment is not None
        (layer,) = build.assignment.layers
        assert build.assignment.opaque_layers == (layer,)
        assert build.assignment.layers[layer].tactic == 0


def test_the_logs_that_debug_build_keeps_tell_what_its_replays_tell(model: Path) -> None:
    command = ["debug", "build", model.name, "--save-tactics", "replay.json", "--artifacts", "replay.json"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            POLYGRAPHY,
            *command,
            "--artifacts-dir",
            "out",
            "--until",
            "1",
            "--check",
            "true",
        ],
        cwd=model.parent,
        env={**os.environ, "POLYGRAPHY_USE_TENSORRT_RTX": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = (model.parent / "out" / "logs").glob("*_N0_build.log")
    (build,) = build_log.read(log).builds
    (recorded,) = (model.parent / "out" / "good").glob("replay_*.json")
    assert build.assignment is not None
    wanted = {name: tactic.kernel for name, tactic in replay.read(recorded).layers.items()}
    assert wanted
    assert {name: tactic.kernel for name, tactic in build.assignment.layers.items()} == wanted
