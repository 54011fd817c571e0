"""Inputs from practice give the answers that their `expected.json` states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polygraphy_debug_ext.analysis import difference
from polygraphy_debug_ext.formats.collection import collect
from polygraphy_debug_ext.model import Finding, Outcome, Suspect

CASES = Path(__file__).parent / "data" / "cases"


def expected(case: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((CASES / case / "expected.json").read_text())
    return answers


def compare(directory: Path) -> Finding:
    return difference(collect(directory / "good").assignments, collect(directory / "bad").assignments)


def as_expected(suspect: Suspect) -> dict[str, object]:
    return {
        "layer": suspect.layer,
        "implementation": suspect.tactic.implementation,
        "tactic": suspect.tactic.tactic,
        "tactic_hex": suspect.tactic.hex,
        "bad_builds": suspect.bad_builds,
        "good_builds": suspect.good_builds,
        "rank": suspect.strength.value,
    }


@pytest.mark.parametrize("version", ["0.29", "0.33", "0.43", "0.47"])
def test_case_10_old_formats(version: str) -> None:
    directory = f"polygraphy-{version}"
    finding = compare(CASES / "10-replay-old-formats" / directory)
    wanted = expected("10-replay-old-formats")["suspects_per_dir"][directory]
    found = [as_expected(suspect) for suspect in finding.suspects]
    assert [{key: each[key] for key in wanted[0]} for each in found] == wanted


def test_case_10_mixed_formats_are_compared_on_what_all_of_them_record() -> None:
    root = CASES / "10-replay-old-formats"
    good = [each for directory in sorted(root.glob("*/good")) for each in collect(directory).assignments]
    bad = [each for directory in sorted(root.glob("*/bad")) for each in collect(directory).assignments]
    finding = difference(good, bad)
    assert [suspect.layer for suspect in finding.suspects] == ["Conv_0 + Relu_1"]
    assert finding.suspects[0].bad_builds == 4
    assert finding.variants == (("0.29", 2), ("0.33", 2), ("0.43", 2), ("0.47", 2))


def test_case_11_new_format() -> None:
    wanted = expected("11-replay-new-format-good-bad")
    root = CASES / "11-replay-new-format-good-bad" / "replays"
    finding = compare(root)
    assert (finding.good_builds, finding.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert len(collect(root / "good").skipped) + len(collect(root / "bad").skipped) == wanted["skipped_files"]
    assert [as_expected(suspect) for suspect in finding.suspects] == wanted["suspects"]
    assert list(finding.opaque_layers) == wanted["opaque_layers"]
    assert not {suspect.layer for suspect in finding.suspects} & set(wanted["not_suspects"])
    assert {len(each.layers) for each in collect(root).assignments} == {wanted["num_layers"]}


def test_case_12_identical_replays_name_the_opaque_layer() -> None:
    finding = compare(CASES / "12-replay-identical-myelin-hides-it" / "replays")
    wanted = expected("12-replay-identical-myelin-hides-it")["replays"]
    assert (finding.good_builds, finding.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert finding.outcome is Outcome.NO_DIFFERENCE
    assert list(finding.suspects) == wanted["suspects"]
    (layer,) = finding.opaque_layers
    assert layer in wanted["verdict"]


def test_case_19_all_bad_lists_no_layer_and_says_why() -> None:
    wanted = expected("19-always-bad-not-flaky")
    root = CASES / "19-always-bad-not-flaky" / "replays"
    finding = compare(root)
    assert (finding.good_builds, finding.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert finding.outcome is Outcome.NO_GOOD_BUILD
    assert list(finding.suspects) == wanted["suspects"]
    assert finding.distinct_bad == 2


def test_case_19_mirrored_bounds_the_failure_rate() -> None:
    builds = collect(CASES / "19-always-bad-not-flaky" / "replays" / "bad").assignments
    finding = difference(builds, [])
    assert finding.outcome is Outcome.NO_BAD_BUILD
    assert finding.failure_rate_bound is not None
    assert 0.63 < finding.failure_rate_bound < 0.64
