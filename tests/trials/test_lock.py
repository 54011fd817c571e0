"""One run at a time in a directory; a dead one holds nobody up."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import StorageError, UsageError
from polygraphy_debug_ext.trials.lock import NOTE, locked

if TYPE_CHECKING:
    from pathlib import Path

HOLDER = """
import sys, time
from pathlib import Path
from polygraphy_debug_ext.trials.lock import locked
with locked(Path(sys.argv[1]), ["polygraphy", "debug", "build"]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_told_who_holds_the_lock_and_a_dead_one_is_forgotten(tmp_path: Path) -> None:
    root = tmp_path / "new" / "directory"
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(root)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with (
        pytest.raises(UsageError, match=f"process {holder.pid} on .*: polygraphy debug build"),
        locked(root, []),
    ):
        pass
    holder.kill()
    holder.communicate()
    assert (root / NOTE).exists()
    with locked(root, ["me"]):
        assert f'"pid":{os.getpid()}' in (root / NOTE).read_text()
    assert not (root / NOTE).exists()


@pytest.mark.parametrize("note", [None, "", "{", '{"pid": "x"}'])
def test_a_holder_that_does_not_say_who_it_is_is_a_holder_all_the_same(
    tmp_path: Path, note: str | None
) -> None:
    with locked(tmp_path, []):
        (tmp_path / NOTE).unlink()
        if note is not None:
            (tmp_path / NOTE).write_text(note)
        with pytest.raises(UsageError, match="it does not say which"), locked(tmp_path, []):
            pass


def test_a_place_where_nothing_can_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written to"), locked(tmp_path / "file" / "below", []):
        pass
