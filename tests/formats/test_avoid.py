"""Avoid lists: what entries match, which versions they are for, and what is refused before it can avoid too much or too little."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import avoid
from polygraphy_debug_ext.formats.avoid import AvoidEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a list with these entries."""

    def make(*entries: object, version: object = 1) -> Path:
        path = tmp_path / "avoid.json"
        path.write_text(json.dumps({"format_version": version, "avoid": entries}))
        return path

    return make


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    entries = (
        AvoidEntry(
            layer="conv4*",
            kernel="sm80_*",
            tactic=-1,
            implementation=-(2**31) + 9,
            start="10.0",
            before="10.5",
            reason="wrong numbers",
            evidence={"builds": 12, "verdicts": ["bad"]},
        ),
        AvoidEntry(kernel="only the kernel"),
        AvoidEntry(tactic=0),
    )
    path = tmp_path / "avoid.json"
    avoid.write(path, entries)
    assert avoid.read(path) == entries
    written = json.loads(path.read_text())["avoid"]
    assert written[0]["tactic"] == "0xffffffffffffffff"
    assert written[0]["tensorrt"] == {"from": "10.0", "before": "10.5"}
    assert written[1] == {"kernel": "only the kernel"}


@pytest.mark.parametrize(
    "tactic", ["0xa7a495ee24d0c659", -6366799123142621607, "-6366799123142621607", 0xA7A495EE24D0C659]
)
def test_ids_are_read_as_any_source_prints_them(write: Write, tactic: object) -> None:
    (entry,) = avoid.read(write({"tactic": tactic, "implementation": "0x80000009"}))
    assert entry.tactic == 0xA7A495EE24D0C659
    assert entry.matches("any", kernel=None, tactic=-6366799123142621607, implementation=-2147483639)


def test_patterns_are_for_the_whole_name_and_case_counts() -> None:
    entry = AvoidEntry(layer="conv*", kernel="sm80_*_f16")
    assert entry.matches("conv1", kernel="sm80_x_f16", tactic=None)
    assert not entry.matches("a conv1", kernel="sm80_x_f16", tactic=None)
    assert not entry.matches("Conv1", kernel="sm80_x_f16", tactic=None)
    assert not entry.matches("conv1", kernel="sm80_x_f16_more", tactic=None)


def test_a_name_with_brackets_matches_itself() -> None:
    name = "{ForeignNode[a...(Unnamed Layer* 7) [Shuffle]]}"
    assert AvoidEntry(layer=name, kernel="k").matches(name, kernel="k", tactic=None)


def test_copies_of_a_layer_are_known_by_its_name() -> None:
    entry = AvoidEntry(layer="fc", kernel="k")
    for layer in ("fc [profile 1]", "fc #2", "fc [profile 1] #2"):
        assert entry.matches(layer, kernel="k", tactic=None)
    assert not entry.matches("fc 2", kernel="k", tactic=None)


def test_all_that_an_entry_names_must_match_and_one_of_it_be_known() -> None:
    entry = AvoidEntry(kernel="k", tactic=5)
    assert entry.matches("a", kernel="k", tactic=5)
    assert not entry.matches("a", kernel="other", tactic=5)
    assert not entry.matches("a", kernel="k", tactic=6)
    assert entry.matches("a", kernel=None, tactic=5)
    assert entry.matches("a", kernel="k", tactic=None)
    assert not entry.matches("a", kernel=None, tactic=None)


@pytest.mark.parametrize(
    ("version", "applies"),
    [
        ("9.9.9", False),
        ("10.0", True),
        ("10", True),
        ("10.4.9.1", True),
        ("10.5", False),
        ("10.5.0.1", False),
        ("10.10", False),
    ],
)
def test_a_range_has_its_start_and_not_its_end(version: str, applies: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert AvoidEntry(kernel="k", start="10.0", before="10.5").applies_to(version) is applies


def test_an_unreadable_version_is_taken_to_be_meant() -> None:
    assert AvoidEntry(kernel="k", before="10.5").applies_to("of an unknown version")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"layer": "conv"}, "avoid[0]: names no kernel, tactic or implementation"),
        ({}, "avoid[0]: names no kernel, tactic or implementation"),
        ({"kernal": "k", "tactic": 1}, "avoid[0]: Object contains unknown field 'kernal'"),
        ({"kernel": ""}, "avoid[0].kernel: empty"),
        ({"kernel": "k\u001b[2J"}, "avoid[0].kernel: has control characters"),
        ({"kernel": 5}, "avoid[0]: Expected"),
        ({"tactic": "0xfffffffffffffffff"}, "avoid[0].tactic: '0xfffffffffffffffff' is no number"),
        ({"tactic": 2**64}, "avoid[0].tactic: 18446744073709551616 is out of range"),
        ({"implementation": 2**32}, "avoid[0].implementation: 4294967296 is out of range"),
        ({"kernel": "k", "tensorrt": {"from": "ten"}}, "avoid[0].tensorrt.from: 'ten' is no version"),
        (
            {"kernel": "k", "tensorrt": {"from": "10.5", "before": "10.5"}},
            "avoid[0].tensorrt: no version is from 10.5",
        ),
        ({"kernel": "k", "tensorrt": {"until": "10.5"}}, "avoid[0]: Object contains unknown field 'until'"),
    ],
)
def test_an_entry_that_is_not_clear_is_refused_with_its_place(
    write: Write, entry: object, message: str
) -> None:
    with pytest.raises(FormatError) as caught:
        avoid.read(write(entry))
    assert message in caught.value.problem


def test_a_list_of_a_later_version_is_refused(write: Write) -> None:
    with pytest.raises(FormatError, match="format_version is 2"):
        avoid.read(write(version=2))


def test_a_missing_list_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read"):
        avoid.read(tmp_path / "none.json")


@pytest.mark.parametrize(
    "text", ['{"replay": {}}', "[]", '{"avoid": 3, "format_version": 1}', '{"avoid": []}']
)
def test_another_file_is_not_taken_for_a_list(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(NotThisFormatError, match="not an avoid list"):
        avoid.read(path)


@pytest.mark.parametrize("text", ["", "{", '{"avoid": [' + "[" * 100_000])
def test_a_damaged_list_is_told_of(tmp_path: Path, text: str) -> None:
    path = tmp_path / "avoid.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="damaged avoid list"):
        avoid.read(path)


def test_patterns_of_stars_take_no_time() -> None:
    entry = AvoidEntry(kernel="*a" * 60)
    assert not entry.matches("layer", kernel="b" + "a" * 50 + "b" * 2000, tactic=None)
