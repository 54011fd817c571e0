"""A long run needs no more memory and no more descriptors than a short one, in any of its processes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import DebugBuild

TRIALS = 500

SAMPLE = """
import json, os
from pathlib import Path
parent = Path(f"/proc/{os.getppid()}")
children = [Path("/proc", pid) for listing in parent.glob("task/*/children") for pid in listing.read_text().split()]
worker, = [each for each in children if b"worker_main" in (each / "cmdline").read_bytes()]
def sample(process):
    memory, = [line.split()[1] for line in (process / "status").read_text().splitlines() if line.startswith("VmRSS")]
    return {"memory": int(memory), "descriptors": len(list((process / "fd").iterdir()))}
with open("samples", "a") as samples:
    print(json.dumps({"parent": sample(parent), "worker": sample(worker)}), file=samples)
"""


def test_memory_and_descriptors_stay_flat_over_500_trials(debug_build: DebugBuild) -> None:
    script = debug_build.script("sample.py", SAMPLE)
    every_hundredth = (
        f'[ $((POLYGRAPHY_DEBUG_ITERATION % 100)) != 99 ] || exec "{sys.executable}" -I -S {script}'
    )
    assert debug_build.run(["--until", str(TRIALS)], check=["sh", "-c", every_hundredth]) == 0
    assert f"Passed: {TRIALS}/{TRIALS}" in debug_build.output
    assert len(debug_build.filed()) == TRIALS
    samples = [json.loads(line) for line in (debug_build.directory / "samples").read_text().splitlines()]
    assert len(samples) == TRIALS // 100
    for process in ("parent", "worker"):
        early, late = samples[0][process], samples[-1][process]
        # In kilobytes: ten a trial would be 4000.
        assert late["memory"] - early["memory"] < 4000, f"{process}: {early} then {late}"
        assert late["descriptors"] == early["descriptors"], f"{process}: {early} then {late}"
    debug_build.assert_nothing_lost()
