"""A TensorRT is asked what it has; and what we use of TensorRT exists in every version for which that code can run."""

from __future__ import annotations

import ast
import json
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

import polygraphy_debug_ext.trt
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.trt.capabilities import Capabilities, TacticSource, choose_source, probe, require

ROOM = Path(polygraphy_debug_ext.trt.__file__).parent
INVENTORIES = Path(__file__).parents[1] / "data" / "tensorrt-api"
VERSIONS = ("8.6.1", "10.13.3.9", "11.4.0.106")
#: Where a file is not named here, its code can run with every version.
RUNS_WITH = {
    "selector.py": VERSIONS[:2],
    "tactics.py": VERSIONS[:2],
    "cache.py": VERSIONS[1:],
    "shipping.py": VERSIONS[1:],
}
#: What variables stand for, in the files where they stand for something of TensorRT's.
VARIABLES = {
    "selector.py": {"config": "IBuilderConfig", "context": "IAlgorithmContext"},
    "tactics.py": {
        "context": "IAlgorithmContext",
        "algorithm": "IAlgorithm",
        "variant": "IAlgorithmVariant",
        "info": "IAlgorithmIOInfo",
    },
    "cache.py": {"config": "IBuilderConfig", "cache": "ITimingCache", "value": "TimingCacheValue"},
    "layer_information.py": {"engine": "ICudaEngine"},
}

#: A mapping that bears the name of a cache.
NOT_TENSORRT = {("ITimingCache", "get")}


