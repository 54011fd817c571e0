"""A directory gives all its replays; what is something else is kept with the reason, what is damaged is an error."""

from __future__ import annotations

import gzip
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.formats.collection import Reader, collect
from polygraphy_debug_ext.model import Assignment, Source, Tactic

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
        "check.log": "neither a tactic replay, layer information nor a build log",
        "notes.txt": "neither a tactic replay, layer information nor a build log",
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
    with pytest.raises(FormatError, match=r"notes\.txt: neither a tactic replay"):
        collect(tmp_path / "notes.txt")


LOG = "02-trt10-editable-cache-autotune-log/verbose_prefixed.log"
LAYERS = "06-layerinfo-trt10-detailed/layers.json"
CRASHED = "17-build-crash-in-autotune"


def test_what_a_file_is_its_content_says(tmp_path: Path, cases: Path, assignment: MakeAssignment) -> None:
    shutil.copy(cases / LOG, tmp_path / "a.json")
    shutil.copy(cases / LAYERS, tmp_path / "b.txt")
    replay.write(tmp_path / "c.log", assignment(conv=1))
    (tmp_path / "d").write_bytes(gzip.compress((tmp_path / "c.log").read_bytes()))
    reader = Reader()
    found = list(reader.records(tmp_path))
    assert [each.source.value for each in found] == ["build log", "layer information", "selector", "selector"]
    assert reader.kinds == {"build log": 1, "layer information": 1, "tactic replay": 2}
    assert not reader.skipped
    assert found[2].layers["conv"] is found[3].layers["conv"]


def test_a_build_that_did_not_finish_is_left_out_with_its_place(tmp_path: Path, cases: Path) -> None:
    logs = [path for path in sorted((cases / CRASHED).rglob("*")) if path.suffix == ".log"]
    for path in logs:
        shutil.copy(path, tmp_path)
    reader = Reader()
    assert not list(reader.records(tmp_path))
    assert len(reader.skipped) == len(logs) > 0
    assert all(each.reason.startswith("build log: ") for each in reader.skipped)
    assert any("layer " in each.reason and "tactic 0x" in each.reason for each in reader.skipped)


def test_the_files_of_one_trial_are_one_build(
    tmp_path: Path, cases: Path, assignment: MakeAssignment
) -> None:
    stamp = "08-12-26_10-00-11_N"
    for number, names in enumerate((("log", "layers", "replay"), ("log", "layers"), ("log",))):
        if "replay" in names:
            replay.write(tmp_path / f"replay_{stamp}{number}.json", assignment(conv=1))
        if "layers" in names:
            shutil.copy(cases / LAYERS, tmp_path / f"layers_{stamp}{number}.json")
        shutil.copy(cases / LOG, tmp_path / f"{stamp}{number}_build.log")
    reader = Reader()
    found = list(reader.records(tmp_path))
    assert sorted(reader.kinds) == ["build log", "layer information", "tactic replay"]
    assert len(found) == 3
    reasons = {each.path.name: each.reason for each in reader.skipped}
    assert reasons == {
        f"{stamp}0_build.log": f"tells of the same build as replay_{stamp}0.json (tactic replay)",
        f"layers_{stamp}0.json": f"tells of the same build as replay_{stamp}0.json (tactic replay)",
        f"{stamp}1_build.log": f"tells of the same build as layers_{stamp}1.json (layer information)",
    }


def test_files_of_trials_with_one_number_in_several_directories_are_several_builds(
    tmp_path: Path, assignment: MakeAssignment
) -> None:
    for name in ("machine1", "machine2"):
        (tmp_path / name).mkdir()
        replay.write(tmp_path / name / "replay_08-12-26_10-00-11_N0.json", assignment(conv=1))
    assert len(list(Reader().records(tmp_path))) == 2


def test_a_log_without_a_stamp_gives_each_of_its_builds(tmp_path: Path, cases: Path) -> None:
    text = (cases / LOG).read_bytes()
    (tmp_path / "several.log").write_bytes(text + text)
    (tmp_path / "one_08-12-26_10-00-11_N0.log").write_bytes(text + text)
    assert [path.rpartition("/")[2] for path in (each.origin for each in Reader().records(tmp_path))] == [
        "one_08-12-26_10-00-11_N0.log",
        "several.log",
        "several.log",
    ]


