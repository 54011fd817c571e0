"""`debug build --explore`: a tactic that seldom wins by itself shows up early; the default is TensorRT's own choice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats.collection import collect

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("example_networks")

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
#: Where a kernel is nearly the fastest (by 2.6 to 3.7 per cent), but measured as the fastest in few builds.
RARE = "*_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128x32*"
LAYERS = {"8.6": "conv3 + relu3", "10.13": "conv3 + relu3", "11.4": "conv1 + relu1"}
BUILDS = 12


def build(directory: Path, version: str, *options: str, seed: int = 2) -> tuple[int, str]:
    """Run in a directory of its own, beside the network; return the exit status and the output."""
    directory.mkdir()
    simulator = ["--trt", version, "--seed", str(seed), "--noise", "0.015", "--"]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "polygraphy_debug_ext.simulator", *simulator, *POLYGRAPHY),
            *("debug", "build", "../convnet.onnx", "--fp16", "--save-tactics", "replay.json"),
            *("--artifacts", "replay.json", "--artifacts-dir", "replays", *options, "--check", "true"),
        ],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    return done.returncode, done.stdout + done.stderr


def first(directory: Path, version: str, *options: str) -> int:
    """The number of the first build that has the rare kernel, from 1; more than there are, if none has."""
    status, output = build(directory, version, f"--until={BUILDS}", *options)
    assert status == 0, output
    numbers = []
    for each in collect(directory / "replays" / "good").assignments:
        match = re.search(r"_N(\d+)", each.origin)
        assert match
        if fnmatchcase(each.layers[LAYERS[version]].kernel or "", RARE):
            numbers.append(int(match[1]) + 1)
    return min(numbers, default=BUILDS + 1)


@pytest.mark.parametrize("version", LAYERS)
def test_a_rare_tactic_shows_up_earlier(tmp_path: Path, version: str) -> None:
    explored = first(tmp_path / "explored", version, "--explore", "near-ties")
    assert explored <= 3
    assert explored < first(tmp_path / "free", version)


def test_it_goes_together_with_an_avoid_list(tmp_path: Path) -> None:
    listed = tmp_path / "avoid.json"
    listed.write_text(f'{{"format_version": 1, "avoid": [{{"kernel": "{RARE}"}}]}}')
    options = ["--explore", "near-ties=10%", "--avoid-tactics", str(listed)]
    assert first(tmp_path / "explored", "11.4", *options) == BUILDS + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--explore", "everything"], "--explore everything is not known"),
        (["--explore", "near-ties", "--tactic-source", "log"], "--explore cannot work"),
    ],
)
def test_what_cannot_be_explored_is_refused(tmp_path: Path, options: list[str], message: str) -> None:
    status, output = build(tmp_path / "run", "11.4", "--until=1", *options)
    assert status == 1
    assert message in output
    assert "Iteration 1" not in output
