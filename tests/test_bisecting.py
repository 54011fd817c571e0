"""From a planted fault to an engine that can be shipped, end to end, on every generation of TensorRT that the simulator has.

Builds are judged by a real process that runs the engine (`hunting/engine_server.py`), or by one that looks for kernels in what was
recorded of it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime
import pytest

from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.formats import replay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.conftest import Polygraphy

pytestmark = pytest.mark.usefixtures("example_networks")

VERSIONS = ("8.6", "10.13", "11.4")
HUNTING = Path(__file__).parent / "hunting"
SIMULATOR = [sys.executable, "-m", "polygraphy_debug_ext.simulator"]
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
RECORD = "polygraphy_debug_replay.json"


class Bench:
    """A directory with the network of the example, an input and the right output."""

    def __init__(self, directory: Path, version: str, faults: Sequence[str] = ()) -> None:
        self.directory = directory
        self.version = version
        self.faults = faults
        session = onnxruntime.InferenceSession(directory / "convnet.onnx", providers=["CPUExecutionProvider"])
        (end,) = session.get_inputs()
        image = np.random.default_rng(3).standard_normal(end.shape).astype(np.float32)
        np.save(directory / "in.npy", image)
        np.save(directory / "out.npy", session.run(None, {end.name: image})[0])

    def command(self, tool: str, *options: str, check: Sequence[str], seed: int = 1) -> list[str]:
        """The command line of a subtool that builds."""
        planted = [word for fault in self.faults for word in ("--fault", fault)]
        return [
            *(*SIMULATOR, "--trt", self.version, "--seed", str(seed), *planted, "--"),
            *(*POLYGRAPHY, "debug", tool, "convnet.onnx", "--fp16", *options, "--hide-fail-output"),
            *("--check", *check),
        ]

    def run(
        self, tool: str, *options: str, check: Sequence[str] = ("true",), seed: int = 1, status: int = 0
    ) -> str:
        """Run it; return what it said."""
        done = subprocess.run(
            self.command(tool, *options, check=check, seed=seed),
            cwd=self.directory,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "NO_COLOR": "1"},
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def record(self, directory: str, builds: int, check: Sequence[str] = ("true",)) -> None:
        """Build, and file the replays below `directory`."""
        files = ["--save-tactics", "replay.json", "--artifacts", "replay.json", "--artifacts-dir", directory]
        self.run("build", *files, "--until", str(builds), check=check)

    def competing(self, directory: str, builds: int) -> list[tuple[str, str]]:
        """Layer and kernel of choices that some builds have, and some have not; one for each layer, the rarest first."""
        counts: Counter[tuple[str, str]] = Counter()
        for path in (self.directory / directory).glob("*/*.json"):
            for layer, tactic in replay.read(path).layers.items():
                if tactic.kernel is not None and not tactic.swallowed and "Reformat" not in layer:
                    counts[layer, tactic.kernel] += 1
        found: dict[str, str] = {}
        for (layer, kernel), count in sorted(counts.items(), key=lambda item: (item[1], item[0])):
            if 2 <= count <= builds - 2:
                found.setdefault(layer, kernel)
        return list(found.items())

    def result(self) -> dict[str, Any]:
        """The JSON that bisect-tactics wrote."""
        document: dict[str, Any] = json.loads((self.directory / "result.json").read_text())
        return document

    def trials(self, directory: str) -> list[form.Record]:
        """The trials of the last run in a directory."""
        run = form.read(self.directory / directory / form.NAME).runs[-1]
        return [run.trials[index] for index in sorted(run.trials)]


def look(*choices: tuple[str, str], record: str = RECORD) -> list[str]:
    """A check that fails if the engine has all of these."""
    words = (word for choice in choices for word in choice)
    return [sys.executable, "-S", "-E", str(HUNTING / "look.py"), record, *words]


@pytest.mark.parametrize("version", VERSIONS)
def test_from_a_planted_fault_to_an_engine_that_can_be_shipped(tmp_path: Path, version: str) -> None:
    dry = Bench(tmp_path, version)
    dry.record("dry", 12)
    layer, kernel = dry.competing("dry", 12)[0]
    # Inside a Myelin graph a layer is known by the ONNX nodes in it.
    bench = Bench(tmp_path, version, [f"{kernel}@{name}:offset" for name in (layer, layer.split(" + ")[0])])
    socket = tmp_path / "s"
    server = [
        *SIMULATOR,
        "--trt",
        version,
        "--",
        sys.executable,
        str(HUNTING / "engine_server.py"),
        str(socket),
    ]
    with subprocess.Popen(server) as process:
        try:
            deadline = time.monotonic() + 60
            while not socket.exists():
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            _hunt(bench, layer, kernel, socket)
        finally:
            process.kill()


def _hunt(bench: Bench, layer: str, kernel: str, socket: Path) -> None:
    client = [sys.executable, "-S", "-E", str(HUNTING / "client.py"), str(socket)]
    check = [*client, "{engine}", "in.npy", "out.npy"]
    bench.record("runs", 12, check)
    text = bench.run(
        *("bisect-tactics", "--dir", "runs", "--artifacts-dir", "proof"),
        *("--output", "result.json", "--save-avoid", "avoid.json"),
        check=check,
    )
    result = bench.result()
    assert result["outcome"] == "CONFIRMED"
    assert "Confirmed: tactic 0x" in text
    (culprit,) = result["culprits"]
    ((named,),) = culprit["members"]
    assert (named["layer"], named["bad"]["kernel"]) == (layer, kernel)
    assert culprit["inside"]["fails"]
    assert not culprit["inside"]["passes"]
    assert culprit["outside"]["passes"]
    assert not culprit["outside"]["fails"]
    assert len(bench.trials("proof")) == result["builds"] <= 12
    # The last 20 builds of the way: the culprit is kept out, the check passes.
    avoid = ["--avoid-tactics", "avoid.json", "--save-tactics", "replay.json", "--artifacts", "replay.json"]
    text = bench.run("build", *avoid, "--artifacts-dir", "shipped", "--until", "good", check=check)
    assert "Passed: 1/1" in text
    text = bench.run("build", *avoid, "--artifacts-dir", "again", "--until", "20", check=check)
    assert "Passed: 20/20" in text
    for path in (bench.directory / "again" / "good").glob("*.json"):
        assert replay.read(path).layers[layer].kernel != kernel


def test_two_tactics_that_fail_only_together_are_found_as_a_set(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "11.4")
    bench.record("dry", 16)
    first, second = bench.competing("dry", 16)[-2:]
    # Files the same builds by what they have.
    bench.record("runs", 16, look(first, second, record="replay.json"))
    good, bad = (sorted((tmp_path / "runs" / side).glob("*.json")) for side in ("good", "bad"))
    assert good
    assert bad
    apart = next(
        path
        for path in good
        if all(replay.read(path).layers[layer].kernel != kernel for layer, kernel in (first, second))
    )
    options = ["--good", str(apart), "--bad", str(bad[0]), "--output", "result.json"]
    bench.run("bisect-tactics", *options, "--save-avoid", "avoid.json", check=look(first, second))
    result = bench.result()
    (culprit,) = result["culprits"]
    named = {(each["layer"], each["bad"]["kernel"]) for (each,) in culprit["members"]}
    assert named == {first, second}
    assert result["outcome"] == "CONFIRMED"
    # Each member is necessary.
    assert [arm["fails"] for arm in culprit["lacking"]] == [0, 0]
    # To avoid one of them is enough.
    (entry,) = json.loads((tmp_path / "avoid.json").read_text())["avoid"]
    assert (entry["layer"], entry["kernel"]) in {first, second}


def test_a_bad_build_that_passes_now_is_a_result_with_its_own_status(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "11.4")
    bench.record("runs", 2)
    good = sorted((tmp_path / "runs" / "good").glob("*.json"))
    ends = ["--good", str(good[0]), "--bad", str(good[1]), "--output", "result.json"]
    text = bench.run("bisect-tactics", *ends, status=4)
    assert bench.result()["outcome"] == "BAD_END_PASSES"
    assert "The failure does not reproduce" in text
    assert "run the check several times on one engine" in text


def test_a_good_build_that_fails_now_is_a_result_with_its_own_status(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "11.4")
    bench.record("runs", 2)
    good = sorted((tmp_path / "runs" / "good").glob("*.json"))
    ends = [
        "--good",
        str(good[0]),
        "--bad",
        str(good[1]),
        "--output",
        "result.json",
        "--save-avoid",
        "avoid.json",
    ]
    text = bench.run("bisect-tactics", *ends, check=["false"], status=4)
    assert bench.result()["outcome"] == "GOOD_END_FAILS"
    assert "The good build fails as well" in text
    assert "no culprit was found, so avoid.json was not written" in text
    assert not (tmp_path / "avoid.json").exists()


def test_a_dry_run_says_what_would_be_built_and_builds_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "11.4")
    bench.record("runs", 2)
    good = sorted((tmp_path / "runs" / "good").glob("*.json"))
    text = bench.run("bisect-tactics", "--good", str(good[0]), "--bad", str(good[1]), "--dry-run")
    assert re.search(r"proving the ends +\d+\.\d +\d+\.\d", text)
    assert "Nothing was built" in text
    assert not (tmp_path / "polygraphy_artifacts").exists()


def test_a_search_that_was_killed_goes_on_to_the_same_result_and_builds_nothing_twice(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "11.4")
    bench.record("dry", 12)
    choice = bench.competing("dry", 12)[0]
    bench.record("runs", 12, look(choice, record="replay.json"))
    good, bad = (sorted((tmp_path / "runs" / side).glob("*.json")) for side in ("good", "bad"))
    ends = ["--good", str(good[-1]), "--bad", str(bad[-1]), "--output", "result.json"]
    bench.run("bisect-tactics", *ends, "--artifacts-dir", "whole", check=look(choice))
    whole = bench.result()
    cut = [*ends, "--artifacts-dir", "cut"]
    slow = ["sh", "-c", 'sleep 0.5; exec "$0" "$@"', *look(choice)]
    with subprocess.Popen(
        bench.command("bisect-tactics", *cut, check=slow),
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        journal = tmp_path / "cut" / form.NAME
        while not journal.exists() or journal.read_bytes().count(b'"event":"ended"') < 3:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        for child in subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
        ).stdout.split():
            os.kill(int(child), signal.SIGKILL)
        process.kill()
    over = sum(record.ended is not None for record in bench.trials("cut"))
    bench.run("bisect-tactics", *cut, "--resume", check=slow)
    assert over >= 3
    resumed = bench.result()
    assert {**resumed, "sentence": ""} == {**whole, "sentence": ""}
    # What was in hand when it was killed was not learned from, and is built again; nothing else is.
    asked = [tuple(record.started.bad or ()) for record in bench.trials("cut") if record.checked]
    assert asked == [tuple(record.started.bad or ()) for record in bench.trials("whole")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dir", "nothing"), "--dir nothing: 'good' is not in it"),
        ((), "Either --dir, or both --good and --bad must be specified"),
        (("--dir", "runs", "--confidence", "1.5"), "--confidence 1.5 is not between 0.5 and 1"),
        (("--dir", "runs", "--max-builds", "0"), "--max-builds 0 would never build"),
        (("--dir", "runs", "--save-tactics", "x.json"), "--save-tactics: what each build has is recorded in"),
        (("--dir", "runs", "--load-tactics", "x.json"), "--load-tactics: the search says which"),
        (("--dir", "runs", "--explore", "near-ties"), "--explore: the search says which"),
        (("--dir", "runs"), "--dir runs: 'bad' is not in it"),
        (
            ("--good", "log.json", "--bad", "log.json"),
            "log.json was read from the build log: its tactics cannot be forced",
        ),
    ],
)
def test_a_mistake_is_told_with_what_to_do(
    polygraphy_here: Polygraphy, cases: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    (tmp_path / "runs" / "good").mkdir(parents=True)
    log = cases / "01-trt10-trtexec-verbose" / "build.log"
    done = polygraphy_here("debug", "convert-tactics", log, "-o", "log.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    command = ["debug", "bisect-tactics", "convnet.onnx", "--fp16", *options, "--hide-fail-output"]
    done = polygraphy_here(*command, "--check", "true", cwd=tmp_path)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
    assert not (tmp_path / "polygraphy_artifacts").exists()