def inventory(version: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((INVENTORIES / f"{version}.json").read_text(encoding="utf-8"))
    return data


def stand_in(version: str, name: str = "tensorrt") -> types.ModuleType:
    """A module with the names of a version, and nothing behind them."""
    known = inventory(version)
    module = types.ModuleType(name)
    for kind in ("enums", "classes"):
        for each, members in known[kind].items():
            setattr(module, each, type(each, (), {"__init__": lambda *_: None, **dict.fromkeys(members)}))
    vars(module)["__version__"] = version
    return module


def capabilities(version: str) -> Capabilities:
    return probe(stand_in(version))


def touched(path: Path) -> set[tuple[str, ...]]:
    """Names that a file takes from TensorRT: of the module, of its classes, and of the variables above."""
    tree = ast.parse(path.read_text())
    known: dict[str, tuple[str, ...]] = {
        name: (cls,) for name, cls in VARIABLES.get(path.name, {}).items()
    } | {"trt": ()}
    for node in ast.walk(tree):
        # For example `flags = tensorrt().BuilderFlag`.
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            chain = _chain(node.value, known)
            if chain is not None and (chain or node.targets[0].id == "trt"):
                known[node.targets[0].id] = chain
    chains = {_chain(node, known) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {chain[:2] for chain in chains if chain} - NOT_TENSORRT


def _chain(node: ast.expr, known: dict[str, tuple[str, ...]]) -> tuple[str, ...] | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "tensorrt":
        return ()
    if isinstance(node, ast.Call):
        made = _chain(node.func, known)
        return made if made and len(made) == 1 else None
    if isinstance(node, ast.Attribute) and not node.attr.startswith("__"):
        owner = _chain(node.value, known)
        return None if owner is None or len(owner) > 1 else (*owner, node.attr)
    return None


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_room_takes_from_tensorrt_exists_in_that_version(version: str) -> None:
    known = inventory(version)
    names = {**known["classes"], **known["enums"], **dict.fromkeys(known["functions"], ())}
    for path in ROOM.glob("*.py"):
        if version not in RUNS_WITH.get(path.name, VERSIONS):
            continue
        for name, *member in touched(path):
            assert name in names, f"{path.name}: {name}"
            assert not member or member[0] in names[name], f"{path.name}: {name}.{member[0]}"


def test_what_can_run_with_tensorrt_rtx_exists_there() -> None:
    module = pytest.importorskip("tensorrt_rtx", reason="tensorrt_rtx is not installed (extra rtx)")
    # Tactics cannot be forced there.
    for path in (path for path in ROOM.glob("*.py") if path.name not in RUNS_WITH):
        for name, *member in touched(path):
            assert hasattr(module, name), f"{path.name}: {name}"
            assert not member or hasattr(getattr(module, name), member[0]), f"{path.name}: {name}.{member[0]}"


def test_the_audit_sees_what_the_room_takes() -> None:
    seen = {path.name: touched(path) for path in ROOM.glob("*.py")}
    assert ("BuilderFlag", "EDITABLE_TIMING_CACHE") in seen["cache.py"]
    assert ("ITimingCache", "queryKeys") in seen["cache.py"]
    assert ("TimingCacheKey", "parse") in seen["cache.py"]
    assert ("IAlgorithmSelector",) in seen["selector.py"]
    assert ("BuilderFlag", "DISABLE_TIMING_CACHE") in seen["selector.py"]
    assert ("ILogger", "VERBOSE") in seen["logger.py"]
    assert ("Runtime", "deserialize_cuda_engine") in seen["layer_information.py"]
    assert sum(map(len, seen.values())) > 30


def test_tensorrt_8_has_a_selector_and_weak_types_and_no_editable_cache() -> None:
    found = capabilities("8.6.1")
    assert found.algorithm_selector
    assert not found.editable_timing_cache
    assert not found.strongly_typed_only
    assert {"FP16", "INT8"} <= found.weak_types
    assert found.timing_cache_flags == {"DISABLE_TIMING_CACHE"}
    assert found.inspector
    assert found.sources == (TacticSource.SELECTOR, TacticSource.LOG)


def test_tensorrt_10_has_both_and_the_cache_comes_first() -> None:
    found = capabilities("10.13.3.9")
    assert found.weak_types == {"FP16", "BF16", "INT8", "FP8"}
    assert found.timing_cache_flags > {"EDITABLE_TIMING_CACHE", "ERROR_ON_TIMING_CACHE_MISS"}
    assert found.sources == (TacticSource.CACHE, TacticSource.SELECTOR, TacticSource.LOG)


def test_tensorrt_11_has_the_cache_and_strong_types_only() -> None:
    found = capabilities("11.4.0.106")
    assert found.strongly_typed_only
    assert not found.algorithm_selector
    assert found.sources == (TacticSource.CACHE, TacticSource.LOG)


def test_the_version_number_does_not_count() -> None:
    module = stand_in("11.4.0.106")
    vars(module)["__version__"] = "8.6.1"
    assert probe(module).strongly_typed_only


def test_a_cache_that_lacks_a_method_is_not_editable() -> None:
    module = stand_in("11.4.0.106")
    del vars(module)["ITimingCache"].update
    assert not probe(module).editable_timing_cache


def test_a_cache_that_warns_of_being_a_no_op_is_one() -> None:
    class TimingCacheValue:
        def __init__(self, tactic: int, time: float) -> None:
            pass

        @property
        def tacticHash(self) -> int:  # noqa: N802 - TensorRT's name
            warnings.warn("Timing cache operations are no-ops.", DeprecationWarning, stacklevel=2)
            return 0

    module = stand_in("11.4.0.106")
    vars(module)["TimingCacheValue"] = TimingCacheValue
    assert probe(module).timing_cache_is_no_op
    assert probe(module).sources == (TacticSource.LOG,)


def test_tensorrt_rtx_is_known_by_its_name_where_it_does_not_warn() -> None:
    found = probe(stand_in("11.4.0.106", "tensorrt_rtx"))
    assert found.timing_cache_is_no_op
    assert found.is_rtx


def test_a_module_that_has_next_to_nothing_can_be_asked() -> None:
    found = probe(types.ModuleType("tensorrt"))
    assert found.sources == (TacticSource.LOG,)
    assert found.strongly_typed_only


@pytest.mark.parametrize(
    ("version", "source", "reason"),
    [
        ("8.6.1", TacticSource.SELECTOR, "has no editable timing cache"),
        ("10.13.3.9", TacticSource.CACHE, "it sees inside Myelin graphs"),
        ("11.4.0.106", TacticSource.CACHE, "it sees inside Myelin graphs"),
    ],
)
def test_auto_takes_the_cache_wherever_it_exists(version: str, source: TacticSource, reason: str) -> None:
    chosen, sentence = choose_source(capabilities(version), "auto")
    assert chosen is source
    assert reason in sentence


def test_where_there_is_nothing_to_force_with_the_log_is_taken_and_it_is_said() -> None:
    chosen, sentence = choose_source(probe(stand_in("11.4.0.106", "tensorrt_rtx")))
    assert chosen is TacticSource.LOG
    assert "has no algorithm selector and has an editable timing cache that does nothing" in sentence
    assert "cannot be forced" in sentence


@pytest.mark.parametrize("wanted", ["selector", "cache", "log"])
def test_what_is_asked_for_is_taken_where_it_exists(wanted: str) -> None:
    chosen, sentence = choose_source(capabilities("10.13.3.9"), wanted)
    assert chosen.value == wanted
    assert "--tactic-source asks for it" in sentence


@pytest.mark.parametrize(
    ("version", "wanted", "lack", "instead"),
    [
        ("8.6.1", "cache", "tensorrt 8.6.1 has no editable timing cache", "--tactic-source selector"),
        ("11.4.0.106", "selector", "tensorrt 11.4.0.106 has no algorithm selector", "--tactic-source cache"),
    ],
)
def test_a_source_that_does_not_exist_is_refused_with_what_to_use(
    version: str, wanted: str, lack: str, instead: str
) -> None:
    with pytest.raises(UsageError) as caught:
        choose_source(capabilities(version), wanted)
    assert lack in caught.value.problem
    assert instead in caught.value.remedy


def test_what_cannot_be_forced_is_said_where_only_the_log_is_left() -> None:
    with pytest.raises(UsageError, match="it cannot be forced"):
        require(probe(stand_in("11.4.0.106", "tensorrt_rtx")), TacticSource.CACHE)
