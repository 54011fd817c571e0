"""The timing cache: measured times by what was timed, and the bytes in which they travel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.compiler.catalogue import Candidate, Setting

MAGIC = b"TRTSIM-TIMING-CACHE\n"


class CacheError(Exception):
    """Bytes that are not a timing cache of this personality."""


@dataclass(slots=True)
class TimingCache:
    """Times in milliseconds; `version` is that of the TensorRT that measured them."""

    version: str
    times: dict[str, float] = field(default_factory=dict)

    def dump(self) -> bytes:
        """As bytes, with a header that names the version and a checksum."""
        body = json.dumps(self.times, sort_keys=True).encode()
        return MAGIC + json.dumps([self.version, hashlib.sha256(body).hexdigest()]).encode() + b"\n" + body

    @staticmethod
    def load(data: bytes, version: str) -> TimingCache:
        """Read what `dump` wrote; no bytes at all are an empty cache."""
        if not data:
            return TimingCache(version=version)
        header, found, body = data[len(MAGIC) :].partition(b"\n")
        if not data.startswith(MAGIC) or not found:
            raise CacheError("magicTagRead == kTIMING_CACHE_TAG failed.")
        try:
            written, digest = json.loads(header)
        except ValueError:
            raise CacheError("header can be read failed.") from None
        if written != version:
            raise CacheError(
                f"versions are equal failed. Current Version: {version}, Serialized Version: {written}"
            )
        if hashlib.sha256(body).hexdigest() != digest:
            raise CacheError("checksum is right failed.")
        times = json.loads(body)
        return TimingCache(version=version, times={key: float(time) for key, time in times.items()})

    def combine(self, other: TimingCache) -> bool:
        """Take over what the other cache has and this one lacks; False if it is of another version."""
        if other.version != self.version:
            return False
        self.times = {**other.times, **self.times}
        return True


def key(candidate: Candidate, setting: Setting) -> str:
    """What a time belongs to: equal layers share it, whatever they are called."""
    layouts = [f"{layout.dtype}:{layout.format}" for layout in (*candidate.inputs, *candidate.outputs)]
    text = "\x1f".join([candidate.kernel.name, candidate.precision, *layouts, setting.signature])
    return "0x" + hashlib.sha256(text.encode()).hexdigest()[:32]