def test_equal_tactics_are_one_object_across_files_and_places(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    first = write_replays(tmp_path / "good", assignment(conv=1, fc=3))
    second = write_replays(tmp_path / "bad", assignment(conv=1, fc=4))
    reader = Reader()
    good, bad = (next(iter(reader.records(place))) for place in (first, second))
    assert good.layers["conv"] is bad.layers["conv"]
    assert good.layers["fc"] != bad.layers["fc"]


def test_what_is_not_compared_is_kept_if_asked_for(tmp_path: Path) -> None:
    layers = {"conv": Tactic(implementation=1, tactic=2, time_ms=0.5)}
    written = Assignment(layers=layers, source=Source.TIMING_CACHE, timing_cache=b"cache", variant="0.49")
    replay.write(tmp_path / "replay.json", written)
    (whole,) = Reader(whole=True).records(tmp_path)
    assert whole.layers == layers
    assert whole.timing_cache == b"cache"
    (read,) = Reader().records(tmp_path)
    assert read.layers["conv"].time_ms is None
    assert read.timing_cache is None


def test_an_engine_is_given_to_the_one_who_reads_engines(tmp_path: Path, assignment: MakeAssignment) -> None:
    (tmp_path / "a.engine").write_bytes(b"ftrt\0\1\2")
    (tmp_path / "notes.txt").write_text("hello")

    def read_engine(path: Path) -> Assignment:
        assert path.suffix == ".engine"
        return assignment(conv=1)

    reader = Reader(engine=read_engine)
    assert len(list(reader.records(tmp_path))) == 1
    assert reader.kinds == {"engine": 1}
    assert [each.path.name for each in reader.skipped] == ["notes.txt"]


def test_damage_is_told_after_all_builds_were_given(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path, assignment(conv=1), assignment(conv=2))
    (tmp_path / "a.json").write_text('{"replay": {"conv')
    records = Reader().records(tmp_path)
    assert [each.layers["conv"].tactic for each in (next(records), next(records))] == [1, 2]
    with pytest.raises(FormatError, match=r"a\.json: truncated"):
        next(records)


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_what_cannot_be_read_is_damage(tmp_path: Path, assignment: MakeAssignment) -> None:
    replay.write(tmp_path / "a.json", assignment(conv=1))
    (tmp_path / "a.json").chmod(0)
    with pytest.raises(FormatError, match="cannot be read"):
        list(Reader().records(tmp_path))


def test_a_link_to_itself_is_named_and_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    with pytest.raises(FormatError, match=r"loop\.json: cannot be read"):
        list(Reader().records(tmp_path))


def test_devices_and_sockets_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe.json")
    reader = Reader()
    assert not list(reader.records(tmp_path))
    assert {each.reason for each in reader.skipped} == {"not a regular file"}


def test_files_are_taken_one_by_one(tmp_path: Path, assignment: MakeAssignment) -> None:
    for number in range(20):
        replay.write(tmp_path / f"{number:02}.json", assignment(conv=number))
    records = Reader().records(tmp_path)
    next(records)
    # Had they been read ahead, this would not be noticed.
    (tmp_path / "19.json").write_text("gone")
    assert len(list(records)) == 18


def test_an_engine_is_loaded_only_if_its_trial_left_nothing_else(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    loaded: list[str] = []

    def engine(path: Path) -> Assignment:
        loaded.append(path.name)
        return Assignment(layers=assignment(conv=5).layers, source=Source.ENGINE, origin=str(path))

    write_replays(tmp_path, assignment(conv=1))
    (tmp_path / "replay_N0.json").rename(tmp_path / "replay_12-02-26_10-00-00_N0.json")
    for name in ("e_12-02-26_10-00-00_N0.engine", "e_12-02-26_10-00-00_N1.engine", "other.plan"):
        (tmp_path / name).write_bytes(b"ftrt\0\0\0\0plan")
    reader = Reader(engine=engine)
    assert len(list(reader.records(tmp_path))) == 3
    assert loaded == ["e_12-02-26_10-00-00_N1.engine", "other.plan"]
    assert [each.path.name for each in reader.skipped] == ["e_12-02-26_10-00-00_N0.engine"]
    assert reader.kinds == {"tactic replay": 1, "engine": 2}


def test_an_engine_that_cannot_be_loaded_is_left_out_with_the_reason(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    def engine(path: Path) -> Assignment:
        raise NotThisFormatError(path, "an engine: no TensorRT", "Install it.")

    write_replays(tmp_path, assignment(conv=1))
    (tmp_path / "e.engine").write_bytes(b"ftrt\0\0\0\0plan")
    reader = Reader(engine=engine)
    assert len(list(reader.records(tmp_path))) == 1
    assert [each.reason for each in reader.skipped] == ["an engine: no TensorRT"]


def test_files_read_at_once_tell_what_they_tell_one_by_one(
    tmp_path: Path, assignment: MakeAssignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        replay.write(tmp_path / f"{number:02}.json", assignment(conv=number % 3, fc=number))
    (tmp_path / "05.json").write_text("{}")
    one_by_one = collect(tmp_path)
    monkeypatch.setattr(replay, "IN_CACHE", -1)
    assert collect(tmp_path) == one_by_one
    assert len(one_by_one.assignments) == 19
    assert [each.path.name for each in one_by_one.skipped] == ["05.json"]
