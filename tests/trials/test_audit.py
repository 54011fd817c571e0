"""Evidence that is not what the runs filed is flagged; without a journal, nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.trials import moving
from polygraphy_debug_ext.trials.audit import Audit, audit

if TYPE_CHECKING:
    from pathlib import Path

STAMP = "12-01-26_10-00-00"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A run of three trials, good, bad and unresolved, each of which left a replay and an engine."""
    events: list[form.Event] = [
        form.RunStarted(
            version=form.VERSION, stamp=STAMP, time="", tool="", command=[], directory="", settings={}
        )
    ]
    for index, verdict in enumerate(["good", "bad", "unresolved"]):
        (tmp_path / verdict).mkdir()
        placements = []
        for source in ("replay.json", "model.engine"):
            base, extension = source.split(".")
            name = f"{verdict}/{base}_{STAMP}_N{index}.{extension}"
            (tmp_path / name).write_text(f"{source} of {index}")
            digest = moving.digest(tmp_path / name)
            placements.append(form.Placement(source=source, destination=name, digest=digest))
        events += [
            form.TrialStarted(trial=index, time=""),
            form.TrialJudged(
                trial=index, verdict=verdict, reason="CHECK_EXIT_CODE", seconds=1, placements=placements
            ),
            form.TrialEnded(trial=index),
        ]
    (tmp_path / form.NAME).write_bytes(b"".join(form.encode(event) for event in events))
    return tmp_path


def replays(root: Path) -> list[Path]:
    return sorted([*root.glob("good/replay*"), *root.glob("bad/replay*")])


def test_what_is_as_it_was_filed_draws_no_complaint(root: Path) -> None:
    assert audit(root, replays(root)) == Audit(unresolved=1)


def test_without_a_journal_there_is_nothing_to_hold_it_against(root: Path) -> None:
    (root / form.NAME).unlink()
    assert audit(root, replays(root)) is None


def test_a_replay_that_was_changed_is_named(root: Path) -> None:
    (changed,) = root.glob("good/replay*")
    changed.write_text("other")
    audited = audit(root, replays(root))
    assert audited is not None
    assert audited.complaints == (f"{changed}: was changed after it was filed",)


def test_a_replay_under_another_verdict_is_named_with_its_own(root: Path) -> None:
    (filed,) = root.glob("bad/replay*")
    moved = filed.rename(root / "good" / filed.name)
    audited = audit(root, replays(root))
    assert audited is not None
    assert f"{moved}: was filed as bad/{filed.name}" in audited.complaints


def test_a_replay_that_is_gone_is_named_an_engine_is_not(root: Path) -> None:
    for path in root.glob("good/*"):
        path.unlink()
    audited = audit(root, replays(root))
    assert audited is not None
    assert audited.complaints == (f"{root}/good/replay_{STAMP}_N0.json: was filed there, and is gone",)


def test_files_that_no_run_filed_are_passed_over(root: Path) -> None:
    own = root / "good" / "mine.json"
    own.write_text("by hand")
    elsewhere = root.parent / "elsewhere.json"
    assert audit(root, [*replays(root), own, elsewhere]) == Audit(unresolved=1)


def test_a_journal_that_cannot_be_read_is_an_error(root: Path) -> None:
    with (root / form.NAME).open("ab") as file:
        file.write(b"nonsense\n")
    with pytest.raises(FormatError, match="damaged"):
        audit(root, replays(root))
