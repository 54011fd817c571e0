"""Who records or forces the tactics of a build: by what was asked for, and by what this TensorRT has."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from polygraphy.logger import G_LOGGER, LogMode

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Source, Witness
from polygraphy_debug_ext.trt.avoiding import AvoidFilter
from polygraphy_debug_ext.trt.cache import CacheRecorder, CacheReplayer, CacheStart
from polygraphy_debug_ext.trt.capabilities import AUTO, TacticSource, choose_source, probe, require
from polygraphy_debug_ext.trt.module import tensorrt
from polygraphy_debug_ext.trt.recording import EngineRecorder
from polygraphy_debug_ext.trt.selector import Preference, Recorder, Replayer, SelectorHandler

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.trt.avoiding import Avoidance
    from polygraphy_debug_ext.trt.heard import Timings
    from polygraphy_debug_ext.trt.joining import Cached
    from polygraphy_debug_ext.trt.logger import Listener
    from polygraphy_debug_ext.trt.selector import Filter


class Handler(Protocol):
    """Has a say before and after a build. `raised` is what it raised where TensorRT caught it."""

    @property
    def raised(self) -> Exception | None:
        """What it raised in between."""

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Change the configuration of the build."""

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Conclude from the configuration and the layers of the engine that was built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TacticOptions:
    """What was asked for: a replay to write or to force, through what, and how strictly; what to avoid; how far to explore.

    `timing_cache` says that the user loads a timing cache. `explore` is the margin, or None.
    """

    save: Path | None = None
    load: Path | None = None
    source: str = AUTO
    require_honoured: bool = False
    ignore_mismatch: bool = False
    timing_cache: bool = False
    avoid: Path | None = None
    explore: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What one build is to do about tactics.

    `forced` is what it has to have, `bases` the timing caches for that. Else it may start from a cache of this run (`start`), with
    entries (`pins`) put into it. `preferred` are tactic ids by layer, and `avoidance` what a selector is not to offer.
    """

    forced: Assignment | None = None
    bases: tuple[bytes, ...] = ()
    start: bytes | None = None
    pins: Mapping[str, Cached | None] = field(default_factory=dict)
    preferred: Mapping[str, int] = field(default_factory=dict)
    avoidance: Avoidance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """Those who handle one build, in their order."""

    each: tuple[Handler, ...]
    recorder: CacheRecorder | Recorder | None = None
    replayer: CacheReplayer | Replayer | None = None

    @property
    def raised(self) -> Exception | None:
        """What the first of them raised."""
        return next((handler.raised for handler in self.each if handler.raised is not None), None)

    def prepare(self, config: Any) -> None:  # noqa: ANN401 - TensorRT has no types
        """Change the configuration of the build."""
        for handler in self.each:
            handler.prepare(config)

    def finish(self, config: Any, layers: Sequence[EngineLayer]) -> None:  # noqa: ANN401
        """Conclude from the configuration and the layers of the engine that was built."""
        for handler in self.each:
            handler.finish(config, layers)

    @property
    def not_honoured(self) -> dict[str, str]:
        """Why the engine does not have what was forced, by layer."""
        match self.replayer:
            case None:
                return {}
            case CacheReplayer():
                return {**self.replayer.problems, **self.replayer.loose}
            case Replayer():
                return dict(self.replayer.problems)

    @property
    def void(self) -> frozenset[str]:
        """Layers at which forcing means nothing."""
        return self.replayer.void if isinstance(self.replayer, CacheReplayer) else frozenset()


def source_of(options: TacticOptions, forced: Assignment | None) -> TacticSource:
    """Return through what tactics are learnt and forced; a replay is forced in the way in which it was recorded.

    Raises:
        UsageError: if this TensorRT cannot do what was asked for.
    """
    capabilities = probe(tensorrt())
    if forced is None:
        source, reason = choose_source(capabilities, options.source)
        if options.save is not None:
            G_LOGGER.info(reason, mode=LogMode.ONCE)
        return source
    if forced.source is Source.TIMING_CACHE:
        source = TacticSource.CACHE
    elif forced.source in {Source.SELECTOR, Source.REPLAY}:
        source = TacticSource.SELECTOR
    else:
        raise UsageError(
            f"{forced.origin} was recorded from the {forced.source.value}, and cannot be forced",
            "Record it with --tactic-source cache or selector, where TensorRT has them.",
        )
    require(capabilities, source)
    return source


class Maker:
    """Makes the handlers of builds.

    Args:
        options: What was asked for.
        listener: Hears what TensorRT logs.
        timings: What it heard of timings.
    """

    def __init__(self, options: TacticOptions, listener: Listener, timings: Timings) -> None:
        self._options = options
        self._listener = listener
        self._timings = timings

    def handlers(
        self, wish: Wish, source: TacticSource, metadata: Mapping[str, object], *, record: bool
    ) -> Handlers:
        """Return who handles a build. With `record`, what it chose is kept even if it goes to no file."""
        path = self._options.save
        if source is TacticSource.LOG:
            recorders = () if path is None else (EngineRecorder(path, metadata),)
            return Handlers(each=recorders)
        if source is TacticSource.SELECTOR:
            return self._selecting(wish, Recorder(path, metadata) if record else None)
        return self._caching(wish, metadata, record=record)

    def _selecting(self, wish: Wish, recorder: Recorder | None) -> Handlers:
        replayer = None
        if wish.forced is not None:
            replayer = Replayer(wish.forced, require=self._options.require_honoured)
        filters = self._filters(wish)
        if replayer is not None:
            filters.append(replayer)
        if not filters and recorder is None:
            return Handlers(each=())
        handler = SelectorHandler(filters, recorder, keep_timing_cache=self._options.timing_cache)
        return Handlers(each=(handler,), recorder=recorder, replayer=replayer)

    def _caching(self, wish: Wish, metadata: Mapping[str, object], *, record: bool) -> Handlers:
        each: list[Handler] = []
        recorder = replayer = None
        if wish.forced is not None:
            replayer = CacheReplayer(
                wish.forced,
                wish.bases,
                self._listener,
                ignore_mismatch=self._options.ignore_mismatch,
                require=self._options.require_honoured,
            )
            each.append(replayer)
        if wish.start is not None:
            each.append(CacheStart(wish.start, wish.pins))
        if record:
            fresh = not (each or self._options.timing_cache)
            recorder = CacheRecorder(self._options.save, self._listener, metadata, fresh=fresh)
            each.append(recorder)
        if filters := self._filters(wish):
            # Layers outside of Myelin are not in the editable part of the cache.
            each.append(SelectorHandler(filters, None, keep_timing_cache=True))
        return Handlers(each=tuple(each), recorder=recorder, replayer=replayer)

    def _filters(self, wish: Wish) -> list[Filter]:
        filters: list[Filter] = []
        if wish.avoidance is not None:
            filters.append(AvoidFilter(wish.avoidance, self._timings))
        if wish.preferred:
            filters.append(Preference(wish.preferred))
        return filters


def loose_tactics(assignment: Assignment) -> dict[str, int]:
    """The tactic ids of layers that were recorded beside the timing cache, which cannot force them."""
    return {
        name: tactic.tactic
        for name, tactic in assignment.layers.items()
        if tactic.cache_key is None and tactic.tactic is not None and Witness.ENGINE in tactic.witnesses
    }
