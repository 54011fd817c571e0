"""Recording and forcing, end to end, on every generation of TensorRT that the simulator has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import onnx
import pytest
from onnx import TensorProto, helper

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.formats.collection import collect
from polygraphy_debug_ext.model import Source
from polygraphy_debug_ext.model.answer import Rank, View

if TYPE_CHECKING:
    from polygraphy_debug_ext.model import Assignment

pytestmark = pytest.mark.usefixtures("example_networks")

VERSIONS = ("8.6", "10.13", "11.4")
EXAMPLES = Path(__file__).parents[1] / "examples"
REJECT = EXAMPLES / "03_a_culprit_without_a_fault" / "reject_kernel.py"
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
#: Writes what the engine says of its layers to layers.json.
DUMP = [sys.executable, str(Path(__file__).parent / "hunting" / "dump_layers.py"), "{engine}"]


class Run:
    """A directory with the network of the example, in which `debug build` runs under the simulator."""

    def __init__(self, directory: Path, version: str) -> None:
        self.directory = directory
        self.version = version
        self.network = "convnet.onnx"

    def build(
        self, *options: str, seed: int = 1, check: list[str] | None = None, gpu: str | None = None
    ) -> str:
        """Run; return what it printed."""
        device = [] if gpu is None else ["--gpu", gpu]
        simulator = [
            sys.executable,
            "-m",
            "polygraphy_debug_ext.simulator",
            "--trt",
            self.version,
            "--seed",
            str(seed),
        ]
        command = [
            *simulator,
            *device,
            "--",
            *POLYGRAPHY,
            "debug",
            "build",
            self.network,
            "--fp16",
            *options,
        ]
        done = subprocess.run(
            [*command, "--check", *(check or ["true"])],
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def record(self, until: int = 1, *options: str, seed: int = 1, check: list[str] | None = None) -> str:
        """Build, and file the replays below `replays`."""
        files = ["--save-tactics", "replay.json", "--artifacts", "replay.json", "--artifacts-dir", "replays"]
        return self.build(*files, f"--until={until}", *options, seed=seed, check=check)

    def replays(self, side: str) -> tuple[Assignment, ...]:
        """The replays of good or bad builds."""
        place = self.directory / "replays" / side
        return collect(place).assignments if place.exists() else ()

    def layers(self) -> list[tuple[str, str]]:
        """The layers of the last engine that a check dumped, as ONNX layers (or name) and kernel."""
        document = json.loads((self.directory / "layers.json").read_text(), strict=False)
        return [
            (layer.get("Metadata") or layer["Name"], layer.get("TacticName", ""))
            for layer in document["Layers"]
        ]


@pytest.fixture(params=VERSIONS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return Run(tmp_path, request.param)


def test_a_recorded_build_is_forced_again_with_the_same_kernels(run: Run) -> None:
    run.record(seed=1, check=DUMP)
    recorded = run.layers()
    run.build("--until=1", seed=2, check=DUMP)
    assert run.layers() != recorded, "another seed chooses otherwise, or this test could not fail"
    (assignment,) = run.replays("good")
    output = run.build(
        "--load-tactics", assignment.origin, "--require-honoured", "--until=1", seed=2, check=DUMP
    )
    assert run.layers() == recorded
    pins = [tactic for tactic in assignment.layers.values() if not tactic.swallowed]
    if assignment.source is Source.TIMING_CACHE:
        pins = [tactic for tactic in pins if tactic.cache_key is not None]
    assert pins
    assert f"Forced tactics: {len(pins)} of {len(pins)} layers honoured" in output


def test_the_source_is_the_one_that_sees_most(run: Run) -> None:
    output = run.record()
    (assignment,) = run.replays("good")
    expected = Source.SELECTOR if run.version == "8.6" else Source.TIMING_CACHE
    assert assignment.source is expected
    assert output.count("Tactics are recorded from") == 1
    assert all(tactic.kernel for tactic in assignment.layers.values())


def test_a_kernel_that_the_check_rejects_is_found_and_forcing_it_fails_the_check(run: Run) -> None:
    run.record(until=6)
    kernel = subprocess.run(
        [sys.executable, str(REJECT.with_name("pick_kernel.py")), "replays/good"],
        cwd=run.directory, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (run.directory / "replays").rename(run.directory / "dry")
    reject = [sys.executable, str(REJECT), "{engine}", kernel]
    run.record(until=6, check=reject)
    good, bad = run.replays("good"), run.replays("bad")
    named = [
        suspect
        for suspect in rank(table_of(good, bad)).suspects
        if (suspect.view, suspect.tactic.kernel) == (View.LAYER, kernel)
        and suspect.rank is not Rank.NOT_SUSPECT
    ]
    assert sum(suspect.counts.bad_with for suspect in named) >= len(bad)
    for side, line in ((bad, "Passed: 0/1"), (good, "Passed: 1/1")):
        options = ["--load-tactics", side[0].origin, "--require-honoured", "--until=1"]
        assert line in run.build(*options, seed=9, check=reject)


def test_what_a_partial_replay_does_not_have_is_free(run: Run) -> None:
    run.record()
    (assignment,) = run.replays("good")
    layers = {name: tactic for name, tactic in assignment.layers.items() if "fc" not in name}
    assert len(layers) < len(assignment.layers)
    path = run.directory / "partial.json"
    replay.write(
        path,
        type(assignment)(layers=layers, source=assignment.source, timing_cache=assignment.timing_cache),
    )
    output = run.build("--load-tactics", str(path), "--until=1", seed=5)
    assert "Passed: 1/1" in output


def test_a_fault_inside_myelin_is_seen_through_the_cache_and_not_by_the_selector(tmp_path: Path) -> None:
    run = Run(tmp_path, "10.13")
    run.record(until=8)
    kernels = {
        tactic.kernel for each in run.replays("good") for name, tactic in each.layers.items()
        if "fc" in name and tactic.cache_key and not tactic.swallowed
    }  # fmt: skip
    assert len(kernels) > 1
    kernel = min(str(each) for each in kernels)
    (tmp_path / "replays").rename(tmp_path / "dry")
    reject = [sys.executable, str(REJECT), "{engine}", kernel]
    run.record(until=10, check=reject)
    answer = rank(table_of(run.replays("good"), run.replays("bad")))
    assert kernel in {each.tactic.kernel for each in answer.suspects if each.rank is not Rank.NOT_SUSPECT}
    (tmp_path / "replays").rename(tmp_path / "cache")
    run.record(10, "--tactic-source", "selector", check=reject)
    good, bad = run.replays("good"), run.replays("bad")
    assert good
    assert bad
    answer = rank(table_of(good, bad))
    assert kernel not in {suspect.tactic.kernel for suspect in answer.suspects}
    assert any(layer.startswith("{ForeignNode[") for layer in answer.opaque_layers)


def test_fp16_is_real_where_the_builder_has_no_flag_for_it(tmp_path: Path) -> None:
    run = Run(tmp_path, "11.4")
    output = run.build("--until=1", check=DUMP)
    assert "It was converted to FP16; its inputs and outputs keep their types." in output
    document = json.loads((tmp_path / "layers.json").read_text(), strict=False)
    types = {tensor.get("Datatype") for layer in document["Layers"] for tensor in layer["Outputs"]}
    assert "Half" in types
    assert document["I/O Tensors"][0]["DataType"] == "Float"


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_cache_of_another_device_is_refused_unless_that_is_ignored(tmp_path: Path, version: str) -> None:
    run = Run(tmp_path, version)
    run.record()
    (assignment,) = run.replays("good")
    options = ["--load-tactics", assignment.origin, "--until=1"]
    output = run.build(*options, gpu="NVIDIA L4")
    assert "UNRESOLVED | Iteration 1" in output
    assert f"TensorRT refuses the timing cache in {assignment.origin}" in output
    output = run.build(*options, "--ignore-timing-cache-mismatch", "--require-honoured", gpu="NVIDIA L4")
    assert "Passed: 1/1" in output


def test_a_pick_that_a_fusion_swallowed_is_marked_and_its_pin_is_void(tmp_path: Path) -> None:
    run = Run(tmp_path, "11.4")
    run.network = "attention.onnx"
    save_attention(tmp_path / run.network)
    run.record()
    (assignment,) = run.replays("good")
    swallowed = {name for name, tactic in assignment.layers.items() if tactic.swallowed}
    fused = [name for name, tactic in assignment.layers.items() if "mha" in (tactic.kernel or "")]
    assert len(swallowed) == 2
    assert len(fused) == 1
    assert all(assignment.layers[name].cache_key for name in swallowed)
    assert assignment.layers[fused[0]].cache_key is None
    output = run.build("--load-tactics", assignment.origin, "--require-honoured", "--until=1", seed=2)
    assert "2 more are void" in output
    assert "Passed: 1/1" in output


def save_attention(path: Path) -> None:
    """Two matrix products around a softmax, of four dimensions: what TensorRT fuses into one kernel."""
    nodes = [
        helper.make_node("MatMul", ["q", "k"], ["s"], name="scores"),
        helper.make_node("Softmax", ["s"], ["p"], name="probabilities", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="mix"),
    ]
    shapes = {"q": [1, 2, 8, 16], "k": [1, 2, 16, 8], "v": [1, 2, 8, 16], "y": [1, 2, 8, 16]}
    ends = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()
    }
    graph = helper.make_graph(nodes, "attention", [ends["q"], ends["k"], ends["v"]], [ends["y"]])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
