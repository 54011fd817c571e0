"""Cache, log and engine are joined into tactics by layer; what the engine does not have is marked as swallowed."""

from __future__ import annotations

from polygraphy_debug_ext.formats.autotuning import Candidate, TunedOp
from polygraphy_debug_ext.formats.layer_information import EngineLayer
from polygraphy_debug_ext.model import Assignment, Source, Witness
from polygraphy_debug_ext.trt.joining import Cached, join, recorded_ops

KEYS = [f"0x{number:032x}" for number in range(4)]
ALL = frozenset(Witness)


def op(name: str, key: str, *kernels: str, onnx: tuple[str, ...] = ()) -> TunedOp:
    candidates = tuple(
        Candidate(tactic=100 + i, kernel=kernel, cost_ms=i + 1) for i, kernel in enumerate(kernels)
    )
    return TunedOp(op=name, key=key, onnx_layers=onnx, candidates=candidates, selected=100)


def inner(name: str, kernel: str, *onnx: str) -> EngineLayer:
    return EngineLayer(name=name, layer_type="gemm", tactic=None, kernel=kernel, onnx_layers=onnx)


def test_an_op_that_all_witnesses_know_has_hash_key_kernel_and_time() -> None:
    tactics = join(
        {KEYS[0]: Cached(tactic=100, time_ms=1.0)},
        [op("fc", KEYS[0], "k", "other")],
        [inner("fc_myl0_3", "k", "fc")],
    )
    (tactic,) = tactics.values()
    assert list(tactics) == ["fc"]
    assert (tactic.tactic, tactic.cache_key, tactic.kernel, tactic.time_ms) == (100, KEYS[0], "k", 1.0)
    assert tactic.witnesses == ALL
    assert not tactic.swallowed


def test_layers_are_found_by_onnx_name_where_the_op_is_named_otherwise() -> None:
    cache = {KEYS[0]: Cached(tactic=100, time_ms=1.0)}
    tactics = join(
        cache,
        [op("gemm_7", KEYS[0], "k", onnx=("/a/MatMul",))],
        [inner("x_myl1_0", "k", "/a/MatMul", "/a/Add")],
    )
    assert tactics["/a/MatMul + /a/Add"].witnesses == ALL


def test_an_op_whose_kernel_the_engine_does_not_have_was_swallowed() -> None:
    cache = {KEYS[0]: Cached(tactic=100, time_ms=1.0)}
    tactics = join(
        cache,
        [op("qk", KEYS[0], "gemm", onnx=("qk",))],
        [inner("mha_myl0_0", "fused", "qk", "softmax", "pv")],
    )
    assert list(tactics) == ["qk + softmax + pv", "qk"]
    assert tactics["qk"].swallowed
    assert tactics["qk"].witnesses == {Witness.CACHE, Witness.LOG}
    assert not tactics["qk + softmax + pv"].swallowed


def test_of_two_format_combinations_the_one_in_the_engine_is_found() -> None:
    cache = {key: Cached(tactic=100, time_ms=1.0) for key in KEYS[:2]}
    ops = [op("proj", KEYS[0], "fp32"), op("proj", KEYS[1], "fp16")]
    tactics = join(cache, ops, [inner("proj_myl0_0", "fp16", "proj")])
    assert tactics["proj"].cache_key == KEYS[1]
    assert tactics[f"proj (key {KEYS[0]})"].swallowed


def test_an_entry_that_the_log_does_not_know_keeps_its_key_for_a_name() -> None:
    tactics = join({KEYS[3]: Cached(tactic=7, time_ms=1.0)}, [], [])
    assert tactics[KEYS[3]].witnesses == {Witness.CACHE}


def test_a_log_that_selected_otherwise_is_no_witness() -> None:
    tactics = join(
        {KEYS[0]: Cached(tactic=101, time_ms=1.0)},
        [op("fc", KEYS[0], "k", "forced")],
        [inner("fc_myl0_0", "forced", "fc")],
    )
    assert tactics["fc"].witnesses == {Witness.CACHE, Witness.ENGINE}


def test_layers_outside_myelin_are_told_by_the_engine_alone() -> None:
    conv = EngineLayer(
        name="conv1 + relu1",
        layer_type="CaskConvolution",
        tactic=5,
        kernel="k",
        onnx_layers=("conv1", "relu1"),
    )
    tactics = join(
        {KEYS[0]: Cached(tactic=100, time_ms=1.0)}, [op("conv1", KEYS[0], "k", onnx=("conv1",))], [conv]
    )
    assert tactics["conv1 + relu1"].witnesses == {Witness.ENGINE}
    assert tactics["conv1 + relu1"].tactic == 5
    assert tactics["conv1"].swallowed


def test_what_replays_tell_of_ops_joins_a_build_that_tuned_nothing() -> None:
    cache = {KEYS[0]: Cached(tactic=101, time_ms=1.0), KEYS[1]: Cached(tactic=100, time_ms=1.0)}
    engine = [inner("fc_myl0_3", "other", "flatten", "fc")]
    ops = [op("fc", KEYS[0], "k", "other", onnx=("fc",)), op("half", KEYS[1], "h", onnx=("fc",))]
    first = join(cache, ops, engine)
    recorded = recorded_ops([Assignment(layers=first, source=Source.TIMING_CACHE)])
    again = join(cache, recorded, engine)
    assert {name: (tactic.kernel, tactic.cache_key, tactic.swallowed) for name, tactic in again.items()} == {
        "flatten + fc": ("other", KEYS[0], False),
        "fc": ("h", KEYS[1], True),
    }
