"""Autotuning inside Myelin: the tactics of one op, their table in the log, and what the timing cache says about the op.

A tactic is known by a *hash* of 13 hexadecimal digits, which belongs to a kernel at ops of one kind and shape; some kernels
come in two variants under one name. An op is known by its *key*, which depends on its name as well.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import kernels
from polygraphy_debug_ext.simulator.compiler.cache import Entry
from polygraphy_debug_ext.simulator.compiler.catalogue import PER_LEVEL, Candidate, offered
from polygraphy_debug_ext.simulator.compiler.timing import true_cost
from polygraphy_debug_ext.simulator.errors import BuildFailure
from polygraphy_debug_ext.simulator.execution import device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance, Setting
    from polygraphy_debug_ext.simulator.compiler.kernels import Kernel
    from polygraphy_debug_ext.simulator.compiler.stopwatch import Stopwatch

PREFIX = " (foreignNode) "
HASH_DIGITS = 13
# A share of the kernels is there twice, with another way to split the work.
SHARE_SPLIT = 0.25
SPLIT_SPREAD = 0.06
DECIMALS = 7
HEADER = (
    "tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, "
    "tunable_parameter"
)
# Convolutions have a column more.
FOLD = ", conv_w2c_input_fold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """What is tuned: `names` are those under which a fault finds it, `nodes` its ONNX nodes."""

    name: str
    region: str
    setting: Setting
    precision: str
    names: tuple[str, ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        """The ONNX nodes that it computes."""
        return tuple(node.name for node in self.setting.layer.nodes)

    @property
    def key(self) -> str:
        """What the timing cache knows it by."""
        text = "\x1f".join(["op", self.name, *self.nodes, self.precision, self.setting.signature])
        return "0x" + hashlib.sha256(text.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTactic:
    """A kernel that an op could use; `number` is its place in the builder's list."""

    kernel: Kernel
    number: int
    hash: int
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What an op got; `ideal_ms` is what it would take with its truly best tactic."""

    kernel: str
    hash: int
    time_ms: float
    ideal_ms: float = 0.0


def tactics(op: Op, allowance: Allowance) -> tuple[OpTactic, ...]:
    """The tactics of an op, in a stable order; there is always one."""
    signature, kind = op.setting.signature, op.setting.layer.kind
    usable = [
        Candidate(kernel=kernel, precision=op.precision, inputs=(), outputs=(), workspace=0)
        for kernel in kernels.of_kind(kind)
        if kernel.precision in {op.precision, "ANY"}
        and (not kernel.source or kernel.source in allowance.sources)
    ]
    found = []
    for candidate in offered(usable, signature, PER_LEVEL[allowance.level]):
        cost = true_cost(candidate, op.setting)
        for variant in range(2 if _is_split(candidate.kernel, signature) else 1):
            name = candidate.kernel.name
            spread = variant * SPLIT_SPREAD * kernels.fraction("split cost", name, signature)
            found.append(
                OpTactic(
                    kernel=candidate.kernel,
                    number=2 * usable.index(candidate) + variant,
                    hash=_hash(kind, name, variant, op.precision, signature),
                    cost=cost * (1 + spread),
                )
            )
    return tuple(found)


def _ideal(choices: Sequence[OpTactic]) -> float:
    return min(tactic.cost for tactic in choices)


def _is_split(kernel: Kernel, signature: str) -> bool:
    return kernels.fraction("split", kernel.name, signature) < SHARE_SPLIT


def _hash(*parts: object) -> int:
    text = "\x1f".join(str(part) for part in parts)
    digits = hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
    return int(digits, 16) | 1 << 4 * (HASH_DIGITS - 1)


class Autotuner:
    """Picks the tactics of the ops of one build."""

    def __init__(self, stopwatch: Stopwatch, allowance: Allowance) -> None:
        self._watch = stopwatch
        self._log = stopwatch.log
        self._allowance = allowance

    def pick(self, op: Op) -> Pick:
        """The tactic that the cache has for the op, or else the one that is measured as the fastest."""
        choices, cache = tactics(op, self._allowance), self._watch.cache
        known = None if cache is None or device.DEVICE.sticky else cache.ops.get(op.key)
        if known is not None:
            return self._from_cache(op, known, choices)
        if self._watch.strict and cache is not None:
            raise BuildFailure("internal", why=f"op {op.name} (key: {op.key}) is missing in the timing cache")
        measured = [(time, tactic) for tactic in choices if (time := self._measured(op, tactic)) is not None]
        if not measured:
            self._say("ERROR", f"No tactic of op {op.name} could be run.")
            raise BuildFailure("no_implementation", layer=op.region)
        measured.sort(key=lambda entry: (entry[0], entry[1].number))
        self._table(op, measured)
        time, best = measured[0]
        if cache is not None:
            cache.ops[op.key] = Entry(hash=best.hash, time_ms=time)
        return Pick(kernel=best.kernel.name, hash=best.hash, time_ms=time, ideal_ms=_ideal(choices))

    def _from_cache(self, op: Op, known: Entry, choices: Sequence[OpTactic]) -> Pick:
        for tactic in choices:
            if tactic.hash == known.hash:
                return Pick(
                    kernel=tactic.kernel.name,
                    hash=known.hash,
                    time_ms=known.time_ms,
                    ideal_ms=_ideal(choices),
                )
        self._say(
            "ERROR",
            f"The tactic 0x{known.hash:x} in the timing cache cannot be used for op {op.name} (key: {op.key}).",
        )
        raise BuildFailure("no_implementation", layer=op.region)

    def _measured(self, op: Op, tactic: OpTactic) -> float | None:
        name = tactic.kernel.name
        trouble = device.DEVICE.sticky or self._watch.struck(name, *op.names)
        if trouble:
            self._log.message("skip", tactic=tactic.hash, why=trouble)
            return None
        time = self._watch.dice.measured(tactic.cost, "op", op.name, op.precision, name, tactic.number)
        return round(time, DECIMALS)

    def _table(self, op: Op, measured: Sequence[tuple[float, OpTactic]]) -> None:
        keyed = self._watch.editable and self._watch.cache is not None
        template = self._log.personality.autotuning["keyed" if keyed else "plain"]
        origins = "".join(f"[ONNX Layer: {name}]" for name in op.nodes)
        folded = op.setting.layer.kind == "conv"
        self._say("VERBOSE", template.format(op=op.name, key=op.key, origins=origins))
        self._say("VERBOSE", "Sorted table of all evaluated tactics:")
        self._say("VERBOSE", HEADER + (FOLD if folded else ""))
        fastest = measured[0][0]
        for time, tactic in measured:
            correlation = kernels.fraction("correlation", op.key, tactic.hash)
            self._say(
                "VERBOSE",
                f"{tactic.number:4d}, {time:.7f}, {time / fastest:.5f}, {correlation:.5f}, {tactic.kernel.name}, "
                f"0x{tactic.hash:x},{' , 0' if folded else ''}",
            )
        if keyed:
            best = f"0x{measured[0][1].hash:x}"
            self._say("VERBOSE", f"The selected tactic is (tactic hash, cost(in ms)):{best},  {fastest:.6g}")
            self._say("VERBOSE", f"Writing the best tactic ({best}) to cache")

    def _say(self, severity: str, text: str) -> None:
        self._log.sink(severity, PREFIX + text)
