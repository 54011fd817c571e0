"""The logs that `debug build` keeps tell the same suspects as the replays of the same builds, on every generation of TensorRT."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.formats import build_log, replay
from polygraphy_debug_ext.formats.build_log import Status
from polygraphy_debug_ext.model.answer import Rank, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polygraphy_debug_ext.model import Assignment

EXAMPLES = Path(__file__).parents[1] / "examples"
HUNT = EXAMPLES / "03_a_culprit_without_a_fault"
pytestmark = pytest.mark.usefixtures("example_networks")

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]


def run(directory: Path, version: str, *command: str) -> str:
    """Run a command under the simulator; return what it printed."""
    simulator = [
        sys.executable,
        "-m",
        "polygraphy_debug_ext.simulator",
        "--trt",
        version,
        "--seed",
        "1",
        "--",
    ]
    done = subprocess.run([*simulator, *command], cwd=directory, capture_output=True, text=True, check=False,
                          env={**os.environ, "NO_COLOR": "1"})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(directory: Path, version: str, filed: str, *check: str) -> None:
    """Build ten times, and file the replays."""
    options = ["--save-tactics", "replay.json", "--artifacts", "replay.json", "--artifacts-dir", filed]
    network = ["debug", "build", "convnet.onnx", "--fp16", "--until=10"]
    run(directory, version, *POLYGRAPHY, *network, *options, "--check", *check)


def logged(directory: Path, name: str) -> Assignment:
    """What the log of the trial says that a replay is of."""
    match = re.fullmatch(r"replay_(.*_N\d+)\.json", name)
    assert match is not None
    (found,) = build_log.read(directory / "logs" / f"{match[1]}_build.log").builds
    assert found.status is Status.FINISHED
    assert found.assignment is not None
    return found.assignment


def suspects(good: Iterable[Assignment], bad: Iterable[Assignment]) -> dict[str, tuple[object, ...]]:
    """By tactic, what is said of it; layouts of tensors are in the replays of selectors alone."""
    sides = [[replace(each, fields=frozenset()) for each in side] for side in (good, bad)]
    return {
        suspect.tactic.hex: (suspect.layers[0], suspect.counts, suspect.rank)
        for suspect in rank(table_of(*sides)).suspects
        if suspect.view is View.LAYER and suspect.rank is not Rank.NOT_SUSPECT
    }


@pytest.mark.parametrize("version", ["8.6", "10.13", "11.4"])
def test_logs_tell_the_suspects_that_replays_tell(version: str, tmp_path: Path) -> None:
    build(tmp_path, version, "dry", "true")
    pick = [sys.executable, str(HUNT / "pick_kernel.py"), "dry/good"]
    kernel = subprocess.run(pick, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()
    build(tmp_path, version, "filed", sys.executable, str(HUNT / "reject_kernel.py"), "{engine}", kernel)
    paths = {side: sorted((tmp_path / "filed" / side).glob("replay_*.json")) for side in ("good", "bad")}
    assert all(paths.values())
    replays = {side: [replay.read(path) for path in found] for side, found in paths.items()}
    logs = {side: [logged(tmp_path / "filed", path.name) for path in found] for side, found in paths.items()}
    wanted, found = suspects(**replays), suspects(**logs)
    assert wanted
    assert found.keys() == wanted.keys()
    for tactic, (layer, *rest) in wanted.items():
        name, *same = found[tactic]
        assert same == rest
        # The engine names the ONNX layers that a fusion without a kernel of its own added to an op.
        assert set(str(name).split(" + ")) <= set(str(layer).split(" + "))


@pytest.mark.parametrize("version", ["8.6", "10.13", "11.4"])
def test_what_polygraphy_prints_is_a_log_that_tells_version_and_layers(version: str, tmp_path: Path) -> None:
    path = tmp_path / "convert.log"
    path.write_text(run(tmp_path, version, *POLYGRAPHY, "convert", "convnet.onnx", "-o", "a.engine", "-vvv"))
    (found,) = build_log.read(path).builds
    assert found.status is Status.FINISHED
    assert found.tensorrt.startswith(version)
    assert found.assignment is not None
    assert found.assignment.layers
    assert build_log.recognises(path.read_bytes()[: 2**16])
