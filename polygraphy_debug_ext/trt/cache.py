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
from polygraphy_debug_ext.trt.module import environment, tensorrt
from polygraphy_debug_ext.trt.recording import write_replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.trt.logger import Listener

#: What the cache holds where it has nothing to say.
_INVALID_HASH: Final = 2**64 - 1


class CacheRecorder:
    """Writes what a build chose to a replay.

    Args:
        path: Where the replay goes.
        listener: Hears what TensorRT logs.
        fresh: Whether to begin with an empty cache, so that everything is timed; else with what the user loaded.
    """

    def __init__(self, path: Path, listener: Listener, *, fresh: bool) -> None:
        self._path = path
        self._listener = listener
        self._fresh = fresh

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Make the cache editable."""
        _make_editable(config)
        if self._fresh:
            config.set_timing_cache(config.create_timing_cache(b""), False)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Write the replay."""
        cache = config.get_timing_cache()
        assignment = Assignment(
            layers=join(entries(cache), self._listener.ops(), layers),
            source=Source.TIMING_CACHE,
            fields=frozenset(),
            metadata=dict(environment()),
            timing_cache=bytes(cache.serialize()),
        )
        G_LOGGER.info(f"Saving tactic replay file to {self._path}")
        write_replay(self._path, assignment)


class CacheReplayer:
    """Forces the tactics of a replay, and says which were not honoured.

    Args:
        assignment: What to force; its timing cache is where the build starts from.
        listener: Hears what TensorRT logs.
        ignore_mismatch: Whether a cache of another device, version or CUDA may be used.
        require: Whether a tactic that was not honoured fails the build.
    """

    def __init__(
        self, assignment: Assignment, listener: Listener, *, ignore_mismatch: bool, require: bool
    ) -> None:
        self._assignment = assignment
        self._listener = listener
        self._ignore_mismatch = ignore_mismatch
        self._require = require
        self._problems: dict[str, str] = {}

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
        self._problems = {}
        _make_editable(config)
        origin = self._assignment.origin or "the replay"
        cache = config.create_timing_cache(self._assignment.timing_cache or b"")
        if cache is None:
            raise BuildError(f"The timing cache in {origin} cannot be read by this TensorRT", _REMEDY)
        trt = tensorrt()
        pins = self._pins
        for name, tactic in pins.items():
            value = trt.TimingCacheValue(tactic.tactic, 0.0 if tactic.time_ms is None else tactic.time_ms)
            if not cache.update(trt.TimingCacheKey.parse(tactic.cache_key), value):
                self._problems[name] = f"its key {tactic.cache_key} is not in the timing cache"
        recorded = {tactic.cache_key for tactic in pins.values()}
        for key in cache.queryKeys():
            if str(key) not in recorded:
                cache.update(key, trt.TimingCacheValue(0, math.nan))
        if not config.set_timing_cache(cache, self._ignore_mismatch):
            raise BuildError(
                f"TensorRT refuses the timing cache in {origin}: it was made by another version, on another device or "
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
            self._problems = dict.fromkeys(pins, "TensorRT did not use the timing cache")
        else:
            self._verify(pins, entries(config.get_timing_cache()), layers)
        void = {name for name, tactic in pins.items() if tactic.swallowed}
        problems = {name: problem for name, problem in self._problems.items() if name not in void}
        tell(problems, len(pins) - len(void), len(void), require=self._require)

    def _verify(
        self, pins: Mapping[str, Tactic], cache: Mapping[str, Cached], layers: Sequence[EngineLayer]
    ) -> None:
        built = join(cache, self._listener.ops(), layers)
        kernels = {
            name: tactic.kernel for name, tactic in built.items() if Witness.ENGINE in tactic.witnesses
        }
        for name, tactic in pins.items():
            if name in self._problems or tactic.swallowed:
                continue
            entry = cache.get(tactic.cache_key or "")
            if entry is None or entry.tactic != tactic.tactic:
                held = "nothing" if entry is None else f"{entry.tactic:#x}"
                self._problems[name] = f"the timing cache has {held} instead of {tactic.tactic:#x}"
            elif tactic.kernel is not None and kernels and kernels.get(name) != tactic.kernel:
                found = kernels.get(name)
                self._problems[name] = (
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
