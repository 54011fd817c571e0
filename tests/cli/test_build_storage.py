"""Disks fill up and turn read-only: nothing that was learned is lost, and the message says what to do."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import DebugBuild


@contextmanager
def mounted(directory: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory."""
    directory.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)


def remount(directory: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", directory], check=True)


def test_an_artifacts_directory_that_is_read_only_is_refused_before_the_first_build(
    debug_build: DebugBuild,
) -> None:
    with mounted(debug_build.artifacts_dir, "ro"):
        assert debug_build.run(["--until", "2"]) == 1
        assert (
            "The artifacts directory sorted cannot be written to (Read-only file system)"
            in debug_build.output
        )
        assert "--artifacts-dir" in debug_build.output
        assert "Iteration 1" not in debug_build.output


def test_a_directory_that_is_read_only_when_something_is_to_be_filed_there_ends_the_run(
    debug_build: DebugBuild,
) -> None:
    debug_build.artifacts_dir.mkdir()
    check = ["sh", "-c", "exit $((POLYGRAPHY_DEBUG_ITERATION == 1))"]
    with mounted(debug_build.artifacts_dir / "bad", "ro"):
        assert debug_build.run(["--until", "3"], check=check) == 1
    assert "replay.json cannot be moved to sorted/bad/replay_" in debug_build.output
    assert "Read-only file system" in debug_build.output
    assert (debug_build.directory / "replay.json").exists()
    assert debug_build.run(["--until", "3", "--resume"], check=check) == 0
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "bad", "good"]
    debug_build.assert_nothing_lost()


def test_a_temporary_directory_that_is_read_only_does_no_harm(debug_build: DebugBuild) -> None:
    directory = debug_build.directory / "temporary"
    with mounted(directory, "ro"):
        for name in ("TMPDIR", "TEMP", "TMP"):
            debug_build.environment[name] = str(directory)
        assert debug_build.run(["--until", "2"]) == 0
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "good"]


def test_an_artifacts_directory_that_cannot_be_made_is_refused(debug_build: DebugBuild) -> None:
    debug_build.artifacts_dir.write_text("a file")
    assert debug_build.run(["--until", "2"]) == 1
    assert "The artifacts directory sorted cannot be written to" in debug_build.output


def test_an_artifact_that_cannot_be_moved_ends_the_run_and_it_goes_on_later(debug_build: DebugBuild) -> None:
    obstacle = debug_build.artifacts_dir / "bad"
    debug_build.artifacts_dir.mkdir()
    obstacle.write_text("in the way")
    check = ["sh", "-c", "exit $((POLYGRAPHY_DEBUG_ITERATION == 1))"]
    assert debug_build.run(["--until", "3"], check=check) == 1
    assert "replay.json cannot be moved to sorted/bad/replay_" in debug_build.output
    assert "it stays where it is" in debug_build.output
    assert "go on with --resume" in debug_build.output
    assert (debug_build.directory / "replay.json").exists()
    obstacle.unlink()
    assert debug_build.run(["--until", "3", "--resume"], check=check) == 0
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "bad", "good"]
    debug_build.assert_nothing_lost()


def test_an_artifact_for_which_there_is_no_room_stays_where_it_is(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "head -c 3000000 /dev/urandom > big.bin"]
    options = ["--until", "3", "--artifacts", "big.bin"]
    with mounted(debug_build.artifacts_dir, "size=4m"):
        assert debug_build.run(options, check=check) == 1
        assert "big.bin cannot be moved to sorted/good/big_" in debug_build.output
        assert "No space left on device" in debug_build.output
        assert "it stays where it is" in debug_build.output
        assert (debug_build.directory / "big.bin").stat().st_size == 3_000_000
        assert len(debug_build.filed()) == 1
        remount(debug_build.artifacts_dir, "size=20m")
        assert debug_build.run([*options, "--resume"], check=check) == 0
        assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "good", "good"]
        assert not (debug_build.directory / "big.bin").exists()
        debug_build.assert_nothing_lost()


def test_a_journal_for_which_there_is_no_room_ends_the_run_and_it_goes_on_later(
    debug_build: DebugBuild,
) -> None:
    # The first check leaves no room; the journal may still fit into the page that it has.
    check = ["sh", "-c", "head -c 9000000 /dev/zero > sorted/filler 2> /dev/null; true"]
    with mounted(debug_build.artifacts_dir, "size=2m"):
        assert debug_build.run(["--until", "40"], check=check) == 1
        assert "go on with --resume" in debug_build.output
        assert "No space left on device" in debug_build.output
        (debug_build.artifacts_dir / "filler").unlink()
        before = debug_build.table()
        remount(debug_build.artifacts_dir, "size=40m")
        debug_build.environment["FULL"] = "no"
        assert debug_build.run(["--until", "8", "--resume"], check=check) == 0
        after = debug_build.table()
        assert after[: len(before)] == before
        assert sum(verdict == "good" for _, verdict, _ in after) == 8
        debug_build.assert_nothing_lost()


def test_artifacts_are_filed_across_file_systems(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "mkdir -p out/deep && echo text > out/deep/file && ln -s deep/file out/link"]
    with mounted(debug_build.artifacts_dir, "size=10m"):
        assert os.stat(debug_build.artifacts_dir).st_dev != os.stat(debug_build.directory).st_dev  # noqa: PTH116
        options = ["--until", "2", "--artifacts", "replay.json", "out"]
        assert debug_build.run(options, check=check) == 0
        assert len(debug_build.filed()) == 4
        debug_build.assert_nothing_lost()
        assert not (debug_build.directory / "out").exists()


def test_an_artifact_that_lies_there_before_the_run_is_never_filed(debug_build: DebugBuild) -> None:
    stale = debug_build.directory / "replay.json"
    stale.write_text("stale")
    assert debug_build.run(["--until", "2"]) == 1
    assert "replay.json already exists" in debug_build.output
    assert stale.read_text() == "stale"
    assert debug_build.filed() == []


def test_artifacts_that_would_get_one_name_are_refused(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2", "--artifacts", "a/replay.json", "replay.json"]) == 1
    assert "would be filed under the same name" in debug_build.output
