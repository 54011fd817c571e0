"""What a short process is spared, and that nothing of it is left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from polygraphy_debug_ext.cli.short_process import numpy_without_threads, without_collector

IMPORT = """
import os
from polygraphy_debug_ext.cli.short_process import numpy_without_threads
with numpy_without_threads():
    import numpy
numpy.ones((300, 300)) @ numpy.ones((300, 300))
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells its threads so")
@pytest.mark.parametrize(("setting", "seen"), [(None, "1 None"), ("2", "2 2")])
def test_numpy_starts_no_threads_unless_the_user_wants_them(setting: str | None, seen: str) -> None:
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    if setting is not None:
        environment["OPENBLAS_NUM_THREADS"] = setting
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], capture_output=True, text=True, env=environment, check=True
    )
    if setting is not None and (os.cpu_count() or 1) < int(setting):
        seen = f"1 {setting}"
    assert done.stdout.strip() == seen


def test_an_error_within_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    with pytest.raises(KeyError), numpy_without_threads():
        raise KeyError(os.environ["OPENBLAS_NUM_THREADS"])
    assert "OPENBLAS_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_afterwards_as_it_was_before(*, enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with without_collector():
            during = gc.isenabled()
        assert (during, gc.isenabled()) == (False, enabled)
    finally:
        (gc.enable if before else gc.disable)()
