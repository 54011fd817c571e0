from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler import kernels
from polygraphy_debug_ext.simulator.compiler.catalogue import (
    MAX_CANDIDATES,
    Allowance,
    Candidate,
    Setting,
    candidates,
)
from polygraphy_debug_ext.simulator.compiler.fusion import Fusion

if TYPE_CHECKING:
    import onnx

    from tests.simulator.conftest import Models

EVERYTHING = frozenset({"FLOAT", "HALF", "BF16", "INT8"})


def catalogue(model: onnx.ModelProto, precisions: frozenset[str]) -> dict[str, tuple[Candidate, ...]]:
    graph = graphs.load(model)
    allowance = Allowance(precisions=precisions, quantized=frozenset(graph.types))
    layers = Fusion(graph, frozenset()).layers()
    return {layer.name: candidates(Setting(layer=layer, types=graph.types), allowance) for layer in layers}


@pytest.mark.parametrize("precisions", [frozenset({"FLOAT"}), frozenset({"FLOAT", "HALF"}), EVERYTHING])
def test_every_layer_has_a_few_candidates(models: Models, precisions: frozenset[str]) -> None:
    for model in (models.conv_net(), models.attention(), models.identity()):
        for name, offered in catalogue(model, precisions).items():
            assert 2 <= len(offered) <= MAX_CANDIDATES, name


def test_candidates_of_a_layer_can_be_told_apart(models: Models) -> None:
    for offered in catalogue(models.conv_net(), EVERYTHING).values():
        identities = {(c.kernel.runner, c.kernel.tactic, c.inputs, c.outputs) for c in offered}
        assert len(identities) == len(offered)


def test_precisions_are_offered_only_if_they_are_allowed(models: Models) -> None:
    for precisions in (frozenset({"FLOAT"}), frozenset({"FLOAT", "HALF"}), EVERYTHING):
        found = {
            c.precision for offered in catalogue(models.conv_net(), precisions).values() for c in offered
        }
        assert found == precisions


def test_a_kernel_has_the_same_id_at_every_layer_and_everywhere() -> None:
    names = {kernel.name: kernel.tactic for kernel in kernels.of_kind("conv")}
    assert len(names) == len(kernels.of_kind("conv"))
    wanted = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma_aligna4_alignc4"
    # Written down: the id must not depend on platform, Python or hash seed.
    assert names[wanted] == 0xE4AC9B1C9B033984


def test_the_bell_is_about_normal() -> None:
    values = [kernels.bell("test", index) for index in range(4000)]
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    assert abs(mean) < 0.05
    assert abs(variance - 1) < 0.08
