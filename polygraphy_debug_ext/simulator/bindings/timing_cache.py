"""The timing cache: keys, values, and what can be asked of it and changed in it."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

import hashlib
import math
import struct
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Bound, Stored, View
from polygraphy_debug_ext.simulator.bindings.memory import IHostMemory, host_memory
from polygraphy_debug_ext.simulator.compiler.cache import Entry, TimingCache
from polygraphy_debug_ext.simulator.compiler.log import Log

if TYPE_CHECKING:
    from typing_extensions import Self

    from polygraphy_debug_ext.simulator.compiler.log import Sink

INVALID_HASH = (1 << 64) - 1
INVALID_TIME = -1.0
KEY_CHARACTERS = 34
COMMIT = "5a3d1c40b79e2f86"


class TimingCacheKey(Bound):
    """What an op is known by. Equal keys are different objects: compare their texts."""

    _text = ""

    def __init__(self) -> None:
        raise TypeError("tensorrt.TimingCacheKey: No constructor defined!")

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `0x` and 32 hexadecimal digits."""
        if len(text) != KEY_CHARACTERS:
            raise ValueError(f"The text should have exactly {KEY_CHARACTERS} characters.")
        if text[:2].lower() != "0x":
            raise ValueError("The text should start with prefix `0x` or `0X`.")
        if not all(character in "0123456789abcdef" for character in text[2:].lower()):
            raise ValueError("The text has invalid content.")
        key = cls.__new__(cls)
        key._text = text.lower()
        return key

    def __str__(self) -> str:
        return self._text


class TimingCacheValue(Bound):
    """Which tactic an op has, and how long it took; an unknown op has neither."""

    def __init__(self, tactic_hash: int, time_ms: float) -> None:
        if not 0 <= tactic_hash <= INVALID_HASH:
            raise TypeError(f"__init__(): incompatible constructor arguments: {tactic_hash}, {time_ms}")
        self.tacticHash = tactic_hash
        self.timingMSec = time_ms

    tacticHash = Stored(INVALID_HASH)  # noqa: N815 - TensorRT's name

    @property
    def timingMSec(self) -> float:  # noqa: N802 - TensorRT's name
        """The time, as far as 32 bits can tell."""
        return self._time

    @timingMSec.setter
    def timingMSec(self, time_ms: float) -> None:  # noqa: N802 - TensorRT's name
        self._time: float = struct.unpack("f", struct.pack("f", time_ms))[0]


class ITimingCache(Bound):
    """Measured times, which later builds can use. The ops inside Myelin can be seen and changed, all else is opaque.

    `editable` is called at each use: it tells whether the flag of the configuration is set.
    """

    def __init__(self, cache: TimingCache, sink: Sink, config: object) -> None:
        self._cache = cache
        self._sink = sink
        self._config = config

    _editable = View(lambda cache: cache._config._has("EDITABLE_TIMING_CACHE"))

    def serialize(self) -> IHostMemory:
        """As bytes."""
        data = self._cache.dump()
        log = Log(personality=self._api.personality, sink=self._sink)
        if "serializing" in self._api.personality.messages:
            log.message("serializing", uuid=uuid_of(self._cache.device), commit=COMMIT)
            log.message("serialized code", size=len(self._cache.code))
            log.message("serialized", count=len(self._cache))
        return host_memory(self._api, data)

    def combine(self, input_cache: ITimingCache, ignore_mismatch: bool) -> bool:  # noqa: FBT001 - TensorRT's signature
        """Take over what the other cache has and this one lacks."""
        return self._cache.combine(input_cache._cache, ignore_device=ignore_mismatch)

    def reset(self) -> bool:
        """Forget everything."""
        self._cache.times.clear()
        self._cache.ops.clear()
        return True

    def queryKeys(self) -> list[TimingCacheKey]:  # noqa: N802 - TensorRT's name
        """The keys of the ops inside Myelin."""
        if not self._editable:
            raise RuntimeError(
                "The timing cache is not editable: BuilderFlag.EDITABLE_TIMING_CACHE is not set."
            )
        parse = self._api.classes["TimingCacheKey"].parse  # type: ignore[attr-defined]  # a class made at run time
        return [parse(key) for key in self._cache.ops]

    def query(self, key: TimingCacheKey) -> TimingCacheValue:
        """What is known about an op; the invalid value if nothing is."""
        entry = self._cache.ops.get(str(key)) if self._editable else None
        if entry is None:
            return self._api.new(TimingCacheValue, INVALID_HASH, INVALID_TIME)
        return self._api.new(TimingCacheValue, entry.hash, entry.time_ms)

    def update(self, key: TimingCacheKey, value: TimingCacheValue) -> bool:
        """Give an op that is known another tactic; a time that is not a number makes it unknown."""
        text = str(key)
        if not self._editable or text not in self._cache.ops:
            return False
        if math.isnan(value.timingMSec):
            del self._cache.ops[text]
            return True
        if value.tacticHash == INVALID_HASH or value.timingMSec < 0:
            return False
        self._cache.ops[text] = Entry(hash=value.tacticHash, time_ms=value.timingMSec)
        return True


def uuid_of(device: str) -> str:
    """The UUID of a GPU, which here follows from its name."""
    digits = hashlib.sha256(device.encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
