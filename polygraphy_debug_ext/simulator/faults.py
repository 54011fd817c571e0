"""Faults: which kernel, at which layers, does what, and how often.

A specification reads `KERNEL[@LAYER]:EFFECT[:rate=R][:value=V]`; KERNEL and LAYER are case-sensitive globs, and a text that
is exactly equal always matches (layer names hold brackets). *Build effects* act when the candidate is timed, *run effects*
when the engine is executed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fnmatch import fnmatchcase

from polygraphy_debug_ext.simulator.errors import UsageError

TENSOR_EFFECTS = ("offset", "nan", "zero")
RUN_EFFECTS = (*TENSOR_EFFECTS, "run-crash")
BUILD_EFFECTS = ("build-error", "build-crash", "build-hang", "sticky")
EFFECTS = (*RUN_EFFECTS, *BUILD_EFFECTS)
GRAMMAR = "KERNEL[@LAYER]:EFFECT[:rate=R][:value=V]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A planted fault; `rate` is the probability per build or per inference, `value` the size of an offset."""

    kernel: str
    layer: str
    effect: str
    rate: float = 1.0
    value: float | None = None

    def matches(self, kernel: str, *layers: str) -> bool:
        """Whether this fault sits in `kernel` at a layer that is known by one of these names."""
        return _matches(kernel, self.kernel) and any(_matches(layer, self.layer) for layer in layers)


def _matches(text: str, pattern: str) -> bool:
    return text == pattern or fnmatchcase(text, pattern)


def parse(spec: str) -> Fault:
    """Read a specification.

    A layer name may hold colons: the effect is the last part that is not `key=value`.
    """
    parts = spec.split(":")
    options: dict[str, float] = {}
    while parts and "=" in parts[-1] and parts[-1].split("=", 1)[0] in {"rate", "value"}:
        key, text = parts.pop().split("=", 1)
        if key in options:
            raise _bad(spec, f"{key} is given twice")
        options[key] = _number(spec, key, text)
    if len(parts) < 2:  # noqa: PLR2004 - a target and an effect
        raise _bad(spec, "it has no effect")
    effect = parts.pop()
    kernel, _, layer = ":".join(parts).partition("@")
    if effect not in EFFECTS:
        raise _bad(spec, f"there is no effect {effect!r}: choose one of {', '.join(EFFECTS)}")
    if not kernel or (not layer and "@" in spec):
        raise _bad(spec, "the kernel or the layer is empty: * stands for any")
    if not 0 < options.get("rate", 1.0) <= 1:
        raise _bad(spec, "rate must be above 0 and at most 1")
    if "value" in options and effect != "offset":
        raise _bad(spec, f"value belongs to the effect offset, not to {effect}")
    return Fault(
        kernel=kernel,
        layer=layer or "*",
        effect=effect,
        rate=options.get("rate", 1.0),
        value=options.get("value"),
    )


def _number(spec: str, key: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise _bad(spec, f"{key} is not a number: {text!r}") from None
    if not math.isfinite(number):
        raise _bad(spec, f"{key} is not a finite number: {text!r}")
    return number


def _bad(spec: str, problem: str) -> UsageError:
    return UsageError(f"fault {spec!r} cannot be read: {problem}. A fault reads {GRAMMAR}")
