"""Files that nobody vouches for are read within bounds, or named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import position, read_text_bytes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"gone\.json: cannot be read \(No such file"):
        read_text_bytes(tmp_path / "gone.json")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "big"
    path.write_bytes(b"x" * 11)
    with pytest.raises(FormatError, match="11 bytes, more than the limit of 10"):
        read_text_bytes(path, limit=10)
    assert read_text_bytes(path, limit=11) == b"x" * 11


def test_a_pipe_that_nobody_writes_to_does_not_hang_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(NotThisFormatError, match="not a regular file"):
        read_text_bytes(path)


def test_a_device_and_a_directory_are_not_read(tmp_path: Path) -> None:
    for path in ("/dev/zero", tmp_path):
        with pytest.raises(FormatError, match=r"not a regular file|Is a directory"):
            read_text_bytes(tmp_path / path)


def test_positions_count_lines_and_columns_from_one() -> None:
    assert position(b"ab\ncd", 0) == "line 1, column 1"
    assert position(b"ab\ncd", 4) == "line 2, column 2"
