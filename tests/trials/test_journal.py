"""An event is in the file when `append` returns; what was half written is cut off."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import StorageError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.trials.journal import DiskJournal, MemoryJournal

if TYPE_CHECKING:
    from pathlib import Path

EVENT = form.TrialEnded(trial=1)


def test_disk_and_memory_hold_the_same_events(tmp_path: Path) -> None:
    disk, memory = DiskJournal(tmp_path / "trials.jsonl"), MemoryJournal()
    events: list[form.Event] = [
        form.TrialStarted(trial=0, time="t"),
        form.TrialBuilt(trial=0, seconds=1.5),
        EVENT,
    ]
    for event in events:
        disk.append(event)
        memory.append(event)
        # Without closing it: the event counts already.
        lines = (tmp_path / "trials.jsonl").read_bytes().splitlines()
        assert [form._DECODER.decode(line) for line in lines] == memory.events
    disk.close()


def test_what_is_beyond_the_last_event_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "trials.jsonl"
    path.write_bytes(form.encode(EVENT) + b'{"torn')
    journal = DiskJournal(path, len(form.encode(EVENT)))
    journal.append(EVENT)
    journal.close()
    assert path.read_bytes() == 2 * form.encode(EVENT)


def test_an_event_that_does_not_fit_leaves_no_half_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trials.jsonl"
    journal = DiskJournal(path)
    journal.append(EVENT)
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) > 10:
            return write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left on device"):
        journal.append(EVENT)
    monkeypatch.undo()
    assert path.read_bytes() == form.encode(EVENT)
    journal.append(EVENT)
    journal.close()
    assert path.read_bytes() == 2 * form.encode(EVENT)
