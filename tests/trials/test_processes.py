"""Children are ended with all that they started; if we are killed, the guard does it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from polygraphy_debug_ext.trials.guarding import MARK, Guard
from polygraphy_debug_ext.trials.processes import Nursery

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = (sys.executable, "-I", "-S", "-c")


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(pid: int) -> None:
    end = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def pid_in(path: Path) -> int:
    end = time.monotonic() + 10
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.01)
    return int(path.read_text())


@pytest.mark.parametrize("session", [True, False])
def test_grandchildren_end_with_the_child(tmp_path: Path, session: bool) -> None:  # noqa: FBT001 - a parameter of the test
    program = (
        f"import subprocess, time; p = subprocess.Popen(['sleep', '60'], start_new_session={session})\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{p.pid}}\\n'); time.sleep(60)"
    )
    nursery = Nursery()
    process = nursery.start([*PYTHON, program])
    grandchild = pid_in(tmp_path / "pid")
    nursery.end(process)
    assert process.returncode == -signal.SIGKILL
    wait_until_gone(grandchild)


def test_orphans_are_found_after_their_parent_ended(tmp_path: Path) -> None:
    program = (
        "import subprocess; p = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(f'{{p.pid}}\\n')"
    )
    nursery = Nursery()
    process = nursery.start([*PYTHON, program])
    process.wait()
    nursery.end(process)
    wait_until_gone(pid_in(tmp_path / "pid"))


def test_what_was_there_before_is_left_alone() -> None:
    other = subprocess.Popen(["sleep", "60"])
    try:
        nursery = Nursery()
        nursery.end(nursery.start(["true"]))
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_all_can_be_ended_at_once() -> None:
    nursery = Nursery()
    children = [nursery.start(["sleep", "60"]) for _ in range(3)]
    nursery.end_all()
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 3


GUARDED = """
import os, signal, subprocess, sys
from polygraphy_debug_ext.trials.guarding import Guard
from polygraphy_debug_ext.trials.processes import Nursery
guard = Guard()
nursery = Nursery(guard.born, guard.gone)
child = nursery.start(["sh", "-c", "setsid sleep 61 & echo $! > pid; exec sleep 60"])
print(child.pid, guard._process.pid, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "sys.stdin.read()"])
def test_when_we_are_killed_the_guard_kills_our_children(tmp_path: Path, end: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", GUARDED.format(end=end)],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    child, guard = map(int, process.stdout.readline().split())
    escaped = pid_in(tmp_path / "pid")
    process.kill()
    process.communicate()
    for pid in (child, escaped, guard):
        wait_until_gone(pid)


def test_a_guard_that_is_done_leaves_no_mark() -> None:
    guard = Guard()
    assert MARK in os.environ
    guard.born(999_999_999)
    guard.gone(999_999_999)
    guard.close()
    assert MARK not in os.environ
    assert guard._process.returncode == 0


def test_a_guard_that_was_killed_holds_nobody_up() -> None:
    guard = Guard()
    guard._process.kill()
    guard._process.wait()
    guard.born(1)
    guard.close()
