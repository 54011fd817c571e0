"""The inner layers of a graph, and the attention block that swallows what was tuned for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Models, Workbench

NAMES = ["q_proj", "k_proj", "v_proj", "scores", "__myl_MulMaxrSubExpSumDiv", "mix"]


def stems(bench: Workbench, plan: bytes | None) -> list[str]:
    return [layer["Name"].rpartition("_myl")[0] for layer in bench.information(plan)["Layers"]]


def test_reshapes_vanish_and_pointwise_layers_join(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("11.4")
    plan = bench.build(models.attention())
    assert stems(bench, plan) == NAMES
    layers = {layer["Name"].rpartition("_myl")[0]: layer for layer in bench.information(plan)["Layers"]}
    assert layers["q_proj"]["LayerType"] == "gemm"
    softmax = layers["__myl_MulMaxrSubExpSumDiv"]
    assert softmax["LayerType"] == "kgen"
    assert softmax["Metadata"] == "[ONNX Layer: scaled]\x1f[ONNX Layer: weights]"
    assert softmax["TacticName"].startswith("__myl_MulMaxrSubExpSumDiv_0x")


def test_generated_code_has_the_same_name_in_every_build(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench("11.4")
    seen = set()
    for _ in range(3):
        layers = bench.information(bench.build(models.attention()))["Layers"]
        seen.add(layers[4]["TacticName"])
    assert len(seen) == 1


@pytest.mark.parametrize("trt", ["10.13", "11.4"])
def test_a_fused_attention_makes_the_pins_of_its_products_void(
    workbench: Callable[..., Workbench], models: Models, trt: str
) -> None:
    bench = workbench(trt)
    builder, network = bench.network(models.half(models.attention(head=16)))
    config = bench.config(builder, "EDITABLE_TIMING_CACHE")
    cache = config.create_timing_cache(b"")
    config.set_timing_cache(cache, False)
    plan = bytes(builder.build_serialized_network(network, config))
    assert "Autotuning op scores(" in bench.text()
    assert "Autotuning op mix(" in bench.text()
    # Five picks are in the cache, three of them in the engine.
    assert len(cache.queryKeys()) == 5
    assert stems(bench, plan) == ["q_proj", "k_proj", "v_proj", "_gemm_mha_v2"]
    fused = bench.information(plan)["Layers"][-1]
    assert fused["TacticName"].startswith("_gemm_mha_v2_0x")
    assert "[ONNX Layer: scores]" in fused["Metadata"]
    assert "[ONNX Layer: mix]" in fused["Metadata"]


def test_attention_of_another_size_or_precision_is_not_fused(bench: Workbench, models: Models) -> None:
    assert stems(bench, bench.build(models.half(models.attention(head=8)))) == NAMES
    assert stems(bench, bench.build(models.attention(head=16))) == NAMES
    weak = stems(bench, bench.build(models.attention(head=16), "FP16"))
    assert "_gemm_mha_v2" in weak


@pytest.mark.parametrize(
    "layer", ["scores", "k_heads", "scores_myl*", "{ForeignNode[wq...mix]}", "*"],
    ids=["op", "onnx", "inner", "graph", "any"],
)  # fmt: skip
@pytest.mark.parametrize("trt", ["10.13", "11.4"])
def test_a_fault_finds_its_op_under_any_of_its_names(
    workbench: Callable[..., Workbench], models: Models, reference: Callable[..., Array], trt: str, layer: str
) -> None:
    model = models.attention()
    bench = workbench(trt, fault=(f"*gemm*@{layer}:offset",))
    x = np.random.default_rng(0).standard_normal((1, 8, 16)).astype(np.float32)
    outputs = bench.run(bench.engine(bench.build(model)), x=x)
    assert outputs is not None
    assert np.abs(outputs["y"] - reference(model, x=x)).max() > 0.01


def test_a_fault_sits_in_one_kernel_of_an_op(
    workbench: Callable[..., Workbench], models: Models, reference: Callable[..., Array]
) -> None:
    model = models.attention()
    x = np.random.default_rng(0).standard_normal((1, 8, 16)).astype(np.float32)
    right, seen = reference(model, x=x), set()
    for seed in range(12):
        bench = workbench("10.13", seed=seed, fault=("*tilesize64x64x8*@scores:offset",))
        plan = bench.build(model)
        layers: list[dict[str, Any]] = bench.information(plan)["Layers"]
        scores = next(layer for layer in layers if layer["Name"].startswith("scores_myl"))
        outputs = bench.run(bench.engine(plan), x=x)
        assert outputs is not None
        hit = "tilesize64x64x8" in scores["TacticName"]
        assert hit != np.allclose(outputs["y"], right, atol=1e-5)
        seen.add(hit)
    assert seen == {True, False}


def test_numbers_of_a_half_precision_network_are_those_of_half_precision(
    workbench: Callable[..., Workbench], models: Models, reference: Callable[..., Array]
) -> None:
    bench, single = workbench("11.4"), models.attention(head=16)
    plan = bench.build(models.half(single))
    text = json.dumps(bench.information(plan)["Layers"])
    assert '"Datatype": "Half"' in text
    assert '"Datatype": "Float"' not in text
    x = np.random.default_rng(0).standard_normal((1, 8, 32)).astype(np.float16)
    outputs = bench.run(bench.engine(plan), x=x)
    assert outputs is not None
    error = np.abs(outputs["y"].astype(np.float32) - reference(single, x=x.astype(np.float32))).max()
    assert 0 < error < 0.05


def test_a_single_precision_network_stays_in_single_precision(
    workbench: Callable[..., Workbench], models: Models, reference: Callable[..., Array]
) -> None:
    bench, model = workbench("11.4"), models.conv_net()
    plan = bench.build(model)
    assert '"Half"' not in json.dumps(bench.information(plan))
    x = np.random.default_rng(3).standard_normal((1, 3, 16, 16)).astype(np.float32)
    outputs = bench.run(bench.engine(plan), x=x)
    assert outputs is not None
    np.testing.assert_allclose(outputs["y"], reference(model, x=x), rtol=1e-5, atol=1e-6)
