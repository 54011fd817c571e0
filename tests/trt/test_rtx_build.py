"""`debug build` as a process on NVIDIA's TensorRT-RTX, which builds on a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Source

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx is not installed (extra rtx)")

POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"


class Rtx:
    """Runs `debug build` on a small network."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        weights = np.random.default_rng(3).standard_normal((8, 3, 3, 3)).astype(np.float32)
        graph = helper.make_graph(
            [
                helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1] * 4),
                helper.make_node("Max", ["a", "low"], ["y"], name="bound"),
            ],
            "small",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 8, 8])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 8, 8])],
            [
                numpy_helper.from_array(weights, "w"),
                numpy_helper.from_array(np.array([-1e6], dtype=np.float32), "low"),
            ],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, directory / "small.onnx")

    def __call__(self, *options: str) -> tuple[int, str]:
        """Exit status and output."""
        shapes = ["--trt-min-shapes", "x:[1,3,8,8]", "--trt-opt-shapes", "x:[2,3,8,8]"]
        filing = ["--artifacts-dir", "out", "--artifacts", "replay.json"]
        command = ["debug", "build", "small.onnx", *options, *shapes, "--trt-max-shapes", "x:[4,3,8,8]"]
        done = subprocess.run(
            [sys.executable, "-c", POLYGRAPHY, *command, *filing, "--until", "2", "--check", "true"],
            cwd=self.directory,
            env={**os.environ, "POLYGRAPHY_USE_TENSORRT_RTX": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def replays(self) -> list[Path]:
        return sorted((self.directory / "out" / "good").glob("replay*.json"))

    def build_log(self) -> str:
        return "".join(path.read_text() for path in (self.directory / "out" / "logs").glob("*_build.log"))


@pytest.fixture
def rtx(tmp_path: Path) -> Rtx:
    return Rtx(tmp_path)


def test_it_builds_and_records_the_kernels_that_the_log_tells(rtx: Rtx) -> None:
    status, output = rtx("--save-tactics", "replay.json")
    assert status == 0, output
    assert "Passed: 2/2" in output
    assert "[E]" not in output
    assert "Tactics are recorded from the layers of the engine" in output
    assert output.count("Tactics cannot be forced here") == 1
    first, second = (replay.read(path) for path in rtx.replays())
    assert first.source is Source.ENGINE
    assert first.layers == second.layers
    assert first.layers
    assert all(tactic.tactic is None and tactic.kernel for tactic in first.layers.values())


def test_fp16_has_half_layers_and_says_what_it_did(rtx: Rtx) -> None:
    status, output = rtx("--fp16")
    assert status == 0, output
    assert "It was converted to FP16; its inputs and outputs keep their types." in output
    assert "Kept in FP32: Max (bound)" in output
    convolutions = [line for line in rtx.build_log().split("\n") if "LayerType: correlation" in line]
    assert convolutions
    assert all("Datatype: Half" in line for line in convolutions)
    assert "Name: x, IOMode: Input, DataType: Float" in rtx.build_log()


def test_bf16_has_layers_in_it_and_says_what_it_did(rtx: Rtx) -> None:
    status, output = rtx("--bf16", "--save-tactics", "replay.json")
    assert status == 0, output
    assert "It was converted to BF16; its inputs and outputs keep their types." in output
    assert "Kept in FP32: Max (bound)" in output
    convolutions = [line for line in rtx.build_log().split("\n") if "LayerType: correlation" in line]
    assert convolutions
    assert all("Datatype: BFloat16" in line for line in convolutions)
    assert "Name: x, IOMode: Input, DataType: Float" in rtx.build_log()
    assert replay.read(rtx.replays()[0]).layers


def test_without_fp16_there_is_no_half_layer(rtx: Rtx) -> None:
    status, output = rtx()
    assert status == 0, output
    assert "LayerType: correlation" in rtx.build_log()
    assert "Datatype: Half" not in rtx.build_log()
    assert "Datatype: BFloat16" not in rtx.build_log()


@pytest.mark.parametrize(
    ("options", "problem", "remedy"),
    [
        (["--int8"], "--int8: tensorrt_rtx ", "Quantize the network instead"),
        (["--fp16", "--bf16"], "--fp16, --bf16: tensorrt_rtx ", "Leave one of them out"),
        (["--use-dla"], "--use-dla: tensorrt_rtx ", "Leave it out"),
        (
            ["--save-tactics", "replay.json", "--tactic-source", "selector"],
            "has no algorithm selector",
            "Record with --tactic-source log here; it cannot be forced",
        ),
        (
            ["--save-tactics", "replay.json", "--tactic-source", "cache"],
            "has an editable timing cache that does nothing",
            "Record with --tactic-source log here; it cannot be forced",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_before_the_first_build(
    rtx: Rtx, options: list[str], problem: str, remedy: str
) -> None:
    status, output = rtx(*options)
    assert status == 1
    assert problem in output
    assert remedy in output
    assert "Iteration 1" not in output


def test_a_replay_from_there_cannot_be_forced(rtx: Rtx) -> None:
    assert rtx("--save-tactics", "replay.json")[0] == 0
    recorded = rtx.replays()[0].rename(rtx.directory / "recorded.json")
    (rtx.directory / "out").rename(rtx.directory / "before")
    status, output = rtx("--load-tactics", recorded.name)
    assert status == 1
    assert "recorded.json was recorded from the engine, and cannot be forced" in output


def test_an_engine_without_details_is_told_of(rtx: Rtx) -> None:
    status, output = rtx("--save-tactics", "replay.json", "--profiling-verbosity", "none")
    assert status == 0
    assert "The engine tells nothing of its layers" in output
    assert "--profiling-verbosity detailed" in output
    assert not rtx.replays()
