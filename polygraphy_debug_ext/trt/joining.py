"""Joins what three witnesses say of one build: the timing cache, the autotuning tables of the log, the layers of the engine.

The cache knows key and tactic hash, the log the op, its ONNX layers and the kernel of each hash, the engine what is really in
it. An op whose kernel the engine does not have was swallowed by a fusion: its pick is in the cache, and void.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.formats.autotuning import Candidate, TunedOp
from polygraphy_debug_ext.formats.layer_information import EngineLayer, stable_names
from polygraphy_debug_ext.model import Tactic, Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from polygraphy_debug_ext.model import Assignment

#: Polygraphy's replays want an implementation: that of Myelin, as TensorRT 10 numbers it.
MYELIN: Final = 0x80000023


@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """An entry of an editable timing cache: the tactic hash and the time in milliseconds."""

    tactic: int
    time_ms: float


def join(
    cache: Mapping[str, Cached], ops: Sequence[TunedOp], layers: Sequence[EngineLayer]
) -> dict[str, Tactic]:
    """Return the tactics by layer: those of the engine in its order, then the picks that it does not have.

    `cache` maps keys (`0x` and 32 digits) to entries.
    """
    names = stable_names(tuple(layers))
    found = {
        name: Tactic(
            implementation=None,
            tactic=layer.tactic,
            kernel=layer.kernel,
            witnesses=frozenset({Witness.ENGINE}),
        )
        for name, layer in zip(names, layers, strict=True)
        if layer.tactic is not None or layer.kernel is not None
    }
    tuned = {op.key: op for op in ops if op.key is not None}
    swallowed: dict[str, Tactic] = {}
    for key, entry in cache.items():
        op = tuned.get(key)
        tactic = _picked(key, entry, op)
        name = None if op is None else _engine_layer(op, tactic, names, layers, found)
        if name is None:
            swallowed[_free_name(op, key, {*found, *swallowed})] = tactic
        else:
            found[name] = replace(tactic, witnesses=tactic.witnesses | {Witness.ENGINE})
    return {**found, **swallowed}


def _picked(key: str, entry: Cached, op: TunedOp | None) -> Tactic:
    """What the cache holds for an op, with what the log says of it."""
    witnesses = {Witness.CACHE}
    kernel = None
    if op is not None:
        kernel = next((each.kernel for each in op.candidates if each.tactic == entry.tactic), None)
        if op.selected == entry.tactic:
            witnesses.add(Witness.LOG)
    return Tactic(
        implementation=MYELIN,
        tactic=entry.tactic,
        kernel=kernel,
        time_ms=entry.time_ms,
        cache_key=key,
        witnesses=frozenset(witnesses),
    )


def _engine_layer(
    op: TunedOp,
    tactic: Tactic,
    names: Sequence[str],
    layers: Sequence[EngineLayer],
    found: Mapping[str, Tactic],
) -> str | None:
    """Return the layer that runs the op with that kernel, if the engine has one that no other op was found for."""
    for name, layer in zip(names, layers, strict=True):
        if not layer.in_myelin or layer.kernel is None or layer.kernel != tactic.kernel:
            continue
        if found[name].cache_key is not None:
            continue
        # Logs before TensorRT 10.16 do not name the ONNX layers of an op; what a replay tells of one is called as the layer was.
        if op.op in {layer.op, name} or (op.onnx_layers and set(op.onnx_layers) & set(layer.onnx_layers)):
            return name
    return None


def recorded_ops(assignments: Iterable[Assignment]) -> tuple[TunedOp, ...]:
    """What replays tell of the ops of their builds: the kernels of the tactics that were picked. There are no costs of others.

    A build that starts from a timing cache has no autotuning tables to tell it.
    """
    names: dict[str, str] = {}
    candidates: dict[str, dict[int, Candidate]] = {}
    for assignment in assignments:
        for name, tactic in assignment.layers.items():
            key = tactic.cache_key
            if key is None or tactic.tactic is None or tactic.kernel is None:
                continue
            if key not in names or Witness.ENGINE in tactic.witnesses:
                names[key] = name.removesuffix(f" (key {key})")
            candidates.setdefault(key, {}).setdefault(
                tactic.tactic,
                Candidate(tactic=tactic.tactic, kernel=tactic.kernel, cost_ms=tactic.time_ms or 0.0),
            )
    return tuple(
        TunedOp(
            op=name,
            key=key,
            onnx_layers=tuple(name.split(" + ")),
            candidates=tuple(candidates[key].values()),
            selected=None,
        )
        for key, name in names.items()
    )


def _free_name(op: TunedOp | None, key: str, taken: set[str]) -> str:
    if op is None:
        return key
    name = " + ".join(op.onnx_layers) or op.op
    return name if name not in taken else f"{name} (key {key})"
