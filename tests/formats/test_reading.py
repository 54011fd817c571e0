"""Files that nobody vouches for are read within bounds, or named."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import LINE_LIMIT, chunks, head, position, read_text_bytes

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


def test_chunks_are_whole_lines_whatever_their_size(tmp_path: Path) -> None:
    path = tmp_path / "text"
    text = b"".join(b"%d\n" % number for number in range(1000)) + b"no line feed"
    path.write_bytes(text)
    for size in (1, 7, 100, 10_000):
        found = list(chunks(path, size))
        assert b"".join(found) == text
        assert all(chunk.endswith(b"\n") for chunk in found[:-1])
        assert found[-1].endswith(b"no line feed")


def test_a_line_that_is_too_long_is_cut_and_the_next_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"first\n" + b"x" * (3 * LINE_LIMIT) + b"\nlast\n")
    lines = b"".join(chunks(path)).split(b"\n")
    assert [len(line) for line in lines] == [5, LINE_LIMIT, 4, 0]
    path.write_bytes(b"x" * (5 * LINE_LIMIT))
    assert [len(chunk) for chunk in chunks(path)] == [LINE_LIMIT + 1]


def test_the_head_is_the_beginning_or_all_there_is(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"\xef\xbb\xbfabc")
    assert head(path) == b"abc"
    assert head(path, 4) == b"a"
    path.write_bytes(b"")
    assert head(path) == b""
    assert list(chunks(path)) == []


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "text"
    path.write_text("abc", encoding=encoding)
    with pytest.raises(FormatError, match=f"{encoding.upper()} text, but UTF-8 is expected"):
        head(path)
    with pytest.raises(FormatError, match=f"{encoding.upper()} text"):
        list(chunks(path))


def test_streams_are_of_regular_files_only(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for read in (head, chunks):
        with pytest.raises(NotThisFormatError, match="not a regular file"):
            list(read(path))
        with pytest.raises(NotThisFormatError, match="not a regular file"):
            list(read(tmp_path))


def test_positions_count_lines_and_columns_from_one() -> None:
    assert position(b"ab\ncd", 0) == "line 1, column 1"
    assert position(b"ab\ncd", 4) == "line 2, column 2"
