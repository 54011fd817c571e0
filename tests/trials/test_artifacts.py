"""Artifacts are filed under Polygraphy's names, and settled after a crash at any moment of the filing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import StorageError
from polygraphy_debug_ext.formats.journal import Placement
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.trials.artifacts import Artifacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trials.conftest import Recorded

STAMP = "12-01-26_10-00-00"
FILED = f"sorted/good/replay_{STAMP}_N4.json"


@pytest.fixture
def artifacts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Artifacts:
    """One artifact, which is there."""
    monkeypatch.chdir(tmp_path)
    Path("replay.json").write_text("content")
    return Artifacts(root=Path("sorted"), stamp=STAMP, names=("replay.json",))


def test_names_are_those_of_polygraphy(artifacts: Artifacts, observer: Recorded) -> None:
    placements, missing = artifacts.place(4, Verdict.GOOD)
    artifacts.file(placements, observer)
    assert Path(FILED).read_text() == "content"
    assert missing == []
    assert observer.said == [f"moving replay.json to {FILED}"]
    assert artifacts.place(5, Verdict.BAD) == ([], ["replay.json"])


def test_what_cannot_be_filed_is_named_and_the_rest_is_filed(
    artifacts: Artifacts, observer: Recorded
) -> None:
    Path("other.log").write_text("log")
    both = Artifacts(root=artifacts.root, stamp=STAMP, names=("replay.json", "other.log"))
    placements, _ = both.place(4, Verdict.GOOD)
    Path(FILED).parent.mkdir(parents=True)
    Path(FILED).write_text("of somebody else")
    with pytest.raises(StorageError, match=r"replay\.json cannot be moved to .* \(File exists\)"):
        both.file(placements, observer)
    assert Path("replay.json").read_text() == "content"
    assert Path(FILED).read_text() == "of somebody else"
    assert Path(f"sorted/good/other_{STAMP}_N4.log").read_text() == "log"


def before_the_move() -> None:
    pass


def after_the_move() -> None:
    Path(FILED).parent.mkdir(parents=True)
    Path("replay.json").rename(FILED)


def between_copy_and_removal() -> None:
    Path(FILED).parent.mkdir(parents=True)
    Path(FILED).write_text("content")


@pytest.mark.parametrize("crash", [before_the_move, after_the_move, between_copy_and_removal])
def test_a_filing_that_was_cut_short_is_finished(
    artifacts: Artifacts, observer: Recorded, crash: Callable[[], None]
) -> None:
    placements, _ = artifacts.place(4, Verdict.GOOD)
    crash()
    artifacts.settle(4, placements, observer)
    assert Path(FILED).read_text() == "content"
    assert not Path("replay.json").exists()


def test_what_was_changed_meanwhile_is_not_filed_as_good(artifacts: Artifacts, observer: Recorded) -> None:
    placements, _ = artifacts.place(4, Verdict.GOOD)
    Path("replay.json").write_text("changed")
    artifacts.settle(4, placements, observer)
    assert not Path(FILED).exists()
    assert Path(f"sorted/unresolved/replay_{STAMP}_N4.json").read_text() == "changed"
    assert "was changed after its trial was judged" in observer.said[0]


def test_what_is_gone_is_told(artifacts: Artifacts, observer: Recorded) -> None:
    placements = [
        Placement(source="gone", destination=f"good/gone_{STAMP}_N4", digest="sha256:0"),
    ]
    artifacts.settle(4, placements, observer)
    assert "is neither there nor at" in observer.said[0]
