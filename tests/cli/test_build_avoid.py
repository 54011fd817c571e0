"""`debug build --avoid-tactics` on every generation: no engine has what is on the list, and what that cost is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import avoid, replay
from polygraphy_debug_ext.formats.avoid import AvoidEntry
from polygraphy_debug_ext.formats.collection import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Assignment

pytestmark = pytest.mark.usefixtures("example_networks")

VERSIONS = ("8.6", "10.13", "11.4")
ROOT = Path(__file__).parents[2]
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
BUILDS = 20
#: Kernels that often win at this layer: what is avoided has to be replaced in many builds.
LAYER, KERNEL = "conv4 + relu4", "*f16f16_f16*tilesize64x32x64*"


class Run:
    """A directory with the network of the example, in which `debug build` runs under the simulator."""

    def __init__(self, directory: Path, version: str) -> None:
        self.directory, self.version = directory, version
        self.output = ""

    def build(
        self,
        *options: str,
        check: Sequence[str] = ("true",),
        fault: str = "",
        fp16: bool = True,
        seed: int = 1,
    ) -> int:
        """Run; replays are filed below `replays`."""
        command = [
            *(
                sys.executable,
                "-m",
                "polygraphy_debug_ext.simulator",
                "--trt",
                self.version,
                "--seed",
                str(seed),
            ),
            *(("--fault", fault) if fault else ()),
            *("--", *POLYGRAPHY, "debug", "build", "convnet.onnx", *(["--fp16"] if fp16 else [])),
            *("--artifacts-dir", "replays", *options, "--check", *check),
        ]
        done = subprocess.run(
            command,
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
        self.output = done.stdout + done.stderr
        return done.returncode

    def record(self, *options: str, check: Sequence[str] = ("true",), fault: str = "") -> int:
        files = ["--save-tactics", "replay.json", "--artifacts", "replay.json"]
        return self.build(*files, *options, check=check, fault=fault)

    def avoid(self, *entries: AvoidEntry) -> list[str]:
        """Write a list; return the option."""
        avoid.write(self.directory / "avoid.json", entries)
        return ["--avoid-tactics", "avoid.json"]

    def replays(self, side: str = "good") -> tuple[Assignment, ...]:
        place = self.directory / "replays" / side
        return collect(place).assignments if place.exists() else ()


@pytest.fixture(params=VERSIONS)
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    return Run(tmp_path, request.param)


@pytest.fixture
def newest(tmp_path: Path) -> Run:
    return Run(tmp_path, "11.4")


def kernels(assignments: Sequence[Assignment], layer: str) -> list[str]:
    return [each.layers[layer].kernel or "" for each in assignments]


def test_a_planted_fault_is_kept_out_of_every_engine(run: Run) -> None:
    layer, kernel = LAYER, KERNEL
    subprocess.run(
        [sys.executable, "-m", "polygraphy_debug_ext.simulator", "--", *POLYGRAPHY, "run", "convnet.onnx", "--onnxrt",
         "--save-outputs", "golden.json"],
        cwd=run.directory, check=True, capture_output=True,
    )  # fmt: skip
    check = [*POLYGRAPHY, "run", "{engine}", "--trt", "--load-outputs", "golden.json", "--atol", "0.02"]
    fault = f"{kernel}@{'conv4' if run.version == '11.4' else layer}:offset"
    assert run.record("--until=bad", check=check, fault=fault) == 0
    assert run.replays("bad"), "the fault has to strike, or this test could not fail"
    option = run.avoid(AvoidEntry(layer=layer, kernel=kernel))
    (run.directory / "replays").rename(run.directory / "before")
    assert run.record("--until=good", *option, check=check, fault=fault) == 0
    assert "Passed: 1/1" in run.output
    (run.directory / "replays").rename(run.directory / "once")
    entry = AvoidEntry(layer=layer, kernel=kernel)
    assert run.record(f"--until={BUILDS}", *option, fault=fault) == 0
    builds = run.replays()
    assert len(builds) == BUILDS
    assert not any(entry.matches(layer, kernel=name, tactic=None) for name in kernels(builds, layer))
    assert "Avoided tactics were kept out of 1 layer" in run.output
    assert " -> " in run.output


def test_a_kernel_is_kept_out_of_all_layers_by_name_and_a_tactic_by_its_number(run: Run) -> None:
    assert run.record("--until=4") == 0
    free = run.replays()
    (run.directory / "replays").rename(run.directory / "free")
    name = next(name for name in free[0].layers if name.startswith("conv3"))
    tactics = {each.layers[name].tactic for each in free}
    kernel = "*pooling*small_window*"
    option = run.avoid(
        AvoidEntry(kernel=kernel), *(AvoidEntry(layer="conv3*", tactic=tactic) for tactic in tactics)
    )
    assert run.record("--until=4", *option) == 0
    assert len(run.replays()) == 4
    for each in run.replays():
        assert each.layers[name].tactic not in tactics
        assert not any(
            "small_window" in (tactic.kernel or "") for tactic in each.layers.values() if not tactic.swallowed
        )


def test_entries_that_do_nothing_are_said_aloud(run: Run) -> None:
    option = run.avoid(
        AvoidEntry(kernel="no such kernel"),
        AvoidEntry(kernel="*", before="8.0"),
        AvoidEntry(kernel="*small_window*"),
    )
    assert run.record("--until=2", *option) == 0
    assert run.output.count("this entry matches nothing in this network: kernel no such kernel") == 1
    assert run.output.count("this entry is for TensorRT before 8.0, and does nothing with") == 1
    assert "matches nothing in this network: kernel *small_window*" not in run.output


def test_a_layer_without_any_other_tactic_fails_the_build_with_its_name(run: Run) -> None:
    option = run.avoid(AvoidEntry(layer="conv1 + relu1", kernel="*"))
    assert run.record("--until=1", *option) == 0
    assert "UNRESOLVED | Iteration 1" in run.output
    assert "conv1 + relu1" in run.output
    assert "are avoided, by" in run.output


def test_it_works_without_a_replay(newest: Run) -> None:
    option = newest.avoid(AvoidEntry(kernel="*small_window*"))
    dump = [sys.executable, str(ROOT / "tests" / "hunting" / "dump_layers.py"), "{engine}"]
    assert newest.build("--until=1", *option, check=dump) == 0
    layers = json.loads((newest.directory / "layers.json").read_text(), strict=False)["Layers"]
    names = [layer.get("TacticName", "") for layer in layers]
    assert any("pooling" in name for name in names)
    assert not any("small_window" in name for name in names)


def test_a_missing_list_ends_the_run_before_the_first_build(newest: Run) -> None:
    assert newest.record("--until=1", "--avoid-tactics", "none.json") == 1
    assert "none.json: cannot be read" in newest.output
    assert "Iteration 1" not in newest.output


def test_where_tactics_are_only_looked_at_it_is_refused(newest: Run) -> None:
    option = newest.avoid(AvoidEntry(kernel="k"))
    assert newest.record("--until=1", "--tactic-source", "log", *option) == 1
    assert "--avoid-tactics cannot work: --tactic-source log only looks" in newest.output
    assert "Iteration 1" not in newest.output


def test_forcing_what_is_to_be_avoided_is_refused(newest: Run) -> None:
    assert newest.record("--until=1") == 0
    (recorded,) = newest.replays()
    kernel = kernels([recorded], "conv3 + relu3")[0]
    option = newest.avoid(AvoidEntry(kernel=kernel))
    assert newest.build("--until=1", "--load-tactics", recorded.origin, *option) == 1
    assert "tactics that are to be avoided" in newest.output
    assert f"Layer: conv3 + relu3 | {kernel}" in newest.output


def test_a_selector_does_not_reach_into_myelin_and_says_what_does(tmp_path: Path) -> None:
    run = Run(tmp_path, "10.13")
    option = run.avoid(AvoidEntry(layer="*fc", kernel="*gemm*"))
    assert run.record("--until=1", "--tactic-source", "selector", *option) == 0
    assert "UNRESOLVED | Iteration 1" in run.output
    assert "the layer is inside a Myelin graph" in run.output


def test_a_kernel_that_would_crash_a_build_is_not_timed_where_a_selector_can_prevent_it(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path, "8.6")
    assert run.record("--until=1") == 0
    tactic = run.replays()[0].layers["conv2 + add2 + relu2"]
    (tmp_path / "replays").rename(tmp_path / "free")
    fault = f"{tactic.kernel}@conv2 + add2 + relu2:build-crash"
    assert run.record("--until=1", fault=fault) == 0
    assert "UNRESOLVED | Iteration 1" in run.output
    (tmp_path / "replays").rename(tmp_path / "crashed")
    option = run.avoid(AvoidEntry(layer="conv2*", tactic=tactic.tactic))
    assert run.record("--until=2", *option, fault=fault) == 0
    assert "Passed: 2/2" in run.output


def test_replays_tell_gpu_flags_and_network(run: Run) -> None:
    assert run.record("--until=1") == 0
    (recorded,) = run.replays()
    known = replay.read(Path(recorded.origin)).metadata
    assert known["gpu"] == "NVIDIA A100-SXM4-40GB"
    assert known["compute_capability"] == "8.0"
    assert (known["driver"], known["cuda"]) == ("12.8", "12.8")
    assert str(known["model"]).startswith("sha256:")
    assert known["flags"] == (
        "network converted to FP16; optimization level 3"
        if run.version == "11.4"
        else "FP16; optimization level 3"
    )
    events = [
        json.loads(line) for line in (run.directory / "replays" / "trials.jsonl").read_text().splitlines()
    ]
    (values,) = [event["values"] for event in events if event["event"] == "environment"]
    assert values == {name: value for name, value in known.items() if name != "flags"}
