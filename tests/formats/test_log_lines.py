"""Lines of logs of all ages, behind any prefix, in linear time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import autotuning, layer_lines, log_lines
from polygraphy_debug_ext.formats.log_lines import Format

if TYPE_CHECKING:
    from collections.abc import Callable

LINE = b"--------------- Timing Runner: conv (CaskConvolution[0x80000009])"
PREFIXES = {
    "trtexec": b"[08/11/2026-09:14:20] [V] [TRT] ",
    "Python": b"[08/11/2026-09:14:20] [TRT] [V] ",
    "old Python": b"[TensorRT] VERBOSE: ",
    "Polygraphy": b"[V]     ",
    "Polygraphy, with time and place": b"[X] (09:55:00) [backend/trt/util.py:72] ",
    "Myelin": b"[08/11/2026-09:14:20] [V] [TRT]  (foreignNode) ",
    "ORT": b"2026-08-11 09:14:20.123456789 [V:onnxruntime:TensorRT, tensorrt_execution_provider.h:84 log] [2026-08-11 09:14:20 VERBOSE] ",
    "Triton": b"I0811 09:14:20.123456 1 tensorrt.cc:105] ",
    "torch": b"DEBUG: [Torch-TensorRT TensorRT Conversion Context] - ",
    "Python logging": b"DEBUG:torch_tensorrt [TensorRT Conversion Context]:",
    "GitHub": b"2026-08-11T09:14:20.1234567Z [08/11/2026-09:14:20] [V] [TRT] ",
    "compose": b"trtexec-1  | [08/11/2026-09:14:20] [V] [TRT] ",
    "Kubernetes": b"2026-08-11T09:14:20.123456789Z stdout F [V] [TRT] ",
    "nothing": b"",
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_line_is_known_behind_the_prefix_of_any_logger(prefix: str) -> None:
    line = PREFIXES[prefix] + LINE
    assert log_lines.is_alone(line, b"---------------")
    assert log_lines.place(line) == ("conv", "CaskConvolution")


@pytest.mark.parametrize(
    "before", [b"I saw that ", b'{"text": "', b"the log said: ", b"# see ", b"x" * 1000 + b".log "]
)
def test_prose_and_data_are_no_prefix(before: bytes) -> None:
    assert not log_lines.is_alone(before + LINE, b"---------------")


@pytest.mark.parametrize(
    ("line", "name", "tactic"),
    [
        (b"Layer(Reformat): a, Tactic: 0, x[Float(1)] -> y[Float(1)]", b"a", 0),
        (b"Layer(CaskConvolution): PWN(a, PWN(b)), Tactic: 0x5b8bf1b8028629d9, x (Float[1]) -> y (Float[1])",
         b"PWN(a, PWN(b))", 0x5B8BF1B8028629D9),
        (b"Layer(X): a -> b, Tactic: 0x1, c, Tactic: -6366799123142621607, x[Half(1)] -> y[Half(1)]",
         b"a -> b, Tactic: 0x1, c", 0xA7A495EE24D0C659),
        (b"Layer(X): a, Tactic: 0x000000000000001c, x, Tactic: y (Float[1]) -> z (Float[1])", b"a", 0x1C),
        (b"Layer(Constant): {ForeignNode[a...b]} [profile 1], Tactic: 0x0,  -> out (Float[1])",
         b"{ForeignNode[a...b]} [profile 1]", 0),
        (b"[TensorRT] VERBOSE: Layer(X): (Unnamed Layer* 7) [Shuffle], Tactic: 1002, x[] -> y[]",
         b"(Unnamed Layer* 7) [Shuffle]", 1002),
        (b"Layer(X): [CONVOLUTION]-[aten_ops.convolution.default]-[/features/0/convolution], Tactic: 0x1, x (Float[1]) -> y (Float[1])",
         b"[CONVOLUTION]-[aten_ops.convolution.default]-[/features/0/convolution]", 1),
        (b"Layer(X): \xff\xfe, Tactic: 18446744073709551615, x", b"\xff\xfe", 2**64 - 1),
    ],
)  # fmt: skip
def test_layers_are_parted_at_the_last_tactic(line: bytes, name: bytes, tactic: int) -> None:
    found = log_lines.layer_line(line)
    assert found is not None
    assert (found.name, found.tactic) == (name, tactic)


@pytest.mark.parametrize(
    "line",
    [b"Layer(X): a", b"Layer(X): a, Tactic: ", b"Layer(X): a, Tactic: 0xg", b"Layer(X): a, Tactic: 12"[:-4]],
)
def test_a_layer_without_a_tactic_is_damaged(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"Layer\(X\): a"):
        log_lines.layer_line(line)


@pytest.mark.parametrize(
    "line", [b"", b"[V] Layer: conv Host Persistent: 80 bytes", b"Layers:", b"x" * 1000 + b"Layer(X): a"]
)
def test_other_lines_are_no_layers(line: bytes) -> None:
    assert log_lines.layer_line(line) is None


@pytest.mark.parametrize(
    ("line", "version"),
    [
        (b"&&&& RUNNING TensorRT.trtexec [TensorRT v8502] # trtexec", "8.5.2"),
        (b"&&&& RUNNING TensorRT.trtexec [TensorRT v9200] # trtexec", "9.2.0"),
        (b"&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec", "10.16.1"),
        (b"&&&& RUNNING TensorRT.trtexec [TensorRT v110100] [b11] # trtexec", "11.1.0"),
        (b"[TensorRT v11.1.0.106]", "11.1.0.106"),
        (b"[I] TensorRT version: 10.16.1", "10.16.1"),
        (b"Loaded shared library libnvinfer_builder_resource_sm89.so.10.16.0", "10.16.0"),
        (b"[V] Loaded Module: tensorrt | Version: 8.6.1 | Path: ['/x']", "8.6.1"),
        (b"TensorRT very good", ""),
        (b"TensorRT v12", ""),
    ],
)
def test_versions_are_read_however_they_are_written(line: bytes, version: str) -> None:
    assert log_lines.version(line) == version


def test_formats_of_a_layer_are_those_of_its_combination() -> None:
    half = (Format("Half", 8), Format("Half", 8))
    line = b"Autotuning format combination: Half(784,1:8,28,1) -> Half(3136,1:8,112,4) ***************"
    assert log_lines.combination(line) == half
    assert (
        log_lines.formats(b", x y (Half[1,16:8,32,32]) -> {ForeignNode[a...b]} (Half[1,32:8,-1,8])") == half
    )
    symbolic = (
        b"Autotuning format combination: Float((* (# 2 (SHAPE x)) (# 3 (SHAPE x))),(# 3 (SHAPE x)),1), Int64() -> "
        b"Float((* 32 E0),1) where E0=(* (# 2 (SHAPE x)) (# 3 (SHAPE x))) ***************"
    )
    assert log_lines.combination(symbolic) == (Format("Float", 1), Format("Int64", 1), Format("Float", 1))
    assert log_lines.combination(b"nothing") == ()


def test_kernels_are_known_by_hashes_and_not_by_numbers_of_a_runner() -> None:
    text = (
        b"[V] Tactic Name: sm80_x Tactic: 0x23eb71643ac5c727 Time: 0.00615314\n"
        b"conv Set Tactic Name: void f<int, 3> Tactic: -8850904373104590857\n"
        b"Tactic Name: maxwell_hgemm Tactic: 0x000000000220046f numSplitK: 16\n"
        b"Tactic Name: none Tactic: 0xd15ea5edd15ea5ed Time: inf\n"
    )
    found = {log_lines.kernel(written) for written in log_lines.kernels(text)}
    assert found == {("sm80_x", 0x23EB71643AC5C727), ("void f<int, 3>", 2**64 - 8850904373104590857), None}


@pytest.mark.parametrize(
    ("line", "node"),
    [
        (
            b"Error Code 10: Internal Error (Could not find any implementation for node PWN(a, b).)",
            "PWN(a, b)",
        ),
        (
            b"Could not find any implementation for node conv due to insufficient workspace. See verbose log.)",
            "conv",
        ),
        (b"Could not find any implementation for node conv.", "conv"),
    ],
)
def test_the_node_without_implementation_is_named_as_it_is(line: bytes, node: str) -> None:
    assert log_lines.failed_node(line) == node


HOSTILE = {
    "equals": b"=",
    "spaces": b" ",
    "brackets": b"[",
    "op": b"Autotuning op ",
    "op with colons": b"Autotuning op a: ",
    "onnx": b"Autotuning op a: [ONNX Layer: ",
    "columns": b"1,",
    "row": b"1, 1.0, 1.0, 1.0, k, ",
    "digits": b"1",
    "kernel": b"Tactic Name: ",
    "named": b"Tactic Name: a Tactic: ",
    "timing": b"Timing Runner: (a) (",
    "skip": b"Skipping tactic 1 due to exception ",
    "layer": b"Layer(a): ",
    "tactic": b"Layer(a): b, Tactic: 1",
    "selected": b"The selected tactic is (tactic hash, cost(in ms)):",
    "details": b"Name: a, LayerType: ",
    "details, kernel": b"Name: a, LayerType: b, TacticName: ",
    "formula": b"Autotuning format combination: (",
    "formats": b" (Float[",
    "colours": b"\x1b[",
    "returns": b"\r",
}
READERS: dict[str, Callable[[bytes], object]] = {
    "plain": log_lines.plain,
    "place": log_lines.place,
    "skipped": log_lines.skipped,
    "failed_node": log_lines.failed_node,
    "kernels": log_lines.kernels,
    "version": log_lines.version,
    "formats": log_lines.formats,
    "combination": log_lines.combination,
    "layer_line": lambda line: None if b"Layer(" in line[:300] else log_lines.layer_line(line),
    "begin": lambda line: autotuning.begin(line.decode()),
    "row": lambda line: autotuning.row(line.decode()),
    "selected": lambda line: autotuning.selected(line.decode()),
    "is_layer": layer_lines.is_layer,
    "recognises": layer_lines.recognises,
    "details": lambda line: layer_lines.parse(f"Name: x, LayerType: y, z{line.strip().decode()}", "log"),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_line_takes_more_than_linear_time(reader: str) -> None:
    read = READERS[reader]
    for name, piece in HOSTILE.items():
        line = piece * (2**20 // len(piece))
        started = time.process_time()
        read(line)
        read(b"Layer(a): , Tactic: 1" + line if reader == "layer_line" else line + b"\n")
        # A second is far more than a megabyte takes; what grows with the square of it takes hours.
        assert time.process_time() - started < 5, name
