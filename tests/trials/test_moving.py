"""What is moved is at one place or the other, never at none, and never in the place of something else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from polygraphy_debug_ext.trials import moving


@pytest.fixture
def across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first rename fail as it does between file systems; there is only one here."""
    rename = Path.rename

    def fail_once(*_: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(Path, "rename", fail_once)


def make_tree(path: Path) -> str:
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "file").write_text("content")
    (path / "link").symlink_to("deep/file")
    return moving.digest(path)


def test_a_file_is_moved(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("content")
    moving.move(tmp_path / "a", tmp_path / "new" / "b")
    assert (tmp_path / "new" / "b").read_text() == "content"
    assert not (tmp_path / "a").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("new")
    (tmp_path / "b").write_text("old")
    with pytest.raises(FileExistsError):
        moving.move(tmp_path / "a", tmp_path / "b")
    assert [(tmp_path / name).read_text() for name in "ab"] == ["new", "old"]


@pytest.mark.usefixtures("across")
def test_a_directory_is_moved_across_file_systems(tmp_path: Path) -> None:
    digest = make_tree(tmp_path / "a")
    moving.move(tmp_path / "a", tmp_path / "new" / "b")
    assert moving.digest(tmp_path / "new" / "b") == digest
    assert not (tmp_path / "a").exists()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["b"]


@pytest.mark.usefixtures("across")
def test_a_copy_that_fails_leaves_the_source_whole_and_nothing_beside_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = make_tree(tmp_path / "a")

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(moving, "_flush", full)
    with pytest.raises(OSError, match="No space left"):
        moving.move(tmp_path / "a", tmp_path / "new" / "b")
    assert moving.digest(tmp_path / "a") == digest
    assert list((tmp_path / "new").iterdir()) == []


def test_copies_that_were_never_finished_are_removed(tmp_path: Path) -> None:
    make_tree(tmp_path / ".moving-1-x")
    (tmp_path / ".moving-2-y").write_text("half")
    (tmp_path / "kept").write_text("whole")
    moving.remove_leftovers(tmp_path)
    moving.remove_leftovers(tmp_path / "never made")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_digest_depends_on_names_contents_and_kinds(tmp_path: Path) -> None:
    digests = {make_tree(tmp_path / "a")}
    digests.add(make_tree(tmp_path / "b"))
    assert len(digests) == 1
    (tmp_path / "b" / "deep" / "file").write_text("other")
    digests.add(moving.digest(tmp_path / "b"))
    (tmp_path / "b" / "deep" / "file").rename(tmp_path / "b" / "deep" / "other")
    digests.add(moving.digest(tmp_path / "b"))
    digests.add(moving.digest(tmp_path / "b" / "link"))
    os.mkfifo(tmp_path / "pipe")
    digests.add(moving.digest(tmp_path / "pipe"))
    assert len(digests) == 5
