"""Tables of the ops inside Myelin: their lines, and that log, timing cache and layer information agree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Made, Models, Workbench

ORIGINS = {"10.13": "", "11.4": r" (\[ONNX Layer: [^\]]+\])+"}
HASH = r"0x[0-9a-f]{13}"
ROW = rf"[ \d]{{4}}, \d\.\d{{7}}, \d\.\d{{5}}, \d\.\d{{5}}, \S+, {HASH},"
HEADER = "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter"


def foreign(bench: Workbench) -> list[str]:
    """The lines from inside Myelin."""
    prefix = " (foreignNode) "
    return [text.removeprefix(prefix) for _, text in bench.lines if text.startswith(prefix)]


@pytest.mark.parametrize("trt", ORIGINS)
def test_lines_with_the_flag_have_keys_and_selections(
    workbench: Callable[..., Workbench], models: Models, trt: str
) -> None:
    bench = workbench(trt)
    bench.build(models.attention(), "EDITABLE_TIMING_CACHE")
    shapes = [
        rf"Autotuning op \w+\(key: 0x[0-9a-f]{{32}}\):{ORIGINS[trt]}",
        "Sorted table of all evaluated tactics:",
        re.escape(HEADER),
        ROW,
        rf"The selected tactic is \(tactic hash, cost\(in ms\)\):{HASH},  0\.\d+",
        rf"Writing the best tactic \({HASH}\) to cache",
    ]
    for line in foreign(bench):
        assert any(re.fullmatch(shape, line) for shape in shapes), line
    for shape in shapes:
        assert any(re.fullmatch(shape, line) for line in foreign(bench)), shape


def test_lines_without_the_flag_have_neither(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench("11.4")
    bench.build(models.attention())
    lines = foreign(bench)
    assert "Autotuning op scores: [ONNX Layer: scores]" in lines
    assert HEADER in lines
    assert not any("key" in line or "selected" in line or "Writing" in line for line in lines)


def test_convolutions_have_a_column_more(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench("11.4")
    bench.build(models.conv_net(), "EDITABLE_TIMING_CACHE")
    lines = foreign(bench)
    assert HEADER + ", conv_w2c_input_fold" in lines
    assert any(re.fullmatch(ROW + " , 0", line) for line in lines)
    assert any("[ONNX Layer: conv1][ONNX Layer: relu1]" in line for line in lines)


@pytest.mark.parametrize("trt", ORIGINS)
def test_log_cache_and_layer_information_agree(
    workbench: Callable[..., Workbench], models: Models, trt: str
) -> None:
    bench = workbench(trt)
    builder, network = bench.network(models.attention())
    config = bench.config(builder, "EDITABLE_TIMING_CACHE")
    cache = config.create_timing_cache(b"")
    assert config.set_timing_cache(cache, False)
    plan = bytes(builder.build_serialized_network(network, config))
    picks = picked(foreign(bench))
    assert {key for _, key in picks} == {str(key) for key in cache.queryKeys()}
    layers = bench.information(plan)["Layers"]
    for (op, key), (tag, cost, kernel) in picks.items():
        value = cache.query(bench.trt.TimingCacheKey.parse(key))
        assert value.tacticHash == int(tag, 16)
        assert value.timingMSec == pytest.approx(float(cost), rel=1e-6)
        assert [layer["TacticName"] for layer in layers if layer["Name"].startswith(f"{op}_myl")] == [kernel]


def picked(lines: list[str]) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Hash, cost and kernel of what was selected, by op and key."""
    found: dict[tuple[str, str], tuple[str, str, str]] = {}
    kernels: dict[str, str] = {}
    for line in lines:
        if match := re.match(r"Autotuning op (\w+)\(key: (\w+)\)", line):
            subject = (match[1], match[2])
            kernels.clear()
        elif re.fullmatch(ROW, line):
            row = line.split(", ")
            kernels[row[5].rstrip(",")] = row[4]
        elif match := re.match(r"The selected tactic .*:(\w+),  (.+)", line):
            found[subject] = (match[1], match[2], kernels[match[1]])
    return found


def test_an_op_is_tuned_once_for_each_combination_of_formats(bench: Workbench, models: Models) -> None:
    bench.build(models.attention(), "FP16", "EDITABLE_TIMING_CACHE")
    keys = [line for line in foreign(bench) if line.startswith("Autotuning op scores(")]
    assert len(keys) == len(set(keys)) == 2


def test_equal_ops_have_keys_of_their_own_and_share_hashes(bench: Workbench, models: Models) -> None:
    bench.build(models.attention(), "EDITABLE_TIMING_CACHE")
    lines = foreign(bench)
    starts = [index for index, line in enumerate(lines) if line.startswith("Autotuning op ")]
    hashes = {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name = lines[start].partition("op ")[2].partition("(")[0]
        rows = [line for line in lines[start:end] if re.fullmatch(ROW, line)]
        hashes[name] = {row.split(", ")[5] for row in rows}
    assert hashes["q_proj"] == hashes["k_proj"]
    assert hashes["q_proj"].isdisjoint(hashes["scores"])
    assert len({line for line in lines if line.startswith("Autotuning op ")}) == 5


def test_one_kernel_can_have_several_hashes(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench("10.13")
    bench.build(models.conv_net(), "EDITABLE_TIMING_CACHE")
    rows = [line.split(", ") for line in foreign(bench) if re.fullmatch(ROW, line)]
    kernels = [row[4] for row in rows]
    assert len(set(kernels)) < len(kernels)
    assert len({row[5] for row in rows}) == len(rows)


def test_a_fault_in_a_build_strikes_an_op(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench("11.4", noise=0.0, fault=("*tilesize32x32x8*@scores:build-error",))
    bench.build(models.attention(), "EDITABLE_TIMING_CACHE")
    assert re.search(r"Skipping tactic 0x000[0-9a-f]{13} due to exception", bench.text())


def test_builds_pick_differently_without_a_seed(workbench: Callable[..., Workbench], models: Models) -> None:
    bench, model = workbench("11.4"), models.attention()
    seen: set[object] = {tuple(bench.tactics(bench.build(model)).items()) for _ in range(8)}
    assert len(seen) > 3


def test_the_numbers_in_names_vary_from_build_to_build(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench, model = workbench("11.4"), models.attention()
    names: set[str] = set()
    for _ in range(12):
        layers: list[Made] = bench.information(bench.build(model))["Layers"]
        names.update(layer["Name"] for layer in layers if layer["Metadata"] == "[ONNX Layer: q_proj]")
    assert len(names) > 2
    assert all(re.fullmatch(r"q_proj_myl\d+_\d+", name) for name in names)
