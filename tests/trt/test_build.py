"""Tactics are forced in one build, and what the engine really has is recorded, on every generation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.usefixtures("example_networks")
@pytest.mark.parametrize("version", ["8.6", "10.13", "11.4"])
def test_mixtures_of_two_builds_are_forced_and_recorded(tmp_path: Path, version: str) -> None:
    done = subprocess.run(
        [*(sys.executable, "-m", "polygraphy_debug_ext.simulator", "--trt", version, "--seed", "1", "--"),
         *(sys.executable, str(Path(__file__).with_name("forced_builds.py")))],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert len(result["differing"]) > 1
    for mixture in result["mixtures"]:
        assert mixture["has"] == mixture["wanted"]
        assert mixture["not_honoured"] == {}
        assert mixture["keyed"][0] == mixture["keyed"][1]
    first, second, everything, nothing = (mixture["wanted"] for mixture in result["mixtures"])
    assert len({json.dumps(each) for each in (first, second, everything, nothing)}) == 4
    unknown = result["unknown"]
    assert list(unknown["not_honoured"]) == [unknown["layer"]]
