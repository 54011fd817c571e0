"""Timing lines of every generation tell kernels and times."""

from __future__ import annotations

from polygraphy_debug_ext.trt.heard import Timings

TENSORRT_10 = """\
[V] --------------- Timing Runner: conv + relu (CaskConvolution[0x80000009])
[V] Tactic Name: sm80_a Tactic: 0x967f94e9db2001a8 Time: 0.006
[V] Tactic Name: sm80_b Tactic: 0x5b8bf1b8028629d9 Time: 0.005
[V] conv + relu (CaskConvolution[0x80000009]) profiling completed in 0.08 seconds. Fastest Tactic: 0x5b8bf1b8028629d9 Time: 0.005
[V] --------------- Timing Runner: conv + relu (CaskConvolution[0x80000009])
[V] Tactic Name: sm80_a Tactic: 0x967f94e9db2001a8 Time: 0.004
[V] Tactic: 0xd15ea5edd15ea5ed Time: inf
[V] --------------- Timing Runner: Reformat (a (b)) (Reformat[0x80000006])
[V] Tactic: 0x00000000000003e8 Time: 1.5e-3
"""
TENSORRT_8_0 = """\
[TensorRT] VERBOSE: --------------- Timing Runner: conv (CaskConvolution)
[TensorRT] VERBOSE: conv Set Tactic Name: volta_scudnn_128x64 Tactic: -8850904373104590857
[TensorRT] VERBOSE: Tactic: -8850904373104590857 Time: 0.523424
[TensorRT] VERBOSE: Fastest Tactic: 2775507031594384867 Time: 0.207936
"""


def heard(text: str) -> Timings:
    timings = Timings()
    for line in text.splitlines():
        timings.take(line)
    return timings


def test_the_least_time_of_a_tactic_is_kept_by_layer() -> None:
    timings = heard(TENSORRT_10)
    assert timings.times == {
        "conv + relu": {0x967F94E9DB2001A8: 0.004, 0x5B8BF1B8028629D9: 0.005},
        "Reformat (a (b))": {0x3E8: 0.0015},
    }
    assert timings.kernels == {0x967F94E9DB2001A8: "sm80_a", 0x5B8BF1B8028629D9: "sm80_b"}


def test_signed_ids_on_two_lines_are_understood() -> None:
    timings = heard(TENSORRT_8_0)
    tactic = -8850904373104590857 & (2**64 - 1)
    assert timings.times == {"conv": {tactic: 0.523424}}
    assert timings.kernels == {tactic: "volta_scudnn_128x64"}


def test_the_next_build_has_its_own_times_and_the_last_ones_are_still_known() -> None:
    timings = heard(TENSORRT_10)
    timings.begin()
    assert timings.times == {}
    assert timings.time("conv + relu", 0x5B8BF1B8028629D9) == 0.005
    assert timings.time("conv + relu", 1) is None
    assert timings.kernels
