"""Whatever goes wrong in a build or a check costs one trial: it is judged for what it is, and the run goes on."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import DebugBuild

PYTHON = [sys.executable, "-I", "-S", "-c"]
PLACE = "layer conv2 + relu2, runner CaskConvolution"


def good(*trials: int) -> list[tuple[int, str, str]]:
    return [(trial, "good", "CHECK_EXIT_CODE") for trial in trials]


def unresolved(reason: str, *trials: int) -> list[tuple[int, str, str]]:
    return [(trial, "unresolved", reason) for trial in trials]


def assert_consistent(build: DebugBuild) -> None:
    """The log, the journal and the directories say the same."""
    assert [(trial, verdict) for trial, verdict, _ in build.table()] == build.shown()
    build.assert_nothing_lost()
    assert not (build.directory / "replay.json").exists()
    assert not (build.directory / "polygraphy_debug.engine").exists()


def test_a_run_without_faults_files_everything_as_good(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "3"]) == 0
    assert debug_build.table() == good(0, 1, 2)
    assert "Finished 3 iteration(s) | Passed: 3/3 | Pass Rate: 100.0%" in debug_build.output
    assert len(debug_build.filed()) == 3
    assert_consistent(debug_build)


def test_a_build_error_names_the_layer_for_which_nothing_was_left(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], faults=["*@conv2 + relu2:build-error"]) == 0
    assert debug_build.table() == unresolved("BUILD_ERROR", 0, 1)
    assert f"It happened at: {PLACE}, tactic 0x" in debug_build.output
    assert "0 good, 0 bad, 2 unresolved" in debug_build.output
    site = debug_build.records()[0].built.site  # type: ignore[union-attr]
    assert site is not None
    assert site.layer == "conv2 + relu2"
    assert_consistent(debug_build)


def test_a_build_that_segfaults_costs_one_trial_each(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], faults=["*@conv2 + relu2:build-crash"]) == 0
    assert debug_build.table() == unresolved("BUILD_CRASH", 0, 1)
    assert "signal 11 (SIGSEGV)" in debug_build.output
    assert f"It happened at: {PLACE}" in debug_build.output
    assert_consistent(debug_build)


def test_a_build_failure_counts_as_bad_where_that_is_wanted(debug_build: DebugBuild) -> None:
    faults = ["*@conv2 + relu2:build-crash"]
    assert debug_build.run(["--until", "bad", "--build-failure", "bad"], faults=faults) == 0
    assert debug_build.table() == [(0, "bad", "BUILD_CRASH")]
    assert "Pass Rate: 0.0%" in debug_build.output
    assert_consistent(debug_build)


def test_a_builder_that_is_killed_costs_one_trial(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder("if trial == 1: os.kill(os.getpid(), signal.SIGKILL)")
    assert debug_build.run(["--until", "3", *hook]) == 0
    assert debug_build.table() == [*good(0), *unresolved("BUILD_CRASH", 1), *good(2)]
    assert "signal 9 (SIGKILL), as when memory runs out" in debug_build.output
    assert_consistent(debug_build)


def test_a_builder_that_exits_costs_one_trial(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder("if trial == 0: os._exit(3)")
    assert debug_build.run(["--until", "2", *hook]) == 0
    assert debug_build.table() == [*unresolved("BUILD_CRASH", 0), *good(1)]
    assert "the build process died: exit status 3" in debug_build.output
    assert_consistent(debug_build)


def test_a_build_that_hangs_is_ended_in_time(debug_build: DebugBuild) -> None:
    options = ["--until", "1", "--build-timeout", "1"]
    assert debug_build.run(options, faults=["*@conv2 + relu2:build-hang"]) == 0
    assert debug_build.table() == unresolved("BUILD_TIMEOUT", 0)
    assert f"It happened at: {PLACE}" in debug_build.output
    assert_consistent(debug_build)


def test_a_hanging_build_takes_its_children_with_it(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder(
        "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\ntime.sleep(600)"
    )
    assert debug_build.run(["--until", "1", "--build-timeout", "1", *hook]) == 0
    assert debug_build.table() == unresolved("BUILD_TIMEOUT", 0)
    debug_build.assert_nothing_runs()


def test_a_cuda_error_that_sticks_is_named_where_it_came_first(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], faults=["*@conv2 + relu2:sticky"]) == 0
    assert debug_build.table() == unresolved("BUILD_ERROR", 0, 1)
    assert f"It happened at: {PLACE}, tactic 0x" in debug_build.output
    assert_consistent(debug_build)


def test_after_a_failed_build_the_next_one_is_in_a_fresh_process(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder(
        """
        if trial == 1:
            poisoned.append(trial)
        if poisoned:
            raise RuntimeError("an illegal memory access was encountered")
        """
    )
    assert debug_build.run(["--until", "4", *hook]) == 0
    assert debug_build.table() == [*good(0), *unresolved("BUILD_ERROR", 1), *good(2, 3)]
    assert "an illegal memory access was encountered" in debug_build.output
    assert_consistent(debug_build)


def test_garbage_on_the_output_of_the_builder_goes_to_its_log(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder(
        """
        os.write(1, bytes(range(256)) * 100)
        os.write(1, b'\\n{"type":"failed","problem":"a lie","remedy":""}\\n')
        os.write(2, b'\\xff\\xfe garbage')
        """
    )
    assert debug_build.run(["--until", "2", *hook]) == 0
    assert debug_build.table() == good(0, 1)
    logs = sorted((debug_build.artifacts_dir / "logs").glob("*_build.log"))
    assert [b"a lie" in log.read_bytes() for log in logs] == [True, True]
    assert_consistent(debug_build)


@pytest.mark.parametrize("missing", ["no-such-command", "./no/such/command"])
def test_a_check_that_is_not_there_is_refused_before_the_first_build(
    debug_build: DebugBuild, missing: str
) -> None:
    assert debug_build.run(["--until", "2"], check=[missing]) == 1
    assert f"The check command {missing} was not found" in debug_build.output
    assert "Iteration 1" not in debug_build.output


def test_a_check_that_is_not_executable_is_refused_before_the_first_build(debug_build: DebugBuild) -> None:
    script = debug_build.script("check.sh", "exit 0\n")
    assert debug_build.run(["--until", "2"], check=[script]) == 1
    assert f"The check command {script} is not executable" in debug_build.output
    assert "Iteration 1" not in debug_build.output


def test_a_check_that_no_kernel_can_start_ends_the_run(debug_build: DebugBuild) -> None:
    script = Path(debug_build.script("check", "neither a program nor a script\n"))
    script.chmod(0o755)
    assert debug_build.run(["--until", "5"], check=["./check"]) == 1
    assert "The check command could not be started" in debug_build.output
    assert debug_build.table() == unresolved("CHECK_NOT_RUN", 0)
    debug_build.assert_nothing_lost()


def test_a_check_that_is_killed_by_a_signal_fails_the_trial(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], check=["sh", "-c", "kill -SEGV $$"]) == 0
    assert debug_build.table() == [(0, "bad", "CHECK_SIGNAL"), (1, "bad", "CHECK_SIGNAL")]
    assert debug_build.records()[0].judged.detail == "signal 11 (SIGSEGV)"  # type: ignore[union-attr]
    assert_consistent(debug_build)


def test_a_check_that_hangs_fails_and_leaves_nothing(debug_build: DebugBuild) -> None:
    check = [*PYTHON, "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True).wait()"]
    assert debug_build.run(["--until", "1", "--check-timeout", "0.5"], check=check) == 0
    assert debug_build.table() == [(0, "bad", "CHECK_TIMEOUT")]
    assert_consistent(debug_build)
    debug_build.assert_nothing_runs()


def test_a_check_whose_grandchild_holds_the_pipe_is_over_when_it_exits(debug_build: DebugBuild) -> None:
    check = [*PYTHON, "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"]
    assert debug_build.run(["--until", "2"], check=check) == 0
    assert debug_build.table() == good(0, 1)
    assert_consistent(debug_build)
    debug_build.assert_nothing_runs()


def test_a_flood_of_output_is_neither_kept_in_memory_nor_on_the_disk(debug_build: DebugBuild) -> None:
    flood = """
        import os, sys
        block = b"x" * 65536 + b"\\n"
        for _ in range(3200):
            os.write(1, block)
        print("the end")
        sys.exit(1)
    """
    check = [sys.executable, "-I", "-S", debug_build.script("flood.py", flood)]
    # A process of its own measures: to the kernel, a child has once been as large as the one that started it.
    measure = """if True:
        import os, subprocess, sys
        _, status, usage = os.wait4(subprocess.Popen(sys.argv[1:]).pid, 0)
        print("peak", usage.ru_maxrss)
        os._exit(os.waitstatus_to_exitcode(status))
    """
    command = debug_build.command(["--until", "1"], check=check)
    assert debug_build.finish(debug_build.start([*PYTHON[:-1], "-u", "-c", measure, *command])) == 0
    assert debug_build.table() == [(0, "bad", "CHECK_EXIT_CODE")]
    assert "bytes left out ...]" in debug_build.output
    assert "the end" in debug_build.output
    (log,) = (debug_build.artifacts_dir / "logs").glob("*_check.log")
    assert log.stat().st_size < 20 * 2**20
    # It has about 60 MB without the flood; in kilobytes.
    (peak,) = re.findall(r"^peak (\d+)$", debug_build.output, re.MULTILINE)
    assert int(peak) < 150 * 2**10
    assert_consistent(debug_build)


def test_output_that_is_not_utf8_is_shown_with_replacements(debug_build: DebugBuild) -> None:
    check = [*PYTHON, r"import os, sys; os.write(1, b'\xff\xfe caf\xe9'); sys.exit(1)"]
    assert debug_build.run(["--until", "1"], check=check) == 0
    assert debug_build.table() == [(0, "bad", "CHECK_EXIT_CODE")]
    assert "\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER} caf" in debug_build.output
    (log,) = (debug_build.artifacts_dir / "logs").glob("*_check.log")
    assert b"\xff\xfe caf\xe9" in log.read_bytes()
    assert_consistent(debug_build)


def test_a_check_may_delete_the_engine(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], check=["rm", "{engine}"]) == 0
    assert debug_build.table() == good(0, 1)
    assert_consistent(debug_build)


def test_a_check_that_deletes_an_artifact_is_told_so(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"], check=["rm", "replay.json"]) == 0
    assert debug_build.table() == good(0, 1)
    assert debug_build.output.count("Artifact: replay.json does not exist, skipping.") == 2
    assert debug_build.filed() == []
    assert_consistent(debug_build)


def test_an_artifact_that_is_never_there_is_named_each_time(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2", "--artifacts", "replay.json", "nothing.log"]) == 0
    assert debug_build.output.count("Artifact: nothing.log does not exist, skipping.") == 2
    assert len(debug_build.filed()) == 2
    assert_consistent(debug_build)


def test_a_directory_can_be_an_artifact(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "mkdir -p out/deep && echo $POLYGRAPHY_DEBUG_ITERATION > out/deep/file"]
    assert debug_build.run(["--until", "2", "--artifacts", "out/", "replay.json"], check=check) == 0
    directories = [path for path in debug_build.filed() if "/out_" in path]
    assert len(directories) == 2
    contents = [(debug_build.artifacts_dir / path / "deep" / "file").read_text() for path in directories]
    assert contents == ["0\n", "1\n"]
    assert_consistent(debug_build)


def test_an_unwritable_temporary_directory_does_no_harm(debug_build: DebugBuild) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        debug_build.environment[name] = "/nonexistent"
    assert debug_build.run(["--until", "2"]) == 0
    assert debug_build.table() == good(0, 1)
    assert_consistent(debug_build)


def test_a_clock_that_goes_backwards_does_no_harm(debug_build: DebugBuild) -> None:
    backwards = (
        "import time\nreal = time.time\nbegun = real()\n"
        "time.time = lambda: begun - 100 * (real() - begun)\n"
        "time.time_ns = lambda: int(time.time() * 1e9)\n"
    )
    assert debug_build.run(["--until", "3"], before=backwards) == 0
    assert debug_build.run(["--until", "2"], before=backwards) == 0
    assert debug_build.table() == [*good(0, 1, 2), *good(0, 1)]
    assert all(record.judged and record.judged.seconds > 0 for record in debug_build.records())
    debug_build.assert_nothing_lost()
