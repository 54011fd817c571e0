"""A run that was interrupted, killed, or stopped by a full disk goes on where it was."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import journal

if TYPE_CHECKING:
    from tests.cli.conftest import DebugBuild

#: A check that says that it runs, and does not end.
HANGING = ("sh", "-c", "touch running; sleep 600")
#: A check that hangs in the second trial, the first time.
HANGING_ONCE = (
    "sh",
    "-c",
    "[ $POLYGRAPHY_DEBUG_ITERATION != 1 ] || [ -e running ] || { touch running; sleep 600; }",
)


def interrupt(build: DebugBuild, number: signal.Signals, check: tuple[str, ...]) -> int:
    """Start a run, and send it a signal as soon as its check runs; return the exit status."""
    process = build.start(build.command(["--until", "3"], check=check))
    build.wait_for((build.directory / "running").exists)
    process.send_signal(number)
    return build.finish(process)


@pytest.mark.parametrize(
    ("number", "status", "text"),
    [(signal.SIGINT, 130, "interrupted by SIGINT"), (signal.SIGTERM, 143, "terminated by SIGTERM")],
)
def test_a_signal_ends_the_trial_in_hand_and_the_run_can_go_on(
    debug_build: DebugBuild, number: signal.Signals, status: int, text: str
) -> None:
    assert interrupt(debug_build, number, HANGING_ONCE) == status
    debug_build.assert_nothing_runs()
    assert "Finished 1 iteration(s) | Passed: 1/1" in debug_build.output
    assert text in debug_build.output
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "unresolved"]
    debug_build.assert_nothing_lost()
    assert not (debug_build.directory / "replay.json").exists()
    assert not (debug_build.directory / "polygraphy_debug.engine").exists()

    assert debug_build.run(["--until", "3", "--resume"], check=HANGING_ONCE) == 0
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "unresolved", "good", "good"]
    assert "Finished 3 iteration(s) | Passed: 3/3" in debug_build.output
    debug_build.assert_nothing_lost()


def test_a_signal_ends_a_build_that_hangs(debug_build: DebugBuild) -> None:
    hook = debug_build.in_builder("open('running', 'w').close(); time.sleep(600)")
    process = debug_build.start(debug_build.command(["--until", "3", *hook]))
    debug_build.wait_for((debug_build.directory / "running").exists)
    process.send_signal(signal.SIGINT)
    assert debug_build.finish(process) == 130
    debug_build.assert_nothing_runs()
    assert debug_build.table() == [(0, "unresolved", "INTERRUPTED")]


def test_a_signal_while_the_network_is_loaded_ends_the_run(debug_build: DebugBuild) -> None:
    debug_build.script(
        "slow.py", "import time\ndef postprocess(network):\n    open('running', 'w')\n    time.sleep(600)\n"
    )
    options = ["--until", "3", "--trt-network-postprocess-script", "slow.py"]
    process = debug_build.start(debug_build.command(options))
    debug_build.wait_for((debug_build.directory / "running").exists)
    process.send_signal(signal.SIGTERM)
    assert debug_build.finish(process) == 143
    assert "Interrupted by SIGTERM before there was a trial" in debug_build.output
    assert debug_build.table() == []


def test_a_second_signal_stops_at_once(debug_build: DebugBuild) -> None:
    # The first one is never looked at, because the process does not get to it.
    before = (
        "from polygraphy_debug_ext.trials.interruption import Interruption\n"
        "Interruption.check = lambda self: None\n"
    )
    process = debug_build.start(debug_build.command(["--until", "3"], check=HANGING, before=before))
    debug_build.wait_for((debug_build.directory / "running").exists)
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert debug_build.finish(process) == 130
    debug_build.assert_nothing_runs()
    assert debug_build.table() == []


def test_when_the_process_is_killed_nothing_runs_on_and_the_run_can_go_on(debug_build: DebugBuild) -> None:
    process = debug_build.start(debug_build.command(["--until", "2"], check=HANGING))
    debug_build.wait_for((debug_build.directory / "running").exists)
    debug_build.kill(process)
    debug_build.assert_nothing_runs()
    assert (debug_build.directory / "replay.json").exists()

    short = ("true",)
    assert debug_build.run(["--until", "2", "--resume"], check=short) == 1
    assert "check: ['sh', '-c'," in debug_build.output
    process = debug_build.start(debug_build.command(["--until", "2", "--resume"], check=HANGING))
    debug_build.wait_for(lambda: len(debug_build.table()) == 1)
    debug_build.kill(process)
    assert debug_build.table() == [(0, "unresolved", "INTERRUPTED")]
    assert len(debug_build.filed()) == 1


@pytest.mark.timeout(600)  # twenty runs in a row, on a machine that may be busy
def test_twenty_kills_at_random_moments_lose_nothing(debug_build: DebugBuild) -> None:
    chance = random.Random(20)
    options, wanted = ["--until", "400"], 0
    check = ["sh", "-c", "exit $((POLYGRAPHY_DEBUG_ITERATION % 3 == 0))"]
    for number in range(20):
        resumed = [*options, "--resume"] if number else options
        before, events = (debug_build.table() if number else []), _events(debug_build)
        process = debug_build.start(debug_build.command(resumed, check=check))
        # The first event comes before the network is loaded, the next ones are those of trials.
        some = events + chance.choice([0, 1, 2])
        debug_build.wait_for(lambda count=some: _events(debug_build) > count)  # type: ignore[misc]
        time.sleep(chance.uniform(0.0, 0.2))
        debug_build.kill(process)
        debug_build.assert_nothing_runs()
        after = debug_build.table()
        assert after[: len(before)] == before
        wanted = len(after)
    assert debug_build.run(["--until", str(wanted + 2), "--resume"], check=check) == 0
    table = debug_build.table()
    assert sum(reason != "INTERRUPTED" for _, _, reason in table) == wanted + 2
    for trial, verdict, reason in table:
        assert reason == "INTERRUPTED" or verdict == ("bad" if trial % 3 == 0 else "good")
    debug_build.assert_nothing_lost()


def _events(build: DebugBuild) -> int:
    path = build.artifacts_dir / journal.NAME
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_a_torn_line_of_the_journal_is_repaired_by_the_run_that_goes_on(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2"]) == 0
    path = debug_build.artifacts_dir / journal.NAME
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event":"started","trial":2,"ti')
    before = debug_build.table()
    assert debug_build.run(["--until", "3", "--resume"]) == 0
    assert path.read_bytes().startswith(whole + b'{"event":"resumed"')
    assert debug_build.table()[:2] == before
    assert len(debug_build.table()) == 3
    debug_build.assert_nothing_lost()


def test_a_run_that_is_finished_can_be_made_longer(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1"]) == 0
    assert debug_build.run(["--until", "3", "--resume"]) == 0
    assert len(debug_build.table()) == 3
    assert "Finished 3 iteration(s) | Passed: 3/3" in debug_build.output
    assert debug_build.run(["--until", "3", "--resume"]) == 0
    assert len(debug_build.table()) == 3


def test_an_engine_that_is_not_of_the_run_is_not_overwritten(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1"]) == 0
    engine = debug_build.directory / "polygraphy_debug.engine"
    for options in (["--until", "2", "--resume"], ["--until", "1"]):
        engine.write_text("somebody's")
        assert debug_build.run(options) == 1
        assert "polygraphy_debug.engine already exists, refusing to overwrite" in debug_build.output
        assert engine.read_text() == "somebody's"


def test_engines_that_are_to_stay_stay(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2", "--no-remove-intermediate"]) == 0
    assert (debug_build.directory / "polygraphy_debug.engine").exists()
    assert debug_build.run(["--until", "3", "--no-remove-intermediate", "--resume"]) == 0
    assert len(debug_build.table()) == 3


def test_there_must_be_a_run_to_go_on_with(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1", "--resume"]) == 1
    assert "There is no run in sorted to go on with" in debug_build.output


def test_a_run_with_other_options_does_not_go_on(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1"]) == 0
    assert debug_build.run(["--until", "3", "--resume", "--tf32", "--check-timeout", "5"]) == 1
    assert "tf32: not given then, True now" in debug_build.output
    assert "check_timeout: not given then, 5.0 now" in debug_build.output


def test_another_model_does_not_go_on(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1"]) == 0
    with (debug_build.directory / "conv.onnx").open("ab") as model:
        model.write(b"\x1a\x00")
    assert debug_build.run(["--until", "3", "--resume"]) == 1
    assert "model_digest" in debug_build.output


def test_a_second_run_in_the_same_directory_is_refused_and_told_who_is_there(debug_build: DebugBuild) -> None:
    first = debug_build.start(debug_build.command(["--until", "1"], check=HANGING))
    debug_build.wait_for((debug_build.directory / "running").exists)
    second = debug_build.run(["--until", "1", "--iter-artifact", "other.engine", "--artifacts", "other"])
    assert second == 1
    assert f"Another run is using sorted: process {first.pid} on " in debug_build.output
    debug_build.kill(first)
    # The lock of a process that died holds nobody up.
    assert debug_build.run(["--until", "1", "--resume"], check=("true",)) == 1
    assert "Another run" not in debug_build.output
