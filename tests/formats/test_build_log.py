"""The log of a failed build names the layer, the runner and the tactic where it failed first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from polygraphy_debug_ext.formats.build_log import Failure, failure, hexadecimal
from polygraphy_debug_ext.model import FaultSite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CASE = "17-build-crash-in-autotune"


Read: TypeAlias = "Callable[[str], tuple[Failure, dict[str, Any]]]"


@pytest.fixture
def read(cases: Path) -> Read:
    answers = json.loads((cases / CASE / "expected.json").read_text())["files"]

    def of(name: str) -> tuple[Failure, dict[str, Any]]:
        with (cases / CASE / name).open("rb") as file:
            return failure(file), answers[name]

    return of


def test_the_first_error_counts(read: Read) -> None:
    found, expected = read("bad/build_fail.log")
    first = found.first_error
    assert first is not None
    assert {
        "layer": first.layer,
        "runner": first.runner,
        "tactic": first.tactic,
        "error": first.error,
    } == expected["first_error"]
    assert list(found.skipped[1:]) == expected["skipped_tactics_after_first"]
    assert found.failed_node == expected["failed_node"]
    assert found.site == first
    assert not found.finished


def test_a_killed_build_was_where_it_timed_last(read: Read) -> None:
    found, expected = read("bad/build_killed.log")
    assert found.site is not None
    assert {"layer": found.site.layer, "runner": found.site.runner} == expected["last_timed"]
    assert found.first_error is None


def test_old_skip_lines_are_read(read: Read) -> None:
    found, expected = read("bad/skips_old_style.log")
    assert list(found.skipped) == expected["skipped"]
    assert found.site is None


def test_a_tactic_that_was_named_but_not_timed_is_the_one() -> None:
    lines = [
        b"[TensorRT] VERBOSE: --------------- Timing Runner: conv + relu (CaskConvolution)",
        b"conv + relu Set Tactic Name: volta_a Tactic: -1",
        b"Tactic: -1 Time: 0.5",
        b"conv + relu Set Tactic Name: volta_b Tactic: -2",
    ]
    assert failure(lines).site == FaultSite(
        layer="conv + relu", runner="CaskConvolution", tactic="0xfffffffffffffffe"
    )
    assert failure(lines[:3]).site == FaultSite(layer="conv + relu", runner="CaskConvolution")


def test_names_with_brackets_and_colours_are_read() -> None:
    line = b"\x1b[35m[X]     --------------- Timing Runner: a (b) (c) + PWN(d) (Myelin[0x80000023])\x1b[0m"
    assert failure([line]).site == FaultSite(layer="a (b) (c) + PWN(d)", runner="Myelin")


def test_a_tactic_that_is_left_out_for_want_of_memory_is_no_error() -> None:
    lines = [
        b"Timing Runner: a (Myelin)",
        b"[W] UNSUPPORTED_STATE: Skipping tactic 0 due to insufficient memory on requested size of 2688",
        b"Timing Runner: b (Myelin)",
        b"[E] Error Code: 9: Skipping tactic 0x1 due to exception misaligned address",
    ]
    found = failure(lines)
    assert found.first_error is not None
    assert (found.first_error.layer, found.first_error.error) == ("b", "misaligned address")
    assert len(found.skipped) == 2


def test_a_finished_build_was_nowhere() -> None:
    lines = [b"Timing Runner: conv (CaskConvolution)", b"[X] Engine Layer Information:"]
    assert failure(lines).site is None


def test_a_node_without_implementation_is_named_where_nothing_else_is() -> None:
    line = b"[E] Error Code 10: Internal Error (Could not find any implementation for node {ForeignNode[a...b]}.)"
    assert failure([line]).site == FaultSite(
        layer="{ForeignNode[a...b]}", error="no implementation was found"
    )


def test_any_bytes_can_be_read() -> None:
    assert failure([b"\xff" * 10_000_000, b"", b"\0\n"]).site is None


@pytest.mark.parametrize("printed", ["44", "0x2c", "0x000000000000002c"])
def test_ids_are_printed_alike(printed: str) -> None:
    assert hexadecimal(printed) == "0x000000000000002c"
