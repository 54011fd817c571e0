"""`debug build --fp16` and `--bf16` as a process where networks are strongly typed: TensorRT 11 as the simulator has it."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from polygraphy.json import load_json

from polygraphy_debug_ext.formats import replay

if TYPE_CHECKING:
    from pathlib import Path

POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"
CHECK = [sys.executable, "-c", POLYGRAPHY, "run", "{engine}", "--trt", "--save-outputs", "outputs.json"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a network, whose weights lie in a file beside it."""
    weights = np.random.default_rng(3).standard_normal((8, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Conv", ["x", "w"], ["a"], name="conv", pads=[1] * 4),
            helper.make_node("Relu", ["a"], ["y"], name="relu"),
        ],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        [numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "weights").mkdir()
    path = str(tmp_path / "weights" / "small.onnx")
    onnx.save(model, path, save_as_external_data=True, location="small.bin", size_threshold=0)
    (tmp_path / "weights" / "small.onnx").rename(tmp_path / "small.onnx")
    return tmp_path


def build(directory: Path, version: str, *options: str) -> str:
    """Build once and run the engine; return what was printed."""
    simulated = [
        "-m",
        "polygraphy_debug_ext.simulator",
        "--trt",
        version,
        "--seed",
        "1",
        "--",
        sys.executable,
    ]
    command = ["debug", "build", "small.onnx", "--external-data-dir", "weights", *options]
    filing = ["--artifacts-dir", "out", "--artifacts", "replay.json", "outputs.json"]
    recording = ["--save-tactics", "replay.json", "--until", "1", "--check", *CHECK]
    done = subprocess.run(
        [sys.executable, *simulated, "-c", POLYGRAPHY, *command, *filing, *recording],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    return output


def results(directory: Path) -> tuple[list[str], np.ndarray[Any, Any]]:
    """The kernels, and the numbers that the engine computes; the directory is made ready for the next build."""
    good = directory / "out" / "good"
    [recorded], [outputs] = good.glob("replay*.json"), good.glob("outputs*.json")
    kernels = [tactic.kernel or "" for tactic in replay.read(recorded).layers.values()]
    [(_, [iteration])] = load_json(str(outputs)).items()
    (directory / "out").rename(directory / f"out{len(list(directory.iterdir()))}")
    return kernels, np.asarray(iteration["y"])


@pytest.mark.parametrize(
    ("option", "word", "tolerance"), [("--fp16", "_f16f16_", 0.05), ("--bf16", "_bf16bf16_", 0.3)]
)
def test_there_are_kernels_and_numbers_of_16_bits_and_outputs_of_fp32(
    directory: Path, option: str, word: str, tolerance: float
) -> None:
    told = f"was converted to {option[2:].upper()}"
    assert told not in build(directory, "11.4")
    full_kernels, full = results(directory)
    assert told in build(directory, "11.4", option)
    half_kernels, half = results(directory)
    assert any(word in kernel for kernel in half_kernels)
    assert not any(word in kernel for kernel in full_kernels)
    assert half.dtype == full.dtype == np.float32
    assert not np.array_equal(half, full)
    np.testing.assert_allclose(half, full, atol=tolerance)
    if option == "--bf16":
        # Its last 16 bits are 0: what was rounded to BF16 and then cast.
        assert not (half.view(np.uint32) & 0xFFFF).any()


def test_a_builder_with_flags_gets_its_flag_unless_the_network_is_to_be_strongly_typed(
    directory: Path,
) -> None:
    output = build(directory, "10.13", "--fp16")
    assert "FP16, " in next(line for line in output.split("\n") if "Flags  " in line)
    assert "was converted to FP16" not in output
    results(directory)
    output = build(directory, "10.13", "--fp16", "--strongly-typed")
    assert "FP16, " not in next(line for line in output.split("\n") if "Flags  " in line)
    assert "was converted to FP16" in output


def test_a_builder_with_a_flag_for_bf16_gets_it(directory: Path) -> None:
    output = build(directory, "10.13", "--bf16")
    assert "BF16, " in next(line for line in output.split("\n") if "Flags  " in line)
    assert "was converted to BF16" not in output


def test_a_builder_without_bf16_refuses_it_before_the_first_build(directory: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        build(directory, "8.6", "--bf16")
    assert "--bf16: tensorrt 8.6.1 has no BF16" in str(caught.value)
    assert "Iteration 1" not in str(caught.value)
