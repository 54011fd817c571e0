"""The recipe for CI runs under the simulator: it fails with the right status, and leaves what a CI server shows."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from polygraphy_debug_ext.formats import journal as form

EXAMPLES = Path(__file__).parents[1] / "examples"
RECIPE = EXAMPLES / "02_ci_triage"
LOOK = [sys.executable, "-S", "-E", str(Path(__file__).parent / "hunting" / "look.py"), "replay.json"]
#: Wins the layer conv4 + relu4 in some builds of the example; what is rejected is a culprit.
LAYER = "conv4 + relu4"
KERNEL = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize32x32x64_stage6_warpsize2x2x1_g1_tensor16x8x16"


def triage(
    directory: Path, *words: str, version: str = "11.4", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the script under the simulator."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TRT": f"polygraphy-trt-sim --trt {version} --seed 3 --",
        "NO_COLOR": "1",
        **variables,
    }
    return subprocess.run(
        ["bash", str(RECIPE / "triage.sh"), *words],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


@pytest.fixture
def network(example_networks: Path) -> Path:
    return example_networks


def test_a_culprit_fails_the_job_and_is_named_in_every_report(network: Path) -> None:
    step = network / "step.md"
    step.write_text("before\n")
    check = [*LOOK, LAYER, KERNEL]
    summary = {"GITHUB_STEP_SUMMARY": str(step)}
    done = triage(network, "convnet.onnx", "--fp16", "--", *check, version="10.13", **summary)
    assert done.returncode == 10, done.stdout + done.stderr
    out = network / "triage"
    run = form.read(out / form.NAME).runs[-1]
    assert run.stopped is not None
    assert run.stopped.reason == "CONFIDENT"
    cases = ET.parse(out / "junit.xml").getroot().iter("testcase")  # noqa: S314 - we wrote it
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    assert "tactics" in failed
    for name in ("junit.xml", "summary.md", "report.html"):
        assert LAYER in (out / name).read_text()
    assert step.read_text() == "before\n" + (out / "summary.md").read_text()


def test_a_job_without_failures_passes(network: Path) -> None:
    done = triage(network, "identity.onnx", "--", "true", MOST="3", OUT="out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No failure was seen in 3 builds" in done.stdout
    assert (network / "out" / "report.html").exists()


def test_builds_that_do_not_decide_have_a_status_of_their_own(network: Path) -> None:
    done = triage(network, "convnet.onnx", "--fp16", "--", "sh", "-c", "exit $(({iteration} % 2))", MOST="4")
    assert done.returncode == 11, done.stdout + done.stderr
    assert "Not enough evidence" in done.stdout


def test_a_job_that_was_cut_short_goes_on(network: Path) -> None:
    words = ("identity.onnx", "--", "true")
    assert triage(network, *words, MOST="2").returncode == 0
    assert triage(network, *words, MOST="3").returncode == 0
    (run,) = form.read(network / "triage" / form.NAME).runs
    assert sorted(run.trials) == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "usage: triage.sh MODEL"),
        (("identity.onnx",), "usage: triage.sh MODEL"),
        (("identity.onnx", "--"), "usage: triage.sh MODEL"),
        (("nothing.onnx", "--", "true"), "nothing.onnx: no such file"),
        (("identity.onnx", "--", "no-such-check"), "debug build ended with status 1"),
    ],
)
def test_a_mistake_is_said(network: Path, words: tuple[str, ...], message: str) -> None:
    done = triage(network, *words)
    assert done.returncode == 1
    assert message in done.stderr
