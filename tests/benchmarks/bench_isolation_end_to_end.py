"""Builds until the culprit is isolated, with the real commands on the simulator: bisecting, against random builds and set difference.

Both ways begin with the same random builds. Stock's way goes on until the tactics of good builds, subtracted from those of bad ones,
leave the culprit alone. Ours takes the first good and bad build, and counts the builds of `bisect-tactics` to the confirmed culprit.
A kernel that competes for a layer is declared the culprit: the check looks for it in what was recorded of the engine; with a
flake rate, it passes now and then although the culprit is there.

Run it as a script; it takes a few minutes.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.formats import replay

if TYPE_CHECKING:
    from polygraphy_debug_ext.model import Assignment

ROOT = Path(__file__).parents[2]
MAKE_MODELS = ROOT / "examples" / "01_debugging_flaky_trt_tactics" / "make_models.py"
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
RANDOM_BUILDS = 60
#: Good builds that are tried as the good end.
_ENDS = 3
CHECK = """
import json, os, random, sys
replay, layer, kernel, rate, seed = sys.argv[1:]
has = json.load(open(replay))["replay"].get(layer, {}).get("kernel") == kernel
draw = random.Random(seed + os.environ["POLYGRAPHY_DEBUG_ITERATION"])
sys.exit(has and draw.random() >= float(rate))
"""


def debug(directory: Path, version: str, seed: int, *words: str) -> None:
    """Run a subtool under the simulator."""
    simulator = [
        sys.executable,
        "-m",
        "polygraphy_debug_ext.simulator",
        "--trt",
        version,
        "--seed",
        str(seed),
        "--",
    ]
    done = subprocess.run(
        [*simulator, *POLYGRAPHY, "debug", *words], cwd=directory, capture_output=True, text=True, check=False
    )
    if done.returncode not in {0, 3, 4, 5}:
        raise SystemExit(done.stdout + done.stderr)


def choices(assignment: Assignment) -> frozenset[tuple[str, object]]:
    """What a build has, layer by layer."""
    return frozenset(
        (layer, tactic.kernel or tactic.tactic)
        for layer, tactic in assignment.layers.items()
        if not tactic.swallowed
    )


def culprit(builds: list[frozenset[tuple[str, object]]], draw: random.Random) -> tuple[str, str]:
    """Draw a choice that between a tenth and a half of the builds make."""
    counts = Counter(choice for build in builds for choice in build)
    low, high = len(builds) // 10, len(builds) // 2
    # A reformat is there because its neighbours have the formats that they have: it is not chosen by itself.
    competing = [(a, str(b)) for (a, b), n in counts.items() if low <= n <= high and "Reformat" not in a]
    layer, kernel = draw.choice(sorted(competing))
    return layer, kernel


def stock(
    builds: list[frozenset[tuple[str, object]]], bad: list[bool], wanted: tuple[str, str]
) -> int | None:
    """Builds until the set difference is the culprit alone; None if it never is."""
    for number in range(2, len(builds) + 1):
        good = frozenset().union(
            *(build for build, fails in zip(builds[:number], bad, strict=False) if not fails)
        )
        failing = frozenset().union(
            *(build for build, fails in zip(builds[:number], bad, strict=False) if fails)
        )
        if failing - good == {wanted}:
            return number
    return None


def hunt(directory: Path, version: str, seed: int, rate: float) -> tuple[int | None, int, bool]:
    """Return the builds of stock's way and of ours, and whether ours confirmed the right one."""
    subprocess.run([sys.executable, str(MAKE_MODELS), str(directory)], check=True)
    (directory / "check.py").write_text(CHECK)
    files = ["--save-tactics", "replay.json", "--artifacts", "replay.json", "--artifacts-dir", "random"]
    until = ["--until", str(RANDOM_BUILDS), "--check", "true"]
    debug(directory, version, seed, "build", "convnet.onnx", "--fp16", *files, *until)
    paths = sorted(
        (directory / "random" / "good").glob("*.json"), key=lambda path: int(path.stem.rpartition("N")[2])
    )
    builds = [choices(replay.read(path)) for path in paths]
    draw = random.Random(seed)
    wanted = culprit(builds, draw)
    bad = [wanted in build and draw.random() >= rate for build in builds]
    check = [sys.executable, "check.py", "polygraphy_debug_replay.json", *wanted, str(rate), f"{seed} "]
    first_bad = bad.index(True)
    # A good build may have passed by mistake: bisecting says so, and another one is taken.
    goods = [number for number, fails in enumerate(bad) if not fails][:_ENDS]
    builds_made, right = max(first_bad, goods[0]) + 1, False
    for attempt, good in enumerate(goods):
        ends = ["--good", str(paths[good]), "--bad", str(paths[first_bad]), "--output", "result.json"]
        where = ["--artifacts-dir", f"proof{attempt}"]
        debug(
            directory,
            version,
            seed,
            "bisect-tactics",
            "convnet.onnx",
            "--fp16",
            *ends,
            *where,
            "--check",
            *check,
        )
        result = json.loads((directory / "result.json").read_text())
        builds_made += result["builds"]
        if result["culprits"]:
            named = {
                (layer["layer"], layer["bad"]["kernel"])
                for each in result["culprits"]
                for member in each["members"]
                for layer in member
            }
            right = result["outcome"] == "CONFIRMED" and named == {wanted}
            break
    return stock(builds, bad, wanted), builds_made, right


def main() -> int:
    """Print a line for each version and flake rate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6, help="hunts of each case")
    parser.add_argument(
        "--rates", type=float, nargs="+", default=[0.0, 0.3], help="how often the check passes by mistake"
    )
    options = parser.parse_args()
    print(f"convnet.onnx of example 01, seeds 1 to {options.runs}; at most {RANDOM_BUILDS} random builds")
    print(
        "TensorRT  passes by mistake | ours: builds, right | stock: builds where it names the culprit alone"
    )
    for version in ("8.6", "10.13", "11.4"):
        for rate in options.rates:
            hunts = []
            for seed in range(1, options.runs + 1):
                with tempfile.TemporaryDirectory() as name:
                    hunts.append(hunt(Path(name), version, seed, rate))
            ours = ", ".join(str(builds) for _, builds, _ in hunts)
            others = ", ".join("never" if builds is None else str(builds) for builds, _, _ in hunts)
            print(
                f"{version:>8}  {rate:>17.0%} | {ours}; {sum(right for *_, right in hunts)} of {len(hunts)} right | {others}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
