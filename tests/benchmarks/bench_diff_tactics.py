"""What `debug diff-tactics` costs beside stock `inspect diff-tactics`, and beside `orjson.loads` of the same bytes.

Run it as a script; see --help. Replays are written as Polygraphy writes them, and every program runs as a whole process on the same
files, one after the other, several times; the best time of each counts. Stock needs a TensorRT to load a replay: it gets
the simulator, which costs it next to nothing. Everything ran once before, on a few small files, so that modules are compiled, and the
files were read once, so that all read from memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MAIN: Final = "import sys; from polygraphy.tools import main; sys.exit(main())"
STOCK: Final = f"import polygraphy_debug_ext.plugin.doors as doors; doors.hang = lambda: None\n{MAIN}"
SIMULATOR: Final = (sys.executable, "-m", "polygraphy_debug_ext.simulator", "--trt", "10.13", "--")
ORJSON: Final = """
import sys, pathlib, orjson
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.json")):
    orjson.loads(path.read_bytes())
"""
RAW: Final = """
import sys, pathlib
for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.json")):
    path.read_bytes()
"""
BEGIN: Final = '{\n    "replay": {\n'
END: Final = '\n    },\n    "polygraphy_class": "TacticReplayData"\n}'
IMPLEMENTATIONS: Final = (0x80000009, 0x8000002F, 0x80000023, 0x80000028, 0x80000036)
KINDS: Final = ("conv1", "conv2", "conv3", "downsample/downsample.0/Conv", "fc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of wall clock and of processor time, and the highest resident memory of the process in MB."""

    seconds: float
    processor: float
    peak: float


def tensor(generator: random.Random) -> dict[str, object]:
    """A tensor, as Polygraphy 0.49 and later writes it."""
    channels, side = generator.choice((32, 64, 128, 256)), generator.choice((7, 14, 28, 56))
    return {
        "dtype": f"DataType.{generator.choice(('FLOAT', 'HALF'))}",
        "strides": [channels * side * side, side * side, side, 1],
        "vectorized_dim": generator.choice((-1, 1)),
        "components_per_element": generator.choice((1, 8)),
        "polygraphy_class": "TensorInfo",
    }


def candidates(generator: random.Random, count: int) -> list[dict[str, object]]:
    """Tactics of one layer."""
    return [
        {
            "implementation": generator.choice(IMPLEMENTATIONS),
            "tactic": generator.getrandbits(64) - 2**63,
            "inputs": [tensor(generator) for _ in range(2)],
            "outputs": [tensor(generator)],
            "polygraphy_class": "Algorithm",
        }
        for _ in range(count)
    ]


def layer_name(index: int) -> str:
    """A name as exporters and the fusions of TensorRT make them."""
    stage, block, kind = index // 50, index // 5 % 10, KINDS[index % 5]
    base = f"/backbone/layer{stage}/layer{stage}.{block}/{kind}"
    return f"{base}/Conv + {base.removesuffix('/Conv')}/act/Relu"


def member(name: str, tactic: dict[str, object]) -> str:
    """A layer as it stands in a replay that Polygraphy writes."""
    whole = json.dumps({"replay": {name: tactic}}, indent="    ")
    return whole.removeprefix(BEGIN).removesuffix("\n    }\n}")


def write(root: Path, files: int, layers: int, tactics: int, *, seed: int) -> int:
    """Write replays of good and bad builds: the bad ones have a tactic that the good ones lack. Return their bytes."""
    generator = random.Random(seed)
    network = {
        name: [member(name, tactic) for tactic in candidates(generator, tactics)]
        for name in map(layer_name, range(layers))
    }
    culprit = layer_name(layers // 2)
    written = 0
    for number in range(files):
        side = "bad" if number % 4 == 0 else "good"
        chosen = {name: generator.choice(of) for name, of in network.items()}
        chosen[culprit] = network[culprit][0] if side == "bad" else generator.choice(network[culprit][1:])
        text = BEGIN + ",\n".join(chosen.values()) + END
        path = root / side / f"replay_12-02-26_10-00-00_N{number}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        written += len(text)
    return written


def run(command: list[str], times: int, environment: dict[str, str]) -> Cost:
    """Run a command so many times; return the shortest time and the highest memory."""
    best = processor = float("inf")
    peak = 0.0
    for _ in range(times):
        start = time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
        ) as process:
            complaints = process.stderr.read() if process.stderr else b""
            _, status, usage = os.wait4(process.pid, 0)
            best = min(best, time.perf_counter() - start)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"{command} ended with {process.returncode}:\n{complaints.decode()}")
        processor = min(processor, usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
    return Cost(seconds=best, processor=processor, peak=peak)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--tactics", type=int, default=6, help="candidates per layer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--times", type=int, default=3, help="runs of each program, but one of stock")
    parser.add_argument("--no-stock", action="store_true", help="leave the slow one out")
    parser.add_argument("--directory", type=Path, help="where the replays are written, and left")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-diff-") as temporary:
        root = options.directory or Path(temporary, "replays")
        size = write(root, options.files, options.layers, options.tactics, seed=options.seed)
        measure(root, size, options, Path(temporary))


def programs(root: Path) -> dict[str, list[str]]:
    """What is measured, on the files in `root`."""
    ours = [sys.executable, "-c", MAIN, "debug", "diff-tactics", "--dir", str(root)]
    stock = [sys.executable, "-c", STOCK, "inspect", "diff-tactics", "--dir", str(root)]
    return {
        "read the bytes": [sys.executable, "-c", RAW, str(root)],
        "orjson.loads": [sys.executable, "-c", ORJSON, str(root)],
        "debug diff-tactics": ours,
        "inspect diff-tactics (stock, on the simulator)": [*SIMULATOR, *stock],
    }


def measure(root: Path, size: int, options: argparse.Namespace, scratch: Path) -> None:
    """Run every program on the files in `root`, and print what each took."""
    megabytes = size / 1e6
    print(
        f"{options.files} replays of {options.layers} layers with {options.tactics} tactics each, seed {options.seed}: "
        f"{megabytes:.0f} MB"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(scratch / "compiled")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    write(scratch / "small", 4, 4, 2, seed=options.seed)
    small = programs(scratch / "small")
    for command in small.values():
        run(command, 1, environment)
    commands = programs(root)
    run(commands["read the bytes"], 1, environment)
    costs, starts = {}, {}
    for name, command in commands.items():
        is_stock = "inspect" in command
        if not (is_stock and options.no_stock):
            costs[name] = run(command, 1 if is_stock else options.times, environment)
            starts[name] = run(small[name], options.times, environment)
    show("whole process", costs, megabytes)
    loading = {
        name: Cost(
            seconds=cost.seconds - starts[name].seconds,
            processor=cost.processor - starts[name].processor,
            peak=cost.peak,
        )
        for name, cost in costs.items()
    }
    show("without what four small replays take", loading, megabytes)


def show(title: str, costs: dict[str, Cost], megabytes: float) -> None:
    """Print what each program took, and how many times ours that is."""
    ours = costs["debug diff-tactics"]
    print(f"{title:47}{'seconds':>9}{'CPU s':>9}{'MB/s':>9}{'peak MB':>9}{'x ours':>9}{'CPU x':>9}")
    for name, cost in costs.items():
        print(
            f"{name:47}{cost.seconds:9.2f}{cost.processor:9.2f}{megabytes / cost.seconds:9.0f}{cost.peak:9.0f}"
            f"{cost.seconds / ours.seconds:9.2f}{cost.processor / ours.processor:9.2f}"
        )


if __name__ == "__main__":
    main()
