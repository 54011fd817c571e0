"""The editable timing cache (TensorRT 10.8 and later): records what a build chose from it, and forces recorded choices through it.

The cache of a build is read back by key, and joined with the autotuning tables of the log and the layers of the engine. It
travels in the replay: a forced build starts from it. Nothing but the engine proves that a forced tactic is in use.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.model import Assignment, Source, Tactic, Witness
from polygraphy_debug_ext.trt.honour import tell
from polygraphy_debug_ext.trt.joining import Cached, join
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.recording import write_replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.trt.logger import Listener

#: What the cache holds where it has nothing to say.
_INVALID_HASH: Final = 2**64 - 1


class CacheRecorder:
    """Keeps what a build chose, and writes it to a replay if there is a path.

    Args:
        path: Where the replay goes.
        listener: Hears what TensorRT logs.
        metadata: What builds.
        fresh: Whether to begin with an empty cache, so that everything is timed; else with what is there.
    """

    raised = None

    def __init__(
        self, path: Path | None, listener: Listener, metadata: Mapping[str, object], *, fresh: bool
    ) -> None:
        self._path = path
        self._listener = listener
        self._metadata = metadata
        self._fresh = fresh
        self.assignment = Assignment(layers={}, source=Source.TIMING_CACHE)

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Make the cache editable."""
        _make_editable(config)
        if self._fresh:
            config.set_timing_cache(config.create_timing_cache(b""), False)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Write the replay."""
        cache = config.get_timing_cache()
        self.assignment = Assignment(
            layers=join(entries(cache), self._listener.ops(), layers),
            source=Source.TIMING_CACHE,
            fields=frozenset(),
            metadata=self._metadata,
            timing_cache=bytes(cache.serialize()),
        )
        if self._path is not None:
            G_LOGGER.info(f"Saving tactic replay file to {self._path}")
            write_replay(self._path, self.assignment)


class CacheStart:
    """Lets a build start from the timing cache of an earlier one of this run, with some entries changed.

    Args:
        data: The serialized cache.
        pins: Entries to put in, by key; None takes one out, so that it is timed again.
    """

    raised = None

    def __init__(self, data: bytes, pins: Mapping[str, Cached | None]) -> None:
        self._data = data
        self._pins = pins

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Set the cache."""
        _make_editable(config)
        trt = tensorrt()
        cache = config.create_timing_cache(self._data)
        for key, pin in self._pins.items():
            value = (
                trt.TimingCacheValue(0, math.nan)
                if pin is None
                else trt.TimingCacheValue(pin.tactic, pin.time_ms)
            )
            cache.update(trt.TimingCacheKey.parse(key), value)
        config.set_timing_cache(cache, True)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Whether the entries were followed is seen in the engine."""


class CacheReplayer:
    """Forces the tactics of a replay, and says which were not honoured.

    Args:
        assignment: What to force.
        bases: Serialized caches; put together, they are where the build starts from.
        listener: Hears what TensorRT logs.
        ignore_mismatch: Whether a cache of another device, version or CUDA may be used.
        require: Whether a tactic that was not honoured fails the build.
    """

    raised = None

    def __init__(
        self,
        assignment: Assignment,
        bases: Sequence[bytes],
        listener: Listener,
        *,
        ignore_mismatch: bool,
        require: bool,
    ) -> None:
        self._assignment = assignment
        # A cache is not put together with itself: TensorRT-RTX hangs then.
        self._bases = tuple(dict.fromkeys(bases)) or (b"",)
        self._listener = listener
        self._ignore_mismatch = ignore_mismatch
        self._require = require
        self.problems: dict[str, str] = {}
        #: Layers that have no key, so that the cache cannot force them, and that came out otherwise.
        self.loose: dict[str, str] = {}

    @property
    def void(self) -> frozenset[str]:
        """Layers whose pick the recorded engine did not have either."""
        return frozenset(name for name, tactic in self._pins.items() if tactic.swallowed)

    @property
    def _pins(self) -> dict[str, Tactic]:
        return {
            name: tactic for name, tactic in self._assignment.layers.items() if tactic.cache_key is not None
        }

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Put the recorded tactics into the cache; what was not recorded is taken out, and is free.

        Raises:
            BuildError: if TensorRT refuses the cache.
        """
        self.problems, self.loose = {}, {}
        _make_editable(config)
        cache = self._base(config)
        trt = tensorrt()
        pins = self._pins
        for name, tactic in pins.items():
            value = trt.TimingCacheValue(tactic.tactic, 0.0 if tactic.time_ms is None else tactic.time_ms)
            if not cache.update(trt.TimingCacheKey.parse(tactic.cache_key), value):
                self.problems[name] = f"its key {tactic.cache_key} is not in the timing cache"
        recorded = {tactic.cache_key for tactic in pins.values()}
        for key in cache.queryKeys():
            if str(key) not in recorded:
                cache.update(key, trt.TimingCacheValue(0, math.nan))
        if not config.set_timing_cache(cache, self._ignore_mismatch):
            raise BuildError(
                f"TensorRT refuses the timing cache in {self._origin}: it was made by another version, on another device or "
                "with another CUDA",
                _REMEDY,
            )

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Hold what was built against what was asked for.

        Raises:
            BuildError: if something was not honoured, and had to be.
        """
        pins = self._pins
        if self._listener.cache_refused:
            self.problems = dict.fromkeys(pins, "TensorRT did not use the timing cache")
        else:
            self._verify(pins, entries(config.get_timing_cache()), layers)
        void = self.void
        self.problems = {name: problem for name, problem in self.problems.items() if name not in void}
        tell(self.problems, len(pins) - len(void), len(void), require=self._require)

    @property
    def _origin(self) -> str:
        return self._assignment.origin or "the replay"

    def _base(self, config: Any) -> Any:  # noqa: ANN401
        """The caches put together; where they differ, the first counts."""
        first, *others = [config.create_timing_cache(data) for data in self._bases]
        if first is None or None in others:
            raise BuildError(f"The timing cache in {self._origin} cannot be read by this TensorRT", _REMEDY)
        for other in others:
            if not first.combine(other, self._ignore_mismatch):
                raise BuildError(
                    f"The timing caches for {self._origin} cannot be put together: they were made by different versions or "
                    "on different devices",
                    _REMEDY,
                )
        return first

    def _verify(
        self, pins: Mapping[str, Tactic], cache: Mapping[str, Cached], layers: Sequence[EngineLayer]
    ) -> None:
        built = join(cache, self._listener.ops(), layers)
        kernels = {
            name: tactic.kernel for name, tactic in built.items() if Witness.ENGINE in tactic.witnesses
        }
        for name, tactic in self._assignment.layers.items():
            if name in self.problems or tactic.swallowed:
                continue
            entry = cache.get(tactic.cache_key or "")
            problems = self.problems if name in pins else self.loose
            if name in pins and (entry is None or entry.tactic != tactic.tactic):
                held = "nothing" if entry is None else f"{entry.tactic:#x}"
                problems[name] = f"the timing cache has {held} instead of {tactic.tactic:#x}"
            elif tactic.kernel is not None and kernels and kernels.get(name) != tactic.kernel:
                found = kernels.get(name)
                problems[name] = (
                    f"the engine has {found} instead of {tactic.kernel}"
                    if found
                    else "the engine has no such layer"
                )


_REMEDY: Final = (
    "Force it where it was recorded, record it again here, or try --ignore-timing-cache-mismatch."
)


def entries(cache: Any) -> dict[str, Cached]:  # noqa: ANN401 - TensorRT has no types
    """Return the entries of an editable timing cache by key; invalid ones are left out."""
    found = {}
    for key in cache.queryKeys():
        value = cache.query(key)
        if value.tacticHash != _INVALID_HASH and value.timingMSec >= 0:
            found[str(key)] = Cached(tactic=value.tacticHash, time_ms=value.timingMSec)
    return found


def _make_editable(config: Any) -> None:  # noqa: ANN401
    flags = tensorrt().BuilderFlag
    config.set_flag(flags.EDITABLE_TIMING_CACHE)
    # Compiled code makes the cache large, and says nothing about tactics.
    config.set_flag(flags.DISABLE_COMPILATION_CACHE)
