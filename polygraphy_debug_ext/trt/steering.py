"""Steers the builds of a run: what each is to do about tactics, and whether it has to be done again.

Without anything to avoid or to explore, each build is free or forced, and done once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError, UsageError
from polygraphy_debug_ext.formats import avoid, replay
from polygraphy_debug_ext.model import Source
from polygraphy_debug_ext.trt.avoiding import Avoidance, in_engine, replacements, tell_costs
from polygraphy_debug_ext.trt.capabilities import TacticSource, probe
from polygraphy_debug_ext.trt.exploring import Explorer
from polygraphy_debug_ext.trt.handlers import Maker, Wish, loose_tactics, source_of
from polygraphy_debug_ext.trt.heard import Timings
from polygraphy_debug_ext.trt.joining import join, recorded_ops
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.model import Assignment
    from polygraphy_debug_ext.trt.avoiding import Change, Offence
    from polygraphy_debug_ext.trt.handlers import Handlers, TacticOptions
    from polygraphy_debug_ext.trt.joining import Cached
    from polygraphy_debug_ext.trt.logger import Listener

#: Builds that one engine may take until nothing of it is on the avoid list.
ROUNDS: Final = 8


class Steering:
    """Says how to build. One is made for a run; `begin`, `handlers`, `again` are called in this order for each engine.

    Args:
        options: What was asked for.
        listener: Hears what TensorRT logs.

    Raises:
        UsageError: if this TensorRT cannot do it, or the options contradict each other.
        FormatError: if a replay or an avoid list cannot be read.
    """

    def __init__(self, options: TacticOptions, listener: Listener) -> None:
        self._options = options
        self._listener = listener
        self._loaded = None if options.load is None else replay.read(options.load)
        self._active = any(value is not None for value in (options.save, options.avoid, options.explore))
        self._source = (
            source_of(options, self._loaded) if self._active or self._loaded is not None else TacticSource.LOG
        )
        self._timings = Timings()
        self._steers = options.avoid is not None or options.explore is not None
        if self._steers:
            self._require_sense()
            listener.timings = self._timings
        self._has_selector = probe(tensorrt()).algorithm_selector
        self._avoidance = self._read_avoidance()
        self._explorer = None if options.explore is None else Explorer(options.explore, self._avoidance)
        self._maker = Maker(options, listener, self._timings)
        #: Whether a selector is needed beside the cache, as something outside of Myelin was to be avoided.
        self._beside = False
        self._wish = Wish()
        self._now = self._source
        self._record = self._active
        self._pins: dict[str, Cached | None] = {}
        self._changes: dict[str, Change] = {}
        self._rounds = 0

    def begin(self, force: Path | None, caches: Sequence[Path]) -> None:
        """Plan the next engine, with the tactics of a replay forced if there is one, from these timing caches.

        Raises:
            DebugExtError: if that cannot be read, or cannot be forced here.
        """
        self._pins, self._changes, self._rounds = {}, {}, 0
        self._now, self._record = self._source, self._active
        if force is not None:
            self._wish = self._forced(replay.read(force), [replay.read(path) for path in caches])
            self._record = True
        elif self._loaded is not None:
            self._wish = self._forced(self._loaded, ())
            # A replay that is loaded is not saved again, as ever.
            self._record = self._steers
        else:
            self._wish = self._free()

    def handlers(self, metadata: Mapping[str, object]) -> Handlers:
        """Return who handles the next build."""
        return self._maker.handlers(self._wish, self._now, metadata, record=self._record)

    def again(self, handlers: Handlers, layers: Sequence[EngineLayer]) -> bool:
        """Take what was built; say whether it has to be built once more.

        Raises:
            BuildError: if what is to be avoided cannot be kept out.
        """
        if not self._steers or handlers.recorder is None:
            return False
        built = handlers.recorder.assignment
        if self._avoidance is not None and self._avoid(self._avoidance, built, layers):
            self._rounds += 1
            return True
        if self._explorer is not None:
            free = self._wish.forced is None and not self._wish.preferred and not self._wish.pins
            self._explorer.learn(built, self._listener.tuned(), self._timings, free=free)
        tell_costs(list(self._changes.values()))
        return False

    def _require_sense(self) -> None:
        option = "--avoid-tactics" if self._options.avoid is not None else "--explore"
        if self._source is TacticSource.LOG:
            capabilities = probe(tensorrt())
            can = len(capabilities.sources) > 1
            raise UsageError(
                f"{option} cannot work: "
                + (
                    "--tactic-source log only looks"
                    if can
                    else f"with {capabilities} tactics cannot be chosen"
                ),
                "Leave --tactic-source out." if can else f"Leave {option} out.",
            )
        if self._options.explore is not None and self._loaded is not None:
            raise UsageError("--explore and --load-tactics contradict each other", "Leave one of them out.")

    def _read_avoidance(self) -> Avoidance | None:
        if self._options.avoid is None:
            return None
        version = str(getattr(tensorrt(), "__version__", ""))
        found = Avoidance(avoid.read(self._options.avoid), version, self._timings)
        if self._loaded is not None:
            found.require_free_of(self._loaded)
        return found

    def _free(self) -> Wish:
        avoidance = self._for_selector()
        step = None if self._explorer is None else self._explorer.step()
        if step is None:
            return Wish(avoidance=avoidance)
        if self._source is TacticSource.SELECTOR:
            return Wish(avoidance=avoidance, preferred=step.layers)
        self._pins = dict(step.pins)
        return Wish(
            avoidance=avoidance,
            start=step.cache,
            pins=step.pins,
            preferred=step.layers if self._has_selector else {},
        )

    def _forced(self, forced: Assignment, others: Sequence[Assignment]) -> Wish:
        self._now = source_of(self._options, forced)
        if self._avoidance is not None:
            self._avoidance.require_free_of(forced)
        if forced.source is not Source.TIMING_CACHE:
            return Wish(forced=forced, avoidance=self._for_selector())
        replays = [forced, *others]
        self._listener.remember(recorded_ops(replays))
        return Wish(
            forced=forced,
            bases=tuple(each.timing_cache for each in replays if each.timing_cache is not None),
            preferred=loose_tactics(forced) if others and self._has_selector else {},
            avoidance=self._for_selector(),
        )

    def _for_selector(self) -> Avoidance | None:
        return self._avoidance if self._now is TacticSource.SELECTOR or self._beside else None

    def _avoid(self, avoidance: Avoidance, built: Assignment, layers: Sequence[EngineLayer]) -> bool:
        """Look for what is on the list; plan another build if there is something."""
        if not layers:
            raise BuildError(
                "The engine does not tell its layers: whether tactics were avoided cannot be seen",
                "Build with --profiling-verbosity detailed.",
            )
        self._listener.remember(self._listener.tuned())
        on_cache = built.source is Source.TIMING_CACHE
        offences = avoidance.offences(in_engine(built.layers if on_cache else join({}, (), layers)))
        if self._rounds == 0:
            avoidance.tell_of_idle_entries(self._listener.ops())
        if not offences:
            return False
        if self._rounds + 1 >= ROUNDS:
            raise BuildError(
                f"After {ROUNDS} builds the engine still has tactics that are to be avoided: {offences[0]}",
                "Narrow the entry, or take the layer out of the network.",
            )
        G_LOGGER.info(
            f"{len(offences)} of the engine's tactics are to be avoided, first {offences[0]}\nBuilding again without."
        )
        for offence in offences:
            if offence.tactic.cache_key is None:
                self._require_selector(offence, on_cache=on_cache)
                avoidance.ban(offence)
                self._beside = True
        self._wish = (
            self._next(avoidance, built)
            if on_cache
            else Wish(forced=self._wish.forced, preferred=self._wish.preferred, avoidance=avoidance)
        )
        return True

    def _next(self, avoidance: Avoidance, built: Assignment) -> Wish:
        """Start from the cache of the last build, with other entries for what is to be avoided."""
        pins, changes = replacements(avoidance, built, self._listener.ops())
        self._pins.update(pins)
        for change in changes:
            first = self._changes.get(change.layer)
            self._changes[change.layer] = change if first is None else first.then(change)
        return Wish(
            start=built.timing_cache,
            pins=self._pins,
            preferred=self._wish.preferred,
            avoidance=self._for_selector(),
        )

    def _require_selector(self, offence: Offence, *, on_cache: bool) -> None:
        """Outside of the timing cache only a selector can help; and it does not see into Myelin."""
        if offence.tactic.tactic is not None and self._has_selector:
            return
        cache = TacticSource.CACHE in probe(tensorrt()).sources and not on_cache
        raise BuildError(
            f"{offence}. It cannot be kept out: "
            + ("no other tactic of the layer is known" if on_cache else "the layer is inside a Myelin graph"),
            "Use --tactic-source cache."
            if cache
            else "Narrow the entry, or take the layer out of the network.",
        )
