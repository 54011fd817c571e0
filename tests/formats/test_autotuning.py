"""Autotuning tables are read from logs with any prefix, also where they are cut off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from polygraphy_debug_ext.formats.autotuning import Tables, TunedOp

CASE = Path(__file__).parent.parent / "data" / "cases" / "02-trt10-editable-cache-autotune-log"
EXPECTED: dict[str, Any] = json.loads((CASE / "expected.json").read_text())["files"]


def ops(text: str) -> tuple[TunedOp, ...]:
    tables = Tables()
    for line in text.splitlines():
        tables.take(line)
    return tables.ops()


def as_expected(op: TunedOp) -> dict[str, object]:
    return {
        "op": op.op,
        "key": op.key,
        "selected": None if op.selected is None else hex(op.selected),
        "selected_kernel": op.selected_kernel,
        "available": [
            {"tactic": hex(each.tactic), "kernel": each.kernel, "cost_ms": each.cost_ms}
            for each in op.candidates
        ],
    }


@pytest.mark.parametrize("name", EXPECTED)
def test_case_02_every_op_with_key_candidates_and_choice(name: str) -> None:
    found = [as_expected(op) for op in ops((CASE / name).read_text())]
    wanted = EXPECTED[name]["autotuned_ops"]
    assert [{key: each[key] for key in wanted[0]} for each in found] == wanted


def test_onnx_layers_are_read_where_the_log_has_them() -> None:
    (first, *_) = ops((CASE / "verbose_prefixed.log").read_text())
    assert first.onnx_layers == ("/attn/qk_matmul", "/attn/qk_matmul_cast")


def test_without_the_flag_there_is_neither_key_nor_choice() -> None:
    text = (
        "[V] [TRT]  (foreignNode) Autotuning op fc: [ONNX Layer: fc]\n"
        "Sorted table of all evaluated tactics:\n"
        "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter\n"
        "   3, 0.0112640, 1.00000, 5986.98955, sm80_x, 0x665ded9abbf88,\n"
    )
    (op,) = ops(text)
    assert (op.op, op.key, op.selected, op.onnx_layers) == ("fc", None, None, ("fc",))
    assert [each.kernel for each in op.candidates] == ["sm80_x"]


def test_convolutions_have_a_column_more() -> None:
    text = (
        "Autotuning op conv(key: 0x1814870c44ff0f8574df6e3dda04cbd7):\n"
        "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter, "
        "conv_w2c_input_fold\n"
        "   3, 0.0112640, 1.00000, 0.5, sm80_x, 0x665ded9abbf88, , 0\n"
        "The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264\n"
    )
    (op,) = ops(text)
    assert op.selected_kernel == "sm80_x"


@pytest.mark.parametrize("lines", range(12))
def test_a_log_that_is_cut_off_gives_what_it_has(lines: int) -> None:
    text = (CASE / "verbose_bare.log").read_text().splitlines()[:lines]
    for op in ops("\n".join(text)):
        assert op.selected is None or op.selected_kernel is not None


def test_rows_end_where_other_lines_begin() -> None:
    text = (
        "Autotuning op fc(key: 0x1814870c44ff0f8574df6e3dda04cbd7):\n"
        "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter\n"
        "   3, 0.0112640, 1.00000, 0.5, sm80_x, 0x665ded9abbf88,\n"
        "something else\n"
        "   4, 0.0112640, 1.00000, 0.5, sm80_y, 0x665ded9abbf89,\n"
    )
    (op,) = ops(text)
    assert [each.kernel for each in op.candidates] == ["sm80_x"]
