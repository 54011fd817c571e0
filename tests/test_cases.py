"""Inputs from practice give the answers that their `expected.json` states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.formats import build_log
from polygraphy_debug_ext.formats.collection import collect
from polygraphy_debug_ext.model.answer import Conclusion
from polygraphy_debug_ext.reports.document import by_stock

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.model.answer import Answer, Suspect

CASES = Path(__file__).parent / "data" / "cases"


def expected(case: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((CASES / case / "expected.json").read_text())
    return answers


def compare(good: Iterable[Assignment], bad: Iterable[Assignment]) -> tuple[Answer, tuple[Suspect, ...]]:
    """What is concluded, and what Polygraphy's rule lists."""
    table = table_of(good, bad)
    answer = rank(table)
    return answer, by_stock(answer.suspects, table.layers)


def compare_in(directory: Path) -> tuple[Answer, tuple[Suspect, ...]]:
    return compare(collect(directory / "good").assignments, collect(directory / "bad").assignments)


def built(path: Path) -> Assignment:
    """What the one build of a log chose."""
    (build,) = build_log.read(path).builds
    assert build.status is build_log.Status.FINISHED
    assert build.assignment is not None
    return build.assignment


def tactic_ids(assignment: Assignment) -> dict[str, str]:
    return {name: tactic.hex for name, tactic in assignment.layers.items()}


def as_expected(suspect: Suspect) -> dict[str, object]:
    return {
        "layer": " ".join(suspect.layers),
        "implementation": suspect.tactic.implementation,
        "tactic": suspect.tactic.tactic,
        "tactic_hex": suspect.tactic.hex,
        "bad_builds": suspect.counts.bad_with,
        "good_builds": suspect.counts.good_with,
        "rank": suspect.rank.value,
    }


def test_case_01_the_final_list_decides_and_timing_lines_only_name_kernels() -> None:
    wanted = expected("01-trt10-trtexec-verbose")["files"]["build.log"]
    assignment = built(CASES / "01-trt10-trtexec-verbose" / "build.log")
    assert assignment.metadata == {"tensorrt": wanted["trt_version"]}
    assert tactic_ids(assignment) == {each["name"]: each["tactic"] for each in wanted["layers"]}
    assert len(assignment.layers) == wanted["num_layers"]
    assert list(assignment.opaque_layers) == wanted["opaque_layers"]
    kernels = {tactic.hex: tactic.kernel for tactic in assignment.layers.values() if tactic.kernel}
    assert kernels == wanted["kernel_names"]
    assert not set(wanted["must_not_report_as_chosen"]) & set(tactic_ids(assignment).values())
    assert not set(wanted["must_not_report_as_layers"]) & set(assignment.layers)


@pytest.mark.parametrize("name", ["verbose_prefixed.log", "verbose_bare.log"])
def test_case_02_every_op_that_was_tuned_whether_the_build_is_there_or_not(name: str) -> None:
    wanted = expected("02-trt10-editable-cache-autotune-log")["files"][name]
    (build,) = build_log.read(CASES / "02-trt10-editable-cache-autotune-log" / name).builds
    found = [(op.op, op.key, hex(op.selected or 0), op.selected_kernel) for op in build.ops]
    keys = ("op", "key", "selected", "selected_kernel")
    assert found == [tuple(op[key] for key in keys) for op in wanted["autotuned_ops"]]
    layers = {} if build.assignment is None else build.assignment.layers
    # Which of them the engine has is not told: the log does not say for which formats they were tuned.
    assert list(layers) == wanted.get("opaque_layers", [])
    assert len(layers) == wanted["num_layers"]
    assert (build.assignment is None) == (build.status is build_log.Status.UNKNOWN)


@pytest.mark.parametrize("name", ["build.log", "build_python_logger.log"])
def test_case_04_decimal_ids_are_those_of_newer_logs(name: str) -> None:
    wanted = expected("04-trt82-decimal-tactics-log")["files"][name]
    assignment = built(CASES / "04-trt82-decimal-tactics-log" / name)
    assert tactic_ids(assignment) == {each["name"]: each["tactic"] for each in wanted["layers"]}
    assert list(assignment.opaque_layers) == wanted["opaque_layers"]
    assert not set(wanted["must_not_report_as_chosen"]) & set(tactic_ids(assignment).values())
    assert assignment.metadata == {}


@pytest.mark.parametrize("version", ["0.29", "0.33", "0.43", "0.47"])
def test_case_10_old_formats(version: str) -> None:
    directory = f"polygraphy-{version}"
    _, suspects = compare_in(CASES / "10-replay-old-formats" / directory)
    wanted = expected("10-replay-old-formats")["suspects_per_dir"][directory]
    found = [as_expected(suspect) for suspect in suspects]
    assert [{key: each[key] for key in wanted[0]} for each in found] == wanted


def test_case_10_mixed_formats_are_compared_on_what_all_of_them_record() -> None:
    root = CASES / "10-replay-old-formats"
    good = [each for directory in sorted(root.glob("*/good")) for each in collect(directory).assignments]
    bad = [each for directory in sorted(root.glob("*/bad")) for each in collect(directory).assignments]
    answer, suspects = compare(good, bad)
    assert [suspect.layers for suspect in suspects] == [("Conv_0 + Relu_1",)]
    assert suspects[0].counts.bad_with == 4
    assert answer.variants == (("0.29", 2), ("0.33", 2), ("0.43", 2), ("0.47", 2))


