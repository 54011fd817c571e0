"""What builds is told where it can be, and a machine without a GPU tells less and fails nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SURROUNDINGS = "from polygraphy_debug_ext.trt.surroundings import gpu; print(gpu())"
SIMULATOR = [sys.executable, "-m", "polygraphy_debug_ext.simulator"]


@pytest.mark.parametrize(
    ("name", "capability"), [("NVIDIA L4", "8.9"), ("NVIDIA H100 PCIe", "9.0"), ("an unknown one", "8.0")]
)
def test_the_gpu_is_asked_through_the_runtime_that_polygraphy_finds(name: str, capability: str) -> None:
    # The simulator has its CUDA runtime from the moment on in which its TensorRT is imported.
    program = f"import tensorrt; {SURROUNDINGS}"
    command = [*SIMULATOR, "--gpu", name, "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {"driver": "12.8", "cuda": "12.8", "gpu": name, "compute_capability": capability}
    assert done.stdout.strip() == str(expected)
    assert done.stderr == ""


def test_a_cuda_runtime_that_cannot_be_loaded_is_no_error(tmp_path: Path) -> None:
    broken = tmp_path / "libcudart.so"
    broken.write_text("no library")
    program = f"import polygraphy.cuda.cuda as c; c._find_cuda_lib_dirs = lambda: [{str(tmp_path)!r}]; {SURROUNDINGS}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{}"


def test_a_gpu_that_does_not_answer_is_left_out() -> None:
    program = (
        "import ctypes, polygraphy.cuda as cuda\n"
        "class Dead:\n"
        "    def __getattr__(self, name): return lambda *_: 100\n"
        "cuda.wrapper = lambda: type('Wrapper', (), {'handle': Dead()})()\n"
        f"{SURROUNDINGS}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{}"
