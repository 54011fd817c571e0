"""Who records or forces the tactics of a build: by what was asked for, and by what this TensorRT has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Source
from polygraphy_debug_ext.trt.cache import CacheRecorder, CacheReplayer
from polygraphy_debug_ext.trt.capabilities import AUTO, TacticSource, choose_source, probe, require
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.recording import EngineRecorder
from polygraphy_debug_ext.trt.selector import Recorder, Replayer, SelectorHandler

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.trt.logger import Listener


class Handler(Protocol):
    """Has a say before and after a build."""

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Change the configuration of the build."""

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Conclude from the configuration and the layers of the engine that was built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticOptions:
    """What was asked for: a replay to write or to force, through what, and how strictly.

    `timing_cache` says that the user loads a timing cache.
    """

    save: Path | None = None
    load: Path | None = None
    source: str = AUTO
    require_honoured: bool = False
    ignore_mismatch: bool = False
    timing_cache: bool = False


def handler(options: TacticOptions, forced: Assignment | None, listener: Listener) -> Handler | None:
    """Return who handles the next build; None if tactics are of no concern. `forced` is what `options.load` holds.

    Raises:
        UsageError: if this TensorRT cannot do what was asked for.
    """
    if forced is not None:
        return _forcing(forced, options, listener)
    if options.save is None:
        return None
    source, reason = choose_source(probe(tensorrt()), options.source)
    G_LOGGER.info(reason, mode=LogMode.ONCE)
    if source is TacticSource.CACHE:
        return CacheRecorder(options.save, listener, fresh=not options.timing_cache)
    if source is TacticSource.SELECTOR:
        return SelectorHandler(Recorder(options.save), keep_timing_cache=options.timing_cache)
    return EngineRecorder(options.save)


def _forcing(assignment: Assignment, options: TacticOptions, listener: Listener) -> Handler:
    """Force a replay in the way in which it was recorded."""
    if assignment.source is Source.TIMING_CACHE:
        require(probe(tensorrt()), TacticSource.CACHE)
        return CacheReplayer(
            assignment, listener, ignore_mismatch=options.ignore_mismatch, require=options.require_honoured
        )
    if assignment.source in {Source.SELECTOR, Source.REPLAY}:
        require(probe(tensorrt()), TacticSource.SELECTOR)
        return SelectorHandler(
            Replayer(assignment, require=options.require_honoured), keep_timing_cache=options.timing_cache
        )
    raise UsageError(
        f"{options.load} was recorded from the {assignment.source.value}, and cannot be forced",
        "Record it with --tactic-source cache or selector, where TensorRT has them.",
    )
