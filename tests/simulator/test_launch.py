"""The command line, as users run it: real processes, on every personality."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import onnx
import pytest

from polygraphy_debug_ext.simulator import launch as launcher
from polygraphy_debug_ext.simulator import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.simulator.conftest import Models

Run = subprocess.CompletedProcess[str]
LOOK = "import tensorrt; print(tensorrt.__version__)"


@pytest.fixture
def net(tmp_path: Path, models: Models) -> Path:
    onnx.save(models.conv_net(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def passed(run: Run) -> Run:
    assert run.returncode == 0, run.stdout + run.stderr
    return run


@pytest.mark.parametrize("trt", ["8.6", "10.13"])
def test_polygraphy_builds_inspects_and_runs(launch: Callable[..., Run], net: Path, trt: str) -> None:
    tools = ["--trt", trt, "--", "polygraphy"]
    for number in (1, 2):
        passed(
            launch(
                *tools,
                "convert",
                net.name,
                "--fp16",
                "--save-tactics",
                f"r{number}.json",
                "-o",
                f"e{number}.engine",
            )
        )
    shown = passed(launch(*tools, "inspect", "model", "e1.engine", "--show", "layers", "attrs"))
    assert "conv1 + relu1 [Op: CaskConvolution]" in shown.stdout
    assert "Tactic = 0x" in shown.stdout
    network = passed(
        launch(*tools, "inspect", "model", net.name, "--display-as=trt", "--show", "layers", "attrs")
    )
    assert "conv0.kernel_size_nd = (3, 3)" in network.stdout
    assert "conv1 + relu1" in passed(launch(*tools, "inspect", "tactics", "r1.json")).stdout
    passed(launch(*tools, "run", "e1.engine", "--model-type=engine", "--trt"))
    compared = passed(launch(*tools, "run", net.name, "--trt", "--onnxrt"))
    assert "Pass Rate: 100.00%" in compared.stdout


def test_polygraphy_builds_inspects_and_runs_with_the_newest(launch: Callable[..., Run], net: Path) -> None:
    tools = ["--trt", "11.4", "--", "polygraphy"]
    passed(launch(*tools, "convert", net.name, "-o", "e.engine"))
    shown = passed(launch(*tools, "inspect", "model", "e.engine", "--show", "layers", "attrs")).stdout
    assert "[Op: correlation]" in shown
    assert "Format: Float (Linear) Row major linear format" in shown
    assert "Tactic = sm80_xmma_fprop" in shown
    passed(launch(*tools, "run", "e.engine", "--model-type=engine", "--trt"))
    compared = passed(launch(*tools, "run", net.name, "--trt", "--onnxrt"))
    assert "Pass Rate: 100.00%" in compared.stdout
    refused = launch(*tools, "convert", net.name, "-o", "f.engine", "--save-tactics", "r.json")
    assert refused.returncode != 0
    assert "is not available on TensorRT version 11.4.0.106" in refused.stdout + refused.stderr


def test_stock_diff_tactics_names_what_differs(launch: Callable[..., Run], net: Path) -> None:
    for kind, seed in (("good", "1"), ("bad", "4")):
        (net.parent / kind).mkdir()
        passed(
            launch(
                "--seed",
                seed,
                "--",
                "polygraphy",
                "convert",
                net.name,
                "--fp16",
                "-o",
                "e.engine",
                "--save-tactics",
                f"{kind}/r.json",
            )
        )
    shown = passed(launch("--", "polygraphy", "inspect", "diff-tactics", "--dir", "."))
    assert "Loaded 1 good tactic replays" in shown.stdout
    assert "Found potentially bad tactics" in shown.stdout


@pytest.mark.parametrize("trt", ["8.6", "10.13"])
def test_a_replay_forces_the_same_tactics_in_every_layer(
    launch: Callable[..., Run], net: Path, trt: str
) -> None:
    script = net.parent / "replay.py"
    script.write_text(
        "import json\n"
        "from polygraphy.backend.trt import (CreateConfig, EngineFromNetwork, NetworkFromOnnxPath, TacticRecorder,\n"
        "                                    TacticReplayer, TacticReplayData)\n"
        "def build(selector):\n"
        f"    return EngineFromNetwork(NetworkFromOnnxPath({net.name!r}), CreateConfig(fp16=True, algorithm_selector=selector))()\n"
        "data = TacticReplayData()\n"
        "recorder = TacticRecorder(data)\n"
        "build(recorder)\n"
        "free = [build(TacticRecorder(TacticReplayData())) for _ in range(3)]\n"
        "engine = build(TacticReplayer(data))\n"
        "import tensorrt as trt\n"
        "def tactics(engine):\n"
        "    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)\n"
        "    return {l['Name']: l['TacticValue'] for l in json.loads(text)['Layers'] if 'TacticValue' in l}\n"
        "recorded = {name: f'0x{algorithm.tactic % 2**64:016x}' for name, algorithm in data.items() if name[0] != '{'}\n"
        "print(json.dumps([tactics(engine) == recorded, [tactics(e) == recorded for e in free]]))\n"
    )
    run = passed(launch("--trt", trt, "--noise", "0.2", "--", sys.executable, script.name))
    same, free = json.loads(run.stdout.splitlines()[-1])
    assert same
    assert not all(free)


def test_polygraphy_calibrates(launch: Callable[..., Run], net: Path) -> None:
    passed(
        launch(
            "--",
            "polygraphy",
            "convert",
            net.name,
            "--int8",
            "--calibration-cache",
            "c.cache",
            "-o",
            "e.engine",
        )
    )
    assert (net.parent / "c.cache").read_bytes().startswith(b"TRT-101339-EntropyCalibration2\n")
    assert (
        "int8"
        in passed(launch("--", "polygraphy", "inspect", "model", "e.engine", "--show", "layers")).stdout
    )
    passed(launch("--", "polygraphy", "run", "e.engine", "--trt"))


def test_all_layers_can_be_outputs(launch: Callable[..., Run], net: Path) -> None:
    run = passed(
        launch(
            "--",
            "polygraphy",
            "run",
            net.name,
            "--trt",
            "--onnxrt",
            "--trt-outputs",
            "mark",
            "all",
            "--onnx-outputs",
            "mark",
            "all",
        )
    )
    assert "Pass Rate: 100.00%" in run.stdout


def test_a_timing_cache_is_saved_and_used(launch: Callable[..., Run], net: Path) -> None:
    convert = ["--", "polygraphy", "convert", net.name, "-o", "e.engine", "-vvv"]
    passed(launch(*convert, "--save-timing-cache", "t.cache"))
    assert "got cached result" in passed(launch(*convert, "--load-timing-cache", "t.cache")).stdout


def test_a_seed_counts_more_than_the_hashing_of_python(launch: Callable[..., Run], net: Path) -> None:
    for number in ("1", "2"):
        convert = ["--seed", "9", "--", "polygraphy", "convert", net.name, "--fp16", "-o", f"{number}.engine"]
        passed(launch(*convert, env={"PYTHONHASHSEED": number}))
    assert (net.parent / "1.engine").read_bytes() == (net.parent / "2.engine").read_bytes()


def test_grandchildren_inherit_everything(launch: Callable[..., Run]) -> None:
    inner = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {LOOK!r}]).returncode)"
    run = passed(launch("--trt", "8.6", "--", sys.executable, "-c", inner))
    assert run.stdout.strip() == "8.6.1"


def test_the_polygraphy_of_this_interpreter_is_found_without_a_path(launch: Callable[..., Run]) -> None:
    run = launch("--", "polygraphy", "--version", env={"PATH": ""})
    assert "Polygraphy" in passed(run).stdout


def test_without_the_launcher_tensorrt_is_what_it_was() -> None:
    env = {key: value for key, value in os.environ.items() if key not in {settings.VARIABLE, "PYTHONPATH"}}
    script = (
        "import importlib.util, polygraphy_debug_ext.simulator; print(importlib.util.find_spec('tensorrt'))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert "polygraphy_debug_ext" not in run.stdout


def test_importing_tensorrt_is_light(launch: Callable[..., Run]) -> None:
    script = "import tensorrt, sys; print([m for m in ('onnx', 'onnxruntime') if m in sys.modules])"
    assert passed(launch("--", sys.executable, "-c", script)).stdout.strip() == "[]"


@pytest.mark.parametrize("effect", ["build-crash", "run-crash"])
def test_a_crash_ends_the_process_with_a_signal(launch: Callable[..., Run], net: Path, effect: str) -> None:
    run = launch("--fault", f"*@conv3:{effect}", "--", "polygraphy", "run", net.name, "--trt", "-vvv")
    assert run.returncode == -signal.SIGSEGV
    last = [line for line in run.stdout.splitlines() if "Timing Runner" in line][-1]
    assert ("conv3" in last) is (effect == "build-crash")


def test_a_hang_does_not_end(tmp_path: Path, net: Path) -> None:
    command = [sys.executable, "-m", "polygraphy_debug_ext.simulator", "--fault", "*@conv3:build-hang", "--",
               "polygraphy", "convert", net.name, "-o", "e.engine"]  # fmt: skip
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(timeout=4)
    finally:
        child.kill()
        child.wait()
    assert not (tmp_path / "e.engine").exists()


def test_kernels_can_be_listed(launch: Callable[..., Run], net: Path) -> None:
    rows = [
        line.split("\t") for line in passed(launch("--list-kernels", net.name, "--fp16")).stdout.splitlines()
    ]
    assert {len(row) for row in rows} == {4}
    assert {row[0] for row in rows} >= {"conv1 + relu1", "fc"}
    assert {row[3] for row in rows} == {"FLOAT", "HALF"}
    kernel = next(row[1] for row in rows if row[0] == "fc" and row[3] == "FLOAT")
    hit = launch(
        "--fault", f"{kernel}@fc:build-crash", "--", "polygraphy", "convert", net.name, "-o", "e.engine"
    )
    assert hit.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("trt", ["10.13", "11.4"])
def test_kernels_inside_myelin_can_be_listed_and_planted(
    launch: Callable[..., Run], net: Path, trt: str
) -> None:
    listed = passed(launch("--trt", trt, "--list-kernels", net.name)).stdout.splitlines()
    rows = [line.split("\t") for line in listed]
    assert any(row[0] == "soft" and row[1].startswith("__myl_") for row in rows)
    kernel, tactic = next((row[1], row[2]) for row in rows if row[0] == "fc")
    assert len(tactic) == len("0x") + 13
    command = ["polygraphy", "convert", net.name, "-o", "e.engine"]
    hit = launch("--trt", trt, "--fault", f"{kernel}@fc:build-crash", "--", *command)
    assert hit.returncode == -signal.SIGSEGV


def test_precisions_of_listed_kernels_come_from_the_model_in_the_newest(
    launch: Callable[..., Run], net: Path
) -> None:
    run = passed(launch("--trt", "11.4", "--list-kernels", net.name, "--fp16"))
    assert "HALF" not in run.stdout
    assert "takes precisions from the model" in run.stderr


@pytest.mark.parametrize(("trt", "listed"), [("8.6", False), ("10.13", True)])
def test_kernels_in_bf16_are_listed_where_a_builder_has_the_flag(
    launch: Callable[..., Run], net: Path, trt: str, *, listed: bool
) -> None:
    run = passed(launch("--trt", trt, "--list-kernels", net.name, "--bf16"))
    assert ("BF16" in run.stdout) is listed
    assert ("TensorRT 8.6 has no such precision: no effect of --bf16" in run.stderr) is not listed


def test_a_timing_cache_belongs_to_a_device(launch: Callable[..., Run], net: Path) -> None:
    command = ["--", "polygraphy", "convert", net.name, "-o", "e.engine"]
    saved = [*command, "--save-timing-cache", "t.cache"]
    passed(launch("--gpu", "NVIDIA L4", *saved))
    loaded = launch(*command, "--load-timing-cache", "t.cache")
    assert "The timing cache will not be used!" in loaded.stdout + loaded.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "no command is given"),
        (["--trt", "9.9", "--", "true"], 2, "invalid choice"),
        (["--fault", "*:explode", "--", "true"], 2, "there is no effect 'explode'"),
        (["--noise", "7", "--", "true"], 2, "between 0 and 1"),
        (["--", "no-such-command"], 127, "command not found: no-such-command"),
        (["--", "./plain.txt"], 126, "./plain.txt cannot be executed"),
        (["--list-kernels", "missing.onnx"], 2, "missing.onnx cannot be read"),
        (["--list-kernels", "missing.onnx", "--", "true"], 2, "takes no command"),
    ],
)
def test_mistakes_are_answered_with_one_message(
    launch: Callable[..., Run], tmp_path: Path, arguments: list[str], status: int, text: str
) -> None:
    (tmp_path / "plain.txt").write_text("not a program")
    run = launch(*arguments)
    assert run.returncode == status
    assert text in run.stderr
    assert "Traceback" not in run.stderr


def test_a_damaged_variable_is_one_sentence(launch: Callable[..., Run]) -> None:
    script = f"import os; os.environ[{settings.VARIABLE!r}] = 'x'\ntry:\n    import tensorrt\nexcept ImportError as e:\n    print(e)"
    run = passed(launch("--", sys.executable, "-c", script))
    assert run.stdout.startswith(f"the environment variable {settings.VARIABLE} is damaged")


def test_the_status_of_the_command_is_handed_on(launch: Callable[..., Run]) -> None:
    assert launch("--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7


def test_help_explains_faults(launch: Callable[..., Run]) -> None:
    run = passed(launch("-h"))
    for word in ("KERNEL[@LAYER]:EFFECT[:rate=R][:value=V]", "build-hang", "examples:", "--list-kernels"):
        assert word in run.stdout


def test_the_environment_is_extended_not_replaced() -> None:
    base = {"PYTHONPATH": "/mine", "PATH": "/bin", "LD_LIBRARY_PATH": "/libs"}
    found = launcher.environment(settings.Settings(seed=3), base)
    assert found["PYTHONPATH"].endswith(f"{os.pathsep}/mine")
    assert found["PATH"].endswith(f"{os.pathsep}/bin")
    assert found["LD_LIBRARY_PATH"].startswith(f"/libs{os.pathsep}")
    assert settings.load(found[settings.VARIABLE]).seed == 3
