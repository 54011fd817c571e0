"""What an imported TensorRT can do. The module is asked, never its version number, which is for messages only.

TensorRT-RTX has the methods of the editable timing cache, but they do nothing: builds do not time tactics there, so that no
key is ever in the cache. An empty cache cannot tell this (no keys, and `update` of an unknown key is False, as it should be).
The bindings of TensorRT-RTX 1.2 and later say it in a deprecation warning as soon as a field of `TimingCacheValue` is read,
which takes neither a builder nor a GPU; earlier ones are known by their name.
"""

from __future__ import annotations

import enum
import warnings
from dataclasses import dataclass
from typing import Any, Final

from polygraphy_debug_ext.errors import UsageError

#: Stands for the best source that there is.
AUTO: Final = "auto"

_WEAK_TYPES: Final = ("FP16", "BF16", "INT8", "FP8")
_CACHE_FLAGS: Final = (
    "DISABLE_TIMING_CACHE",
    "EDITABLE_TIMING_CACHE",
    "ERROR_ON_TIMING_CACHE_MISS",
    "DISABLE_COMPILATION_CACHE",
)
_CACHE_METHODS: Final = ("queryKeys", "query", "update")


class TacticSource(enum.Enum):
    """Where the tactics of a build are learnt from. Only the first two can force them as well."""

    CACHE = "cache"
    SELECTOR = "selector"
    LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What one TensorRT has.

    `timing_cache_is_no_op`: the cache can be called but does nothing. `weak_types` are the precisions that can be asked of the
    builder (FP16, BF16, INT8, FP8); without any, all networks are strongly typed. `timing_cache_flags` are names of builder flags.
    """

    name: str
    version: str
    algorithm_selector: bool
    editable_timing_cache: bool
    timing_cache_is_no_op: bool
    weak_types: frozenset[str]
    timing_cache_flags: frozenset[str]
    inspector: bool

    @property
    def strongly_typed_only(self) -> bool:
        """Whether the types of a network are its own, and cannot be asked of the builder."""
        return not self.weak_types

    @property
    def is_rtx(self) -> bool:
        """Whether it is TensorRT-RTX."""
        return self.name == "tensorrt_rtx"

    @property
    def sources(self) -> tuple[TacticSource, ...]:
        """Where tactics can be learnt from, best first."""
        has = {
            TacticSource.CACHE: self.editable_timing_cache and not self.timing_cache_is_no_op,
            TacticSource.SELECTOR: self.algorithm_selector,
            TacticSource.LOG: True,
        }
        return tuple(source for source in TacticSource if has[source])

    def __str__(self) -> str:
        """For messages."""
        return f"{self.name} {self.version}"


def probe(module: Any) -> Capabilities:  # noqa: ANN401 - TensorRT has no types
    """Ask a module what it has. Nothing is built, and no device is touched."""
    flags = getattr(module, "BuilderFlag", None)
    return Capabilities(
        name=module.__name__,
        version=str(getattr(module, "__version__", "of an unknown version")),
        algorithm_selector=hasattr(module, "IAlgorithmSelector"),
        editable_timing_cache=_has_editable_cache(module, flags),
        timing_cache_is_no_op=_cache_is_no_op(module),
        weak_types=frozenset(name for name in _WEAK_TYPES if hasattr(flags, name)),
        timing_cache_flags=frozenset(name for name in _CACHE_FLAGS if hasattr(flags, name)),
        inspector=hasattr(module, "EngineInspector"),
    )


def choose_source(capabilities: Capabilities, wanted: str = AUTO) -> tuple[TacticSource, str]:
    """Return where to learn tactics from, and a sentence that says why.

    Args:
        capabilities: What this TensorRT has.
        wanted: The name of a source, or `auto`.

    Raises:
        UsageError: if there is no such source here.
    """
    if wanted != AUTO:
        source = TacticSource(wanted)
        require(capabilities, source)
        limit = " What is recorded so cannot be forced." if source is TacticSource.LOG else ""
        return source, f"Tactics are recorded from {_WORDS[source]}: --tactic-source asks for it.{limit}"
    best = capabilities.sources[0]
    return best, f"Tactics are recorded from {_WORDS[best]}: {_why(capabilities, best)}."


def require(capabilities: Capabilities, source: TacticSource) -> None:
    """Refuse a source that is not there.

    Raises:
        UsageError: if it is not; it says what to use.
    """
    if source in capabilities.sources:
        return
    best = capabilities.sources[0]
    advice = f"Record with --tactic-source {best.value} here"
    if best is TacticSource.LOG:
        advice += "; it cannot be forced"
    raise UsageError(f"{capabilities} {_lack(capabilities, source)}", f"{_WHERE[source]} {advice}.")


_WORDS: Final = {
    TacticSource.CACHE: "the editable timing cache",
    TacticSource.SELECTOR: "the algorithm selector",
    TacticSource.LOG: "the layers of the engine",
}
_WHERE: Final = {
    TacticSource.CACHE: "The editable timing cache came with TensorRT 10.8; TensorRT-RTX has none that works.",
    TacticSource.SELECTOR: "The algorithm selector was removed in TensorRT 11.",
}


def _why(capabilities: Capabilities, best: TacticSource) -> str:
    no_cache = _lack(capabilities, TacticSource.CACHE)
    if best is TacticSource.CACHE:
        return "it sees inside Myelin graphs, and can be forced"
    if best is TacticSource.SELECTOR:
        return f"{capabilities} {no_cache}"
    no_selector = _lack(capabilities, TacticSource.SELECTOR)
    return f"{capabilities} {no_selector} and {no_cache}. Tactics cannot be forced here"


def _lack(capabilities: Capabilities, source: TacticSource) -> str:
    if source is TacticSource.SELECTOR:
        return "has no algorithm selector"
    if capabilities.timing_cache_is_no_op:
        return "has an editable timing cache that does nothing"
    return "has no editable timing cache"


def _has_editable_cache(module: Any, flags: Any) -> bool:  # noqa: ANN401
    cache = getattr(module, "ITimingCache", None)
    return (
        hasattr(flags, "EDITABLE_TIMING_CACHE")
        and all(hasattr(cache, method) for method in _CACHE_METHODS)
        and hasattr(module, "TimingCacheKey")
        and hasattr(module, "TimingCacheValue")
    )


def _cache_is_no_op(module: Any) -> bool:  # noqa: ANN401
    if module.__name__ == "tensorrt_rtx":
        return True
    value = getattr(module, "TimingCacheValue", None)
    if value is None:
        return False
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        getattr(value(0, 0.0), "tacticHash", None)
    return any("no-op" in str(warning.message) for warning in heard)
