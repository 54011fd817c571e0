"""The builder configuration: flags, profiles, the timing cache and what else the builder is told."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Bound, Dims, Stored, View
from polygraphy_debug_ext.simulator.bindings.timing_cache import ITimingCache
from polygraphy_debug_ext.simulator.compiler.cache import CacheError, TimingCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.compiler.log import Sink

DEVICE_MEMORY = 1 << 34


class IOptimizationProfile(Bound):
    """The shapes that inputs may have, and the values of inputs that hold shapes: minimum, optimum, maximum."""

    def __init__(self) -> None:
        self._shapes: dict[str, tuple[Dims, Dims, Dims]] = {}
        self._values: dict[str, tuple[list[int], list[int], list[int]]] = {}

    def set_shape(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:  # noqa: A002 - TensorRT's names
        """Set the shapes of an input."""
        ranks = {len(min), len(opt), len(max)}
        if len(ranks) > 1 or not all(
            low <= mid <= high for low, mid, high in zip(min, opt, max, strict=True)
        ):
            raise ValueError(f"shapes of {input!r} are not ordered: min={min}, opt={opt}, max={max}")
        self._shapes[input] = (self._api.new(Dims, min), self._api.new(Dims, opt), self._api.new(Dims, max))

    def get_shape(self, input: str) -> list[Dims]:  # noqa: A002 - TensorRT's name
        """The shapes of an input."""
        return list(self._shapes.get(input, ()))

    def set_shape_input(self, input: str, min: Sequence[int], opt: Sequence[int], max: Sequence[int]) -> None:  # noqa: A002 - TensorRT's names
        """Set the values of an input that holds shapes."""
        self._values[input] = (list(min), list(opt), list(max))

    def get_shape_input(self, input: str) -> list[list[int]]:  # noqa: A002 - TensorRT's name
        """The values of an input that holds shapes."""
        return list(self._values.get(input, ()))


class EnumStored:
    """An enum attribute that keeps what the user sets; the default is named, as enums differ between personalities."""

    def __init__(self, enum: str, member: str) -> None:
        self._enum, self._member, self._key = enum, member, ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_stored_{name}"

    def __get__(self, instance: IBuilderConfig | None, owner: type) -> BoundEnum:
        if instance is None:
            return self  # type: ignore[return-value]  # the class has the descriptor itself
        found: BoundEnum = vars(instance).get(self._key) or instance._api.enum(self._enum, self._member)
        return found

    def __set__(self, instance: IBuilderConfig, value: BoundEnum) -> None:
        vars(instance)[self._key] = value


class IBuilderConfig(Bound):
    """What the builder is told."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.reset()

    DLA_core = Stored(-1)
    algorithm_selector: Stored[object] = Stored(None)
    avg_timing_iterations = Stored(1)
    builder_optimization_level = Stored(3)
    default_device_type = EnumStored("DeviceType", "GPU")
    engine_capability = EnumStored("EngineCapability", "STANDARD")
    hardware_compatibility_level = EnumStored("HardwareCompatibilityLevel", "NONE")
    int8_calibrator: Stored[object] = Stored(None)
    max_aux_streams = Stored(0)
    num_optimization_profiles = View(lambda config: len(config._profiles))
    profiling_verbosity = EnumStored("ProfilingVerbosity", "LAYER_NAMES_ONLY")
    progress_monitor: Stored[object] = Stored(None)
    runtime_platform = EnumStored("RuntimePlatform", "SAME_AS_BUILD")
    tiling_optimization_level = EnumStored("TilingOptimizationLevel", "NONE")

    def reset(self) -> None:
        """Back to the defaults."""
        sink = self._sink
        vars(self).clear()
        self._sink = sink
        self._masks = {"BuilderFlag": 0, "QuantizationFlag": 0, "PreviewFeature": 0}
        self._masks["BuilderFlag"] = 1 << int(self._api.enum("BuilderFlag", "TF32"))
        self._sources = sum(1 << value for value in self._api.personality.enums["TacticSource"].values())
        self._pools: dict[str, int] = {}
        self._profiles: list[IOptimizationProfile] = []
        self._calibration_profile: IOptimizationProfile | None = None
        self._timing_cache: ITimingCache | None = None

    @property
    def flags(self) -> int:
        """The mask of builder flags."""
        return self._masks["BuilderFlag"]

    @flags.setter
    def flags(self, mask: int) -> None:
        self._masks["BuilderFlag"] = mask

    @property
    def quantization_flags(self) -> int:
        """The mask of quantization flags."""
        return self._masks["QuantizationFlag"]

    @quantization_flags.setter
    def quantization_flags(self, mask: int) -> None:
        self._masks["QuantizationFlag"] = mask

    def _set(self, kind: str, flag: BoundEnum, *, enable: bool) -> None:
        bit = 1 << int(flag)
        self._masks[kind] = self._masks[kind] | bit if enable else self._masks[kind] & ~bit

    def _has(self, name: str) -> bool:
        """Whether a builder flag exists and is set."""
        value = self._api.personality.enums["BuilderFlag"].get(name)
        return value is not None and bool(self._masks["BuilderFlag"] & (1 << value))

    def get_flag(self, flag: BoundEnum) -> bool:
        """Whether a builder flag is set."""
        return bool(self._masks["BuilderFlag"] & (1 << int(flag)))

    def set_flag(self, flag: BoundEnum) -> None:
        """Set a builder flag."""
        self._set("BuilderFlag", flag, enable=True)

    def clear_flag(self, flag: BoundEnum) -> None:
        """Clear a builder flag."""
        self._set("BuilderFlag", flag, enable=False)

    def get_quantization_flag(self, flag: BoundEnum) -> bool:
        """Whether a quantization flag is set."""
        return bool(self._masks["QuantizationFlag"] & (1 << int(flag)))

    def set_quantization_flag(self, flag: BoundEnum) -> None:
        """Set a quantization flag."""
        self._set("QuantizationFlag", flag, enable=True)

    def clear_quantization_flag(self, flag: BoundEnum) -> None:
        """Clear a quantization flag."""
        self._set("QuantizationFlag", flag, enable=False)

    def get_preview_feature(self, feature: BoundEnum) -> bool:
        """Whether a preview feature is enabled."""
        return bool(self._masks["PreviewFeature"] & (1 << int(feature)))

    def set_preview_feature(self, feature: BoundEnum, enable: bool) -> None:  # noqa: FBT001 - TensorRT's signature
        """Enable or disable a preview feature."""
        self._set("PreviewFeature", feature, enable=enable)

    def get_tactic_sources(self) -> int:
        """The mask of tactic sources."""
        return self._sources

    def set_tactic_sources(self, tactic_sources: int) -> bool:
        """Choose the libraries that tactics may come from."""
        self._sources = tactic_sources
        return True

    def get_memory_pool_limit(self, pool: BoundEnum) -> int:
        """The limit of a memory pool."""
        return self._pools.get(pool.name, DEVICE_MEMORY)

    def set_memory_pool_limit(self, pool: BoundEnum, pool_size: int) -> None:
        """Limit a memory pool."""
        self._pools[pool.name] = pool_size

    @property
    def max_workspace_size(self) -> int:
        """The limit of the workspace."""
        return self._pools.get("WORKSPACE", DEVICE_MEMORY)

    @max_workspace_size.setter
    def max_workspace_size(self, size: int) -> None:
        self._pools["WORKSPACE"] = size

    def add_optimization_profile(self, profile: IOptimizationProfile) -> int:
        """Add a profile; its index is returned."""
        self._profiles.append(profile)
        return len(self._profiles) - 1

    def get_calibration_profile(self) -> IOptimizationProfile | None:
        """The profile for calibration."""
        return self._calibration_profile

    def set_calibration_profile(self, profile: IOptimizationProfile) -> bool:
        """Set the profile for calibration."""
        self._calibration_profile = profile
        return True

    def create_timing_cache(self, serialized_timing_cache: bytes) -> ITimingCache:
        """A timing cache from bytes; what is not one of this version is not used, and an empty cache takes its place."""
        version, device = self._api.personality.version, self._api.settings().gpu
        try:
            cache = TimingCache.load(bytes(memoryview(serialized_timing_cache)), version, device)
        except CacheError as error:
            self._sink("WARNING", f"Error Code 1: Serialization (Serialization assertion {error})")
            self._sink("WARNING", "The timing cache will not be used!")
            cache = TimingCache(version=version, device=device)
        return self._api.new(ITimingCache, cache, self._sink, self)

    def set_timing_cache(self, cache: ITimingCache, ignore_mismatch: bool) -> bool:  # noqa: FBT001 - TensorRT's signature
        """Attach a timing cache: builds read it and add to it. One of another device is used only if that is asked for."""
        fits = ignore_mismatch or cache._cache.device == self._api.settings().gpu
        if not fits or cache._cache.version != self._api.personality.version:
            self._sink("WARNING", "The timing cache will not be used!")
            return False
        self._timing_cache = cache
        return True

    def get_timing_cache(self) -> ITimingCache | None:
        """The attached timing cache."""
        return self._timing_cache
