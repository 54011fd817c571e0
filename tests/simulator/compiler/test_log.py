"""The lines of a build have the shapes of the real ones, and the final list agrees with what the engine has."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from onnx import helper

from polygraphy_debug_ext.simulator import personality

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Made, Models, Workbench

HEX = r"0x[0-9a-f]{16}"
LAYER = re.compile(rf"Layer\((\w+)\): (.+), Tactic: ({HEX}), (.*) -> (.*)")
TENSORS = {
    "8.6": r".+?\[\w+\([-\d,:]+\)\]",
    "10.13": r".+? \(\w+\[[-\d,:]+\]\)",
    "11.4": r".+? \(\w+\[[-\d,:]+\]\)",
}
SHAPES = {
    "8.6": [rf"Fastest Tactic: {HEX} Time: [\d.e-]+", r"-+ Timing Runner: .+ \(\w+\)"],
    "10.13": [
        rf".+ \(\w+\[0x8[0-9a-f]{{7}}\]\) profiling completed in [\d.e-]+ seconds\. Fastest Tactic: {HEX} Time: [\d.e-]+",
        r"-+ Timing Runner: .+ \(\w+\[0x8[0-9a-f]{7}\]\)",
    ],
}
COMMON = [
    r"=============== Computing costs for .+",
    r"\*{15} Autotuning format combination: \w+\([\d,:]*\).* -> \w+\([\d,:]*\).* \*{15}",
    rf"Tactic Name: \S+ Tactic: {HEX} Time: [\d.e-]+",
    rf"Tactic: {HEX} Time: [\d.e-]+",
    rf">>>>>>>>>>>>>>> Chose Runner Type: \w+ Tactic: {HEX}",
    r"Constructing optimization profile number 0 \[1/1\]\.",
]


def block(bench: Workbench) -> list[str]:
    messages = [
        text
        for severity, text in bench.lines
        if text.startswith("Engine Layer Information:") and severity == "VERBOSE"
    ]
    assert len(messages) == 1
    return messages[0].splitlines()[1:]


@pytest.mark.parametrize("name", ["8.6", "10.13"])
def test_lines_have_the_shapes_of_the_real_ones(
    workbench: Callable[..., Workbench], models: Models, name: str
) -> None:
    bench = workbench(name)
    bench.build(models.conv_net(), "FP16")
    texts = [text for severity, text in bench.lines if severity == "VERBOSE"]
    for shape in (*COMMON, *SHAPES[name]):
        assert any(re.fullmatch(shape, text) for text in texts), shape


@pytest.mark.parametrize("name", personality.names())
def test_the_final_list_agrees_with_the_engine(
    workbench: Callable[..., Workbench], models: Models, name: str
) -> None:
    bench = workbench(name)
    plan = bench.build(models.conv_net(), "FP16")
    found = [LAYER.fullmatch(line) for line in block(bench)]
    choices = bench.engine(plan)._engine.choices
    assert [(m[1], m[2], m[3]) for m in found if m] == [(c.runner, c.name, c.tactic_text) for c in choices]
    for match in found:
        assert match is not None
        for side in (match[4], match[5]):
            assert re.fullmatch(rf"{TENSORS[name]}(, {TENSORS[name]})*", side), side


def test_cached_results_have_their_own_line(bench: Workbench, models: Models) -> None:
    builder, network = bench.network(models.conv_net())
    config = bench.config(builder)
    config.set_timing_cache(config.create_timing_cache(b""), False)
    builder.build_serialized_network(network, config)
    bench.lines.clear()
    builder.build_serialized_network(network, config)
    # Only a graph of Myelin is gone through again, without its tables.
    assert bench.text().count("Timing Runner") == 1
    assert "Autotuning op" not in bench.text()
    cached = rf"pool \[Float\(2048,256,16,1\) -> Float\(512,64,8,1\)\] got cached result: CaskPooling, tactic {HEX}, [\d.e-]+ ms"
    assert re.search(cached, bench.text())


def test_equal_layers_of_one_build_are_timed_once(bench: Workbench, models: Models) -> None:
    weights = [models.weight(name, 4, 4, 3, 3) for name in ("w0", "w1")]
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Conv", ["a", "w1"], ["y"], name="second", pads=[1] * 4),
    ]
    bench.build(models.make(nodes, {"x": [1, 4, 8, 8]}, ["y"], weights))
    assert "Timing Runner: first" in bench.text()
    assert "Timing Runner: second" not in bench.text()
    assert "second [Float(" in bench.text()


def test_a_combination_without_a_usable_tactic_says_so(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    for name, time in (("8.6", "3.40282e+38"), ("10.13", "inf")):
        bench = workbench(name, fault=("*@conv3:build-error",))
        bench.build(models.conv_net())
        assert f"Fastest Tactic: 0xd15ea5edd15ea5ed Time: {time}" in bench.text()


def test_layers_of_later_profiles_are_marked(bench: Workbench, models: Models) -> None:
    def prepare(builder: Made, _: Made, config: Made) -> None:
        for size in (1, 8):
            profile = builder.create_optimization_profile()
            profile.set_shape("x", (size, 3, 16, 16), (size, 3, 16, 16), (size, 3, 16, 16))
            config.add_optimization_profile(profile)

    bench.build(models.conv_net(batch="n"), prepare=prepare)
    lines = block(bench)
    assert len(lines) == 16
    assert all(" [profile 1], Tactic:" in line for line in lines[8:])
    assert "x [profile 1] (Float[-1,3,16,16])" in lines[8]