def test_case_11_new_format() -> None:
    wanted = expected("11-replay-new-format-good-bad")
    root = CASES / "11-replay-new-format-good-bad" / "replays"
    answer, suspects = compare_in(root)
    assert (answer.good_builds, answer.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert len(collect(root / "good").skipped) + len(collect(root / "bad").skipped) == wanted["skipped_files"]
    assert [as_expected(suspect) for suspect in suspects] == wanted["suspects"]
    assert list(answer.opaque_layers) == wanted["opaque_layers"]
    assert not {layer for suspect in suspects for layer in suspect.layers} & set(wanted["not_suspects"])
    assert {len(each.layers) for each in collect(root).assignments} == {wanted["num_layers"]}


def test_case_12_identical_replays_name_the_opaque_layer() -> None:
    answer, suspects = compare_in(CASES / "12-replay-identical-myelin-hides-it" / "replays")
    wanted = expected("12-replay-identical-myelin-hides-it")["replays"]
    assert (answer.good_builds, answer.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert answer.conclusion is Conclusion.NO_TACTIC
    assert list(suspects) == wanted["suspects"]
    (layer,) = answer.opaque_layers
    assert layer in wanted["verdict"]


def test_case_19_all_bad_lists_no_layer_and_says_why() -> None:
    wanted = expected("19-always-bad-not-flaky")
    root = CASES / "19-always-bad-not-flaky" / "replays"
    answer, suspects = compare_in(root)
    assert (answer.good_builds, answer.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert answer.conclusion is Conclusion.NO_GOOD_BUILD
    assert list(suspects) == wanted["suspects"]
    assert answer.distinct_bad == 2


def test_case_19_mirrored_bounds_the_failure_rate() -> None:
    builds = collect(CASES / "19-always-bad-not-flaky" / "replays" / "bad").assignments
    answer, _ = compare(builds, [])
    assert answer.conclusion is Conclusion.NO_BAD_BUILD
    assert answer.failure_rate_bound is not None
    assert 0.63 < answer.failure_rate_bound < 0.64


@pytest.mark.parametrize("name", ["good/build_a.log", "good/build_b.log", "bad/build_c.log"])
def test_case_14_profiles_are_kept_apart(name: str) -> None:
    wanted = expected("14-two-profiles-dynamic-shapes")["files"][name]
    assignment = built(CASES / "14-two-profiles-dynamic-shapes" / name)
    assert len(assignment.layers) == wanted["num_layers"]
    found = tactic_ids(assignment)
    assert {layer: found[layer] for layer in wanted["tactics"]} == wanted["tactics"]


def test_case_14_the_suspect_is_in_one_profile() -> None:
    wanted = expected("14-two-profiles-dynamic-shapes")
    root = CASES / "14-two-profiles-dynamic-shapes"
    good, bad = ([built(path) for path in sorted((root / side).iterdir())] for side in ("good", "bad"))
    _, (suspect,) = compare(good, bad)
    (answer,) = wanted["suspects"]
    assert suspect.layers == (answer["layer"],)
    assert suspect.tactic.hex == answer["tactic"]
    assert [tactic.hex for tactic in suspect.alternatives] == answer["good_tactics"]
    assert suspect.rank.value == answer["rank"]
    assert suspect.layers[0] not in wanted["not_suspects"]


def test_case_14_two_builds_in_one_log_are_two() -> None:
    wanted = expected("14-two-profiles-dynamic-shapes")["files"]["two_builds_in_one.log"]
    builds = build_log.read(CASES / "14-two-profiles-dynamic-shapes" / "two_builds_in_one.log").builds
    assert len(builds) == wanted["builds"]
    assignments = [build.assignment for build in builds if build.assignment is not None]
    assert [len(each.layers) for each in assignments] == wanted["num_layers_each"]
    for assignment, tactics in zip(assignments, wanted["tactics"], strict=True):
        assert tactics.items() <= tactic_ids(assignment).items()


@pytest.mark.parametrize("name", ["bad/build_fail.log", "bad/build_killed.log", "bad/skips_old_style.log"])
def test_case_17_a_build_that_failed_has_no_tactics_but_a_status(name: str) -> None:
    wanted = expected("17-build-crash-in-autotune")["files"][name]
    (build,) = build_log.read(CASES / "17-build-crash-in-autotune" / name).builds
    assert build.status.value == wanted["build_status"]
    assert build.assignment is None
    assert build.problem
    if "first_error" in wanted:
        assert build.failure.first_error is not None
        assert build.failure.first_error.layer == wanted["first_error"]["layer"]
        assert build.failure.failed_node == wanted["failed_node"]
    if "last_timed" in wanted:
        assert build.failure.last_timed is not None
        assert build.failure.last_timed.layer == wanted["last_timed"]["layer"]
    if "skipped" in wanted:
        assert list(build.failure.skipped) == wanted["skipped"]
