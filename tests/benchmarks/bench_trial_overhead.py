"""What a trial costs beyond the stock loop: the same build and check, on the simulator, by the stock tool and by ours.

Run it as a script. The start of the processes is left out: two runs of different length are compared. Lower is better.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHORT, LONG = 20, 220
REPETITIONS = 3
MAIN = "import sys; from polygraphy.tools import main; sys.exit(main())"
STOCK = f"import polygraphy_debug_ext.plugin.doors as doors; doors.hang = lambda: None\n{MAIN}"


def write_model(path: Path, layers: int = 10) -> None:
    """Write a network of some convolutions."""
    generator = np.random.default_rng(7)
    nodes, weights, name = [], [], "x"
    for index in range(layers):
        weight = generator.standard_normal((8, 8, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{index}"))
        nodes.append(
            helper.make_node("Conv", [name, f"w{index}"], [f"c{index}"], name=f"conv{index}", pads=[1] * 4)
        )
        nodes.append(helper.make_node("Relu", [f"c{index}"], [f"r{index}"], name=f"relu{index}"))
        name = f"r{index}"
    shape = [1, 8, 16, 16]
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def cost(directory: Path, program: str, trials: int, *options: str) -> tuple[float, float]:
    """The time that a run of so many trials takes, and the processor time of all its processes."""
    command = [
        *(
            sys.executable,
            "-m",
            "polygraphy_debug_ext.simulator",
            "--seed",
            "1",
            "--",
            sys.executable,
            "-c",
            program,
        ),
        *(
            "debug",
            "build",
            "model.onnx",
            "--fp16",
            "--save-tactics",
            "replay.json",
            "--artifacts",
            "replay.json",
        ),
        *("--until", str(trials), *options, "--check", "true"),
    ]
    with tempfile.TemporaryDirectory(dir=directory) as place:
        write_model(Path(place) / "model.onnx")
        begun, before = time.perf_counter(), os.times()
        subprocess.run(command, cwd=place, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = os.times()
        used = after.children_user + after.children_system - before.children_user - before.children_system
        return time.perf_counter() - begun, used


VARIANTS = {
    "stock loop, in its own process": (STOCK, []),
    "ours, in the same process": (MAIN, ["--in-process"]),
    "ours, isolated": (MAIN, []),
}


def main() -> None:
    """Measure in turns, because others use the machine too; take the best of each, and print."""
    best: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(REPETITIONS):
            for name, (program, options) in VARIANTS.items():
                for trials in (SHORT, LONG):
                    taken = cost(Path(directory), program, trials, *options)
                    best[name, trials] = [
                        min(pair) for pair in zip(taken, best.get((name, trials), taken), strict=True)
                    ]
    for number, what in enumerate(("time", "processor time")):
        per_trial = {
            name: (best[name, LONG][number] - best[name, SHORT][number]) / (LONG - SHORT) * 1e3
            for name in VARIANTS
        }
        stock = next(iter(per_trial.values()))
        print(f"{what} per trial")
        for name, milliseconds in per_trial.items():
            print(
                f"    {name:32} {milliseconds:7.2f} ms, {milliseconds / stock:.2f} times stock, {milliseconds - stock:+.2f} ms"
            )


if __name__ == "__main__":
    main()
