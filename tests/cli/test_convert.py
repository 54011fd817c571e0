"""`debug convert-tactics`: whatever tells tactics, as a replay, a table or a timing cache."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import replay

if TYPE_CHECKING:
    from tests.conftest import Polygraphy

pytestmark = pytest.mark.usefixtures("example_networks")

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
SIMULATOR = [sys.executable, "-m", "polygraphy_debug_ext.simulator", "--seed", "1"]
CASES = Path(__file__).parents[1] / "data" / "cases"
LOG = CASES / "01-trt10-trtexec-verbose" / "build.log"
LOGS = CASES / "14-two-profiles-dynamic-shapes"
REPLAYS = CASES / "11-replay-new-format-good-bad" / "replays"


def polygraphy(directory: Path, *words: str, version: str = "") -> subprocess.CompletedProcess[str]:
    """Run polygraphy; under the simulator if a version is named."""
    before = [*SIMULATOR, "--trt", version, "--"] if version else []
    return subprocess.run(
        [*before, *POLYGRAPHY, *words],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )


def convert(directory: Path, *words: str, version: str = "", status: int = 0) -> str:
    """Run convert-tactics; return what it said."""
    done = polygraphy(directory, "debug", "convert-tactics", *words, version=version)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout + done.stderr


def record(directory: Path, version: str) -> Path:
    """Build the network of the example once; return the replay."""
    words = ["debug", "build", "convnet.onnx", "--save-tactics", "replay.json", "--artifacts", "replay.json"]
    words += ["--artifacts-dir", "built", "--until", "1", "--check", "cp", "{engine}", "kept.engine"]
    done = polygraphy(directory, *words, version=version)
    assert done.returncode == 0, done.stdout + done.stderr
    return next((directory / "built" / "good").glob("*.json"))


def test_a_verbose_log_becomes_a_replay(tmp_path: Path) -> None:
    text = convert(tmp_path, str(LOG), "-o", "replay.json")
    assert "Read 1 build log" in text
    built = replay.read(tmp_path / "replay.json")
    assert built.layers["/stem/pool/MaxPool"].hex == "0x2a438f2a3172f442"
    assert len(built.layers) == 6


def test_stock_polygraphy_reads_what_was_converted(tmp_path: Path) -> None:
    convert(tmp_path, str(LOG), "-o", "replay.json")
    done = polygraphy(tmp_path, "inspect", "tactics", "replay.json", version="10.13")
    assert done.returncode == 0, done.stderr
    assert "Layer: /stem/pool/MaxPool" in done.stdout


def test_several_builds_become_several_replays_in_a_directory(tmp_path: Path) -> None:
    convert(tmp_path, str(LOGS), "-o", "replays")
    names = sorted(path.name for path in (tmp_path / "replays").iterdir())
    assert names == [
        "build_a.json",
        "build_b.json",
        "build_c.json",
        "two_builds_in_one_0.json",
        "two_builds_in_one_1.json",
    ]


def test_several_builds_do_not_fit_into_one_replay(tmp_path: Path) -> None:
    text = convert(tmp_path, str(LOGS), "-o", "replay.json", status=1)
    assert "--output replay.json can hold one build, but there are 5" in text
    assert "Name a directory" in text
    assert not (tmp_path / "replay.json").exists()


def test_several_builds_fit_into_one_table(tmp_path: Path) -> None:
    convert(tmp_path, str(REPLAYS), "-o", "tactics.csv")
    with (tmp_path / "tactics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 5 * 6
    assert {row["tactic"] for row in rows if row["layer"] == "node_conv2d_1 + node_relu_1"} >= {
        "0xea24cb28a894cea9"
    }


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    text = convert(tmp_path, str(REPLAYS), "-o", "tactics.csv")
    assert "left out 1 file" in text
    assert "polygraphy_debug_notes.txt: neither a tactic replay, layer information nor a build log" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing.json", "-o", "x.json"), "nothing.json: no such file or directory"),
        ((str(LOG), "-o", "x.txt"), "its extension does not tell what to write"),
        ((str(LOG), "-o", "x.cache"), "holds no timing cache"),
        ((str(LOG), "-o", "no/such/place/x.csv"), "cannot be written"),
        (
            (str(CASES / "08-layerinfo-names-only" / "li.json"), "-o", "x.json"),
            "no tactic information: built with profiling verbosity LAYER_NAMES_ONLY",
        ),
    ],
)
def test_a_mistake_is_told_with_what_to_do(
    polygraphy_here: Polygraphy, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    done = polygraphy_here("debug", "convert-tactics", *words, cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


def test_a_failed_build_has_no_tactics_to_convert(tmp_path: Path) -> None:
    failed = CASES / "17-build-crash-in-autotune" / "bad" / "build_fail.log"
    text = convert(tmp_path, str(failed), "-o", "x.json", status=1)
    assert "misaligned address" in text
    assert not (tmp_path / "x.json").exists()


def test_tensorrt_is_needed_for_a_timing_cache_only(tmp_path: Path) -> None:
    path = record(tmp_path, "11.4")
    convert(tmp_path, str(path), "-o", "tactics.csv")
    assert "The module tensorrt cannot be imported" in convert(tmp_path, str(path), "-o", "x.cache", status=1)


@pytest.mark.parametrize("version", ["10.13", "11.4"])
def test_a_build_that_starts_from_the_timing_cache_has_the_recorded_tactics(
    tmp_path: Path, version: str
) -> None:
    path = record(tmp_path, version)
    convert(tmp_path, str(path), "-o", "tactics.cache", version=version)
    words = [
        "debug",
        "build",
        "convnet.onnx",
        "--load-timing-cache",
        "tactics.cache",
        "--artifacts-dir",
        "again",
    ]
    words += [
        "--save-tactics",
        "replay.json",
        "--artifacts",
        "replay.json",
        "--until",
        "3",
        "--check",
        "true",
    ]
    done = polygraphy(tmp_path, *words, version=version)
    assert done.returncode == 0, done.stdout + done.stderr
    recorded = {name: each for name, each in replay.read(path).layers.items() if each.cache_key is not None}
    assert recorded
    for other in (tmp_path / "again" / "good").glob("*.json"):
        built = replay.read(other).layers
        # What is found in the cache is not timed, so that the log does not say which hash belongs to which layer.
        assert {name: built[name].kernel for name in recorded} == {
            name: each.kernel for name, each in recorded.items()
        }


def test_an_engine_is_read_where_its_tensorrt_is(tmp_path: Path) -> None:
    path = record(tmp_path, "8.6")
    assert "cannot be imported" in convert(tmp_path, "kept.engine", "-o", "engine.json", status=1)
    convert(tmp_path, "kept.engine", "-o", "engine.json", version="8.6")
    engine, recorded = replay.read(tmp_path / "engine.json").layers, replay.read(path).layers
    shared = engine.keys() & recorded.keys()
    assert len(shared) == len(recorded)
    assert all(engine[name].tactic == recorded[name].tactic & (2**64 - 1) for name in shared)  # type: ignore[operator]
    assert "an engine that tensorrt" in convert(
        tmp_path, "kept.engine", "-o", "other.json", version="11.4", status=1
    )


def test_the_output_replaces_what_was_there_only_when_it_is_whole(tmp_path: Path) -> None:
    (tmp_path / "replay.json").write_text("mine")
    convert(tmp_path, "nothing.log", "-o", "replay.json", status=1)
    assert (tmp_path / "replay.json").read_text() == "mine"
    convert(tmp_path, str(LOG), "-o", "replay.json")
    assert json.loads((tmp_path / "replay.json").read_text())["polygraphy_class"] == "TacticReplayData"
