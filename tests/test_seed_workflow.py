"""The seed workflow, word for word, with nothing but `polygraphy-trt-sim --` before each command."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
EXAMPLE = Path(__file__).parents[1] / "examples" / "01_debugging_flaky_trt_tactics"

WORKFLOW = """\
polygraphy run identity.onnx --onnxrt --save-outputs golden.json
polygraphy debug build identity.onnx --fp16 --save-tactics replay.json \
    --artifacts-dir replays --artifacts replay.json --until=2 \
    --check polygraphy run polygraphy_debug.engine --trt --load-outputs golden.json
polygraphy debug diff-tactics --dir replays
"""

ENDING = [
    "[I] Loaded 2 good tactic replays.",
    "[I] Loaded 0 bad tactic replays.",
    "[I] Could not determine potentially bad tactics. Try generating more tactic replay files?",
]


def simulated(command: str, *options: str, cwd: Path) -> list[str]:
    """Run one command line under the simulator; return its lines without colours."""
    words = [str(BIN / "polygraphy-trt-sim"), *options, "--", *shlex.split(command)]
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()


def commands(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", "").splitlines() if line.strip()]


@pytest.mark.parametrize("version", ["8.6", "10.13", "11.4"])
def test_the_seed_workflow_ends_as_promised(tmp_path: Path, version: str) -> None:
    subprocess.run([sys.executable, str(EXAMPLE / "make_models.py")], cwd=tmp_path, check=True)
    run, build, diff = commands(WORKFLOW)
    simulated(run, "--trt", version, cwd=tmp_path)
    lines = simulated(build, "--trt", version, cwd=tmp_path)
    assert any(line.endswith("Finished 2 iteration(s) | Passed: 2/2 | Pass Rate: 100.0%") for line in lines)
    assert simulated(diff, "--trt", version, cwd=tmp_path)[-3:] == ENDING
    replays = sorted(path.name for path in (tmp_path / "replays" / "good").iterdir())
    assert len(replays) == 2
    for index, name in enumerate(replays):
        assert re.fullmatch(rf"replay_\d\d-\d\d-\d\d_\d\d-\d\d-\d\d_N{index}\.json", name)
