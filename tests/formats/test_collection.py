"""A directory gives all its replays; what is something else is kept with the reason, what is damaged is an error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats.collection import collect

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeAssignment, WriteReplays


def test_replays_are_found_at_any_depth_in_the_order_of_their_paths(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "b", assignment(conv=1))
    write_replays(tmp_path / "a" / "deep", assignment(conv=2), assignment(conv=3))
    found = collect(tmp_path).assignments
    assert [each.layers["conv"].tactic for each in found] == [2, 3, 1]


def test_other_files_are_left_out_with_the_reason(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path, assignment(conv=1))
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "check.log").touch()
    os.mkfifo(tmp_path / "pipe")
    collection = collect(tmp_path)
    assert len(collection.assignments) == 1
    assert {each.path.name: each.reason for each in collection.skipped} == {
        "check.log": "not a tactic replay (not JSON)",
        "notes.txt": "not a tactic replay (not JSON)",
        "pipe": "not a regular file",
    }


def test_hidden_files_are_passed_over_and_links_to_directories_not_followed(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "real", assignment(conv=1))
    write_replays(tmp_path / ".hidden", assignment(conv=2))
    (tmp_path / ".gitkeep").touch()
    (tmp_path / "loop").symlink_to(tmp_path)
    collection = collect(tmp_path)
    assert len(collection.assignments) == 1
    assert not collection.skipped


def test_every_damaged_replay_is_named(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path, assignment(conv=1))
    for name in ("x.json", "y.json"):
        (tmp_path / name).write_text('{"replay": {"conv')
    with pytest.raises(
        FormatError, match=r"2 files cannot be used\n    x.json: truncated.*\n    y.json: truncated"
    ):
        collect(tmp_path)


def test_one_file_that_is_named_must_be_a_replay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(FormatError, match=r"notes\.txt: not a tactic replay"):
        collect(tmp_path / "notes.txt")
