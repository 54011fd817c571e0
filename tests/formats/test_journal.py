"""Journals are read as they were written; what is something else, damaged or newer is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import journal as form

if TYPE_CHECKING:
    from pathlib import Path

START = form.RunStarted(
    version=form.VERSION,
    stamp="12-01-26_10-00-00",
    time="t",
    tool="x",
    command=["a"],
    directory="/d",
    settings={"fp16": True},
)
EVENTS: list[form.Event] = [
    START,
    form.Surroundings(values={"tensorrt": "10.13"}),
    form.TrialStarted(trial=0, time="t"),
    form.TrialBuilt(trial=0, seconds=1.0),
    form.TrialChecked(
        trial=0, repetition=0, seconds=0.5, verdict="good", reason="CHECK_EXIT_CODE", exit_code=0
    ),
    form.TrialJudged(
        trial=0,
        verdict="good",
        reason="CHECK_EXIT_CODE",
        seconds=1.5,
        placements=[form.Placement(source="a", destination="good/a_N0", digest="sha256:0")],
    ),
    form.TrialEnded(trial=0),
    form.TrialStarted(trial=1, time="t"),
    form.TrialBuilt(trial=1, seconds=1.0, failure="BUILD_CRASH", text="x", site=form.Site(layer="conv")),
]


def write(path: Path, *events: form.Event, after: bytes = b"") -> Path:
    path.write_bytes(b"".join(map(form.encode, events)) + after)
    return path


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = write(tmp_path / form.NAME, *EVENTS, START)
    journal = form.read(path)
    assert journal.size == path.stat().st_size
    first, second = journal.runs
    assert first.start == second.start == START
    assert first.surroundings == EVENTS[1]
    record = first.trials[0]
    assert [record.started, record.built, *record.checked, record.judged, record.ended] == EVENTS[2:7]
    assert first.trials[1].built == EVENTS[8]
    assert first.trials[1].judged is None
    assert second.trials == {}


@pytest.mark.parametrize("torn", [b"{", form.encode(EVENTS[2])[:-1], b"\0" * 100])
def test_a_line_that_was_never_finished_does_not_count(tmp_path: Path, torn: bytes) -> None:
    whole = write(tmp_path / "whole", *EVENTS)
    path = write(tmp_path / form.NAME, *EVENTS, after=torn)
    journal = form.read(path)
    assert journal == form.read(whole)
    assert journal.size == whole.stat().st_size


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / form.NAME, *EVENTS[:3], after=b'{"event":"built","trial":"zero"}\n')
    with pytest.raises(FormatError, match=r"trials\.jsonl: line 4: damaged .*trial"):
        form.read(path)


def test_an_event_of_a_trial_that_was_not_started_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / form.NAME, START, form.TrialEnded(trial=7))
    with pytest.raises(FormatError, match="line 2: an event of a trial that was not started"):
        form.read(path)


@pytest.mark.parametrize(
    "line",
    [
        form.encode(START).replace(b'"version":2', b'"version":3'),
        b'{"event":"run","version":3,"everything":"else"}\n',
    ],
)
def test_a_newer_version_is_named_with_what_to_do(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / form.NAME
    path.write_bytes(line)
    with pytest.raises(FormatError, match=r"a journal of version 3, but .* reads versions 1 to 2") as caught:
        form.read(path)
    assert not isinstance(caught.value, NotThisFormatError)
    assert "Use the polygraphy-debug-ext that wrote it" in caught.value.remedy


def test_a_journal_of_the_first_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / form.NAME
    path.write_bytes(form.encode(START).replace(b'"version":2', b'"version":1'))
    assert form.read(path).runs[0].factors == []


@pytest.mark.parametrize("content", [b"hello\n", b"[1]\n", b"{}\n", form.encode(EVENTS[6])])
def test_something_else_is_not_a_journal(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / form.NAME
    path.write_bytes(content)
    with pytest.raises(NotThisFormatError, match="not a journal of trials"):
        form.read(path)


def test_hostile_lines_are_refused(tmp_path: Path) -> None:
    deep = b'{"event":"run","settings":' + b"[" * 100_000 + b"\n"
    long = b'{"event":"started","trial":1,"time":"' + b"x" * form.LINE_LIMIT + b'"}\n'
    with pytest.raises(FormatError):
        form.read(write(tmp_path / "deep", START, after=deep))
    with pytest.raises(FormatError, match="longer than the limit"):
        form.read(write(tmp_path / "long", START, after=long))


def test_an_empty_journal_has_no_runs(tmp_path: Path) -> None:
    assert form.read(write(tmp_path / form.NAME)).runs == []
