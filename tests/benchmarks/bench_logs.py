"""Measures how fast verbose build logs are read, against reading the same bytes and against going through their lines.

    python tests/benchmarks/bench_logs.py [MEGABYTES]

The logs come from the simulator and from practice (tests/data/cases): one large build each, in which every copy of a log
has other names of layers and other keys (of a network of 50 such blocks), and the list of layers at the end. *runners*: TensorRT 8.6
and 10.13, timing lines of runners. *tables*: 11.4, autotuning tables of an editable timing cache, with about as many rows as those of
practice. *trtexec*: TensorRT 10, with all that trtexec prints. Rates are per second of processor time, the best of five rounds in
turns; peak memory is that of a process of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.formats import build_log

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT: Final = Path(__file__).parents[2]
CASE: Final = ROOT / "tests" / "data" / "cases" / "01-trt10-trtexec-verbose" / "build.log"
MODELS: Final = ROOT / "examples" / "01_debugging_flaky_trt_tactics" / "make_models.py"
POLYGRAPHY: Final = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
LIST: Final = b"Engine Layer Information:"
CHUNK: Final = 2**20
ROUNDS: Final = 5
BLOCKS: Final = 50
#: Tables of practice have up to 60 rows; those of the simulator about 8.
ROWS: Final = 5

PEAK: Final = """
import sys
from pathlib import Path
from polygraphy_debug_ext.formats import build_log
(build,) = build_log.read(Path(sys.argv[1])).builds
assert build.assignment is not None
[peak] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(peak)
"""


def logs_of_the_simulator(directory: Path, version: str) -> bytes:
    """The log of one build of the example's network, as `debug build` keeps it."""
    place = directory / version
    place.mkdir()
    subprocess.run([sys.executable, str(MODELS)], cwd=place, check=True)
    simulator = [
        sys.executable,
        "-m",
        "polygraphy_debug_ext.simulator",
        "--trt",
        version,
        "--seed",
        "1",
        "--",
    ]
    options = ["--fp16", "--save-tactics", "replay.json", "--artifacts-dir", "out", "--until=1"]
    command = [*simulator, *POLYGRAPHY, "debug", "build", "convnet.onnx", *options, "--check", "true"]
    subprocess.run(command, cwd=place, check=True, capture_output=True)
    [path] = (place / "out" / "logs").glob("*_N0_build.log")
    return path.read_bytes()


def write_large(path: Path, sources: Sequence[bytes], size: int) -> None:
    """One build of about `size` bytes: what the sources say before their lists again and again, and the list of the last one."""
    # Every row of a table several times, with other hashes.
    rows = re.compile(rb".*(\(foreignNode\) +\d+, .*, 0x)([0-9a-f]+)(,.*\n)")
    more = b"".join(rb"[X]  \g<1>%x\g<2>\g<3>" % copy for copy in range(1, ROWS))
    sources = [rows.sub(rb"\g<0>" + more, source) for source in sources]
    ends = [source.rindex(b"\n", 0, source.index(LIST)) + 1 for source in sources]
    bodies = [
        source[:end].replace(b"&&&& RUNNING", b"[I]") for source, end in zip(sources, ends, strict=True)
    ]
    written = number = 0
    with path.open("wb") as file:
        while written < size:
            for body in bodies:
                text = re.sub(rb"(key: 0x)[0-9a-f]{8}", rb"\g<1>%08x" % (number % BLOCKS), body)
                text = re.sub(rb"(conv|pool|fc)(?=\d|\(| )", rb"block%d/\1" % (number % BLOCKS), text)
                written += file.write(text)
            number += 1
        file.write(sources[-1][ends[-1] :])


def read_raw(path: Path) -> None:
    """Read the bytes, and do nothing with them."""
    with path.open("rb", buffering=0) as file:
        while file.read(CHUNK):
            pass


def read_lines(path: Path) -> None:
    """Go through the lines, and do nothing with them."""
    with path.open("rb") as file:
        for _ in file:
            pass


def read_log(path: Path) -> None:
    """Read it as a build log."""
    (build,) = build_log.read(path).builds
    assert build.assignment is not None


WAYS: Final[dict[str, Callable[[Path], None]]] = {
    "raw read": read_raw,
    "for line in file": read_lines,
    "build_log.read": read_log,
}


def measure(path: Path) -> dict[str, float]:
    """Seconds of processor time by way, the best of several rounds."""
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            started = time.process_time()
            way(path)
            best[name] = min(best[name], time.process_time() - started)
    return best


def peak(path: Path) -> float:
    """Peak memory in MiB of a process that reads a log."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def main() -> None:
    """Print the table."""
    size = int(sys.argv[1] if len(sys.argv) > 1 else 256) * 2**20
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        old, new, newest = (logs_of_the_simulator(directory, version) for version in ("8.6", "10.13", "11.4"))
        kinds = {"runners": [old, new], "tables": [newest], "trtexec": [CASE.read_bytes()]}
        for kind, sources in kinds.items():
            path, small = directory / "large.log", directory / "small.log"
            write_large(path, sources, size)
            write_large(small, sources, 2**20)
            megabytes = path.stat().st_size / 2**20
            print(f"{kind}: {megabytes:.0f} MiB")
            seconds = measure(path)
            for way, taken in seconds.items():
                ratio = taken / seconds["for line in file"]
                print(
                    f"    {way:18} {megabytes / taken:6.0f} MiB/s   {ratio:5.2f} times the time of the line loop"
                )
            print(f"    peak memory        {peak(path):6.1f} MiB, for a log of 1 MiB {peak(small):.1f} MiB")


if __name__ == "__main__":
    main()
