"""Tactics are recorded and forced through the selector; Polygraphy reads our replays, and we read Polygraphy's."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import replay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import DebugBuild

RECORD = ["--until", "1", "--tactic-source", "selector"]


def simulated(build: DebugBuild, *arguments: str, version: str = "10.13") -> str:
    """Run stock Polygraphy on the simulator."""
    done = subprocess.run(
        [*(sys.executable, "-m", "polygraphy_debug_ext.simulator", "--trt", version, "--"), *arguments],
        cwd=build.directory,
        env=build.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_replay_has_every_layer_with_its_kernel_and_time(debug_build: DebugBuild) -> None:
    assert debug_build.run(RECORD) == 0
    assignment = replay.read(debug_build.artifacts_dir / debug_build.filed()[0])
    assert {"conv1 + relu1", "conv2 + relu2"} <= set(assignment.layers)
    for layer in ("conv1 + relu1", "conv2 + relu2"):
        tactic = assignment.layers[layer]
        assert (tactic.kernel or "").startswith("sm80_xmma_fprop_")
        assert (tactic.time_ms or 0) > 0


@pytest.mark.parametrize("version", ["8.6", "10.13"])
def test_a_forced_replay_gives_the_same_tactics(debug_build: DebugBuild, version: str) -> None:
    assert debug_build.run(RECORD) == 0
    (name,) = debug_build.filed()
    ours = debug_build.artifacts_dir / name
    if version == "8.6":
        convert = [
            "polygraphy",
            "convert",
            "conv.onnx",
            "--fp16",
            "--save-tactics",
            "forced.json",
            "-o",
            "e.engine",
        ]
        simulated(debug_build, *convert, version=version)
        ours = debug_build.directory / "forced.json"
    check = ["polygraphy", "inspect", "model", "{engine}", "--show", "layers", "attrs"]
    command = debug_build.command(["--until", "1", "--show-output"], check=check)
    command = [
        {"--save-tactics": "--load-tactics", "replay.json": str(ours)}.get(word, word) for word in command
    ]
    command[command.index("--artifacts") : command.index("--artifacts") + 2] = []
    # Another seed would choose otherwise.
    command[command.index("--seed") + 1] = "2"
    command[command.index("--seed") : command.index("--seed")] = ["--trt", version]
    assert debug_build.finish(debug_build.start(command)) == 0
    for tactic in replay.read(ours).layers.values():
        assert tactic.hex.lower() in debug_build.output.lower() or tactic.tactic == 0


def test_stock_polygraphy_reads_our_replays(debug_build: DebugBuild) -> None:
    assert debug_build.run(RECORD) == 0
    ours = str(debug_build.artifacts_dir / debug_build.filed()[0])
    assert "Layer: conv1 + relu1" in simulated(debug_build, "polygraphy", "inspect", "tactics", ours)
    simulated(
        debug_build, "polygraphy", "convert", "conv.onnx", "--fp16", "--load-tactics", ours, "-o", "e.engine"
    )


def forced(build: DebugBuild, path: Path, *options: str) -> int:
    """Run with a replay forced."""
    command = build.command(["--until", "1", *options])
    command = [
        {"--save-tactics": "--load-tactics", "replay.json": str(path)}.get(word, word) for word in command
    ]
    command[command.index("--artifacts") : command.index("--artifacts") + 2] = []
    return build.finish(build.start(command))


def test_a_layer_that_was_not_recorded_is_free_with_a_warning(debug_build: DebugBuild) -> None:
    assert debug_build.run(RECORD) == 0
    assignment = replay.read(debug_build.artifacts_dir / debug_build.filed()[0])
    layers = {name: tactic for name, tactic in assignment.layers.items() if name != "conv2 + relu2"}
    path = debug_build.directory / "partial.json"
    replay.write(path, type(assignment)(layers=layers, source=assignment.source))
    assert forced(debug_build, path) == 0
    assert "Layer: conv2 + relu2 was not found in the tactic replay" in debug_build.output
    assert debug_build.table()[-1][1] == "good"


def test_a_tactic_that_is_not_offered_is_listed_and_left_free_unless_it_is_required(
    debug_build: DebugBuild,
) -> None:
    assert debug_build.run(RECORD) == 0
    path = debug_build.artifacts_dir / debug_build.filed()[0]
    assignment = replay.read(path)
    tactic = assignment.layers["conv2 + relu2"].tactic
    assert tactic is not None
    other = debug_build.directory / "other.json"
    other.write_text(path.read_text().replace(str(tactic), str(tactic ^ 1)))
    count = len(assignment.layers)
    assert forced(debug_build, other) == 0
    assert debug_build.table()[-1][1] == "good"
    assert f"Forced tactics: {count - 1} of {count} layers honoured" in debug_build.output
    problem = (
        "Layer: conv2 + relu2 | Tactic in replay was not provided by TensorRT as a choice for this layer"
    )
    assert problem in debug_build.output
    assert forced(debug_build, other, "--require-honoured") == 0
    assert debug_build.table()[-1][1:] == ("unresolved", "BUILD_ERROR")
    assert problem in debug_build.output


def test_a_replay_that_is_forced_whole_is_honoured_whole(debug_build: DebugBuild) -> None:
    assert debug_build.run(RECORD) == 0
    path = debug_build.artifacts_dir / debug_build.filed()[0]
    count = len(replay.read(path).layers)
    assert forced(debug_build, path, "--require-honoured") == 0
    assert debug_build.table()[-1][1] == "good"
    assert f"Forced tactics: {count} of {count} layers honoured" in debug_build.output


def test_a_replay_that_cannot_be_read_ends_the_run_before_the_first_build(debug_build: DebugBuild) -> None:
    path = debug_build.directory / "broken.json"
    path.write_text('{"replay": {"conv')
    assert forced(debug_build, path) == 1
    assert "truncated tactic replay" in debug_build.output
    assert "Iteration 1" not in debug_build.output


def test_a_tensorrt_without_selectors_is_told_of(debug_build: DebugBuild) -> None:
    site = debug_build.directory / "newer"
    (site / "tensorrt").mkdir(parents=True)
    (site / "tensorrt" / "__init__.py").write_text(
        "__version__ = '11.0.0'\nclass ILogger:\n    INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)\n"
        "Logger = ILogger\n"
    )
    command = debug_build.command(["--until", "1", "--tactic-source", "selector"])
    debug_build.environment["PYTHONPATH"] = str(site)
    assert debug_build.finish(debug_build.start(command[command.index("--") + 1 :])) == 1
    assert "tensorrt 11.0.0 has no algorithm selector." in debug_build.output
    assert "The algorithm selector was removed in TensorRT 11" in debug_build.output


def test_where_there_is_no_tensorrt_that_is_said(debug_build: DebugBuild) -> None:
    command = debug_build.command(["--until", "1"])
    assert debug_build.finish(debug_build.start(command[command.index("--") + 1 :])) == 1
    assert "The module tensorrt cannot be imported" in debug_build.output
    assert "polygraphy-trt-sim" in debug_build.output
