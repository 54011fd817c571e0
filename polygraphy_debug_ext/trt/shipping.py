"""A timing cache to ship: builds that start from it choose the recorded tactics, with `trtexec --timingCacheFile` for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polygraphy.backend.trt import util as trt_util

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.trt.capabilities import TacticSource, probe, require
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Assignment


def timing_cache(assignments: Sequence[Assignment]) -> bytes:
    """Return the serialized timing cache of builds that were recorded with theirs; where they differ, the first one counts.

    Raises:
        UsageError: if there is no TensorRT with an editable timing cache, or it cannot read or combine theirs.
    """
    trt = tensorrt()
    require(probe(trt), TacticSource.CACHE)
    config = trt.Builder(trt_util.get_trt_logger()).create_builder_config()
    config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)
    caches = {}
    for assignment in assignments:
        data = assignment.timing_cache or b""
        # A cache is not put together with itself: TensorRT-RTX hangs then.
        if data not in caches:
            caches[data] = _loaded(config, data, assignment)
    first, *others = caches.values()
    for other in others:
        if not first.combine(other, False):
            raise UsageError(
                "The timing caches do not go together: they were made by different versions or on different devices",
                "Convert the replays one by one.",
            )
    for tactic in assignments[0].layers.values():
        # The replay may have been made from several, or by hand.
        if tactic.cache_key is not None and tactic.tactic is not None:
            key = trt.TimingCacheKey.parse(tactic.cache_key)
            first.update(key, trt.TimingCacheValue(tactic.tactic, tactic.time_ms or 0.0))
    return bytes(first.serialize())


def _loaded(config: Any, data: bytes, assignment: Assignment) -> Any:  # noqa: ANN401 - TensorRT has no types
    cache = config.create_timing_cache(data)
    if cache is None:
        raise UsageError(
            f"The timing cache in {assignment.origin} cannot be read by this TensorRT",
            "Use the version that made it.",
        )
    return cache
