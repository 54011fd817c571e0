"""A file is written whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats.writing import write_atomically

if TYPE_CHECKING:
    from pathlib import Path


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "replay.json"
    path.write_bytes(b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    # A disk that is full at the flush cannot be had without a mount of its own.
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
