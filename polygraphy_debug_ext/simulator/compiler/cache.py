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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What was picked for an op inside Myelin, and how long it took."""

    hash: int
    time_ms: float


@dataclass(slots=True, kw_only=True)
class TimingCache:
    """Times in milliseconds, of layers by what was timed, and picks of ops by their key.

    `version` is that of the TensorRT that measured them, `device` the GPU; `code` stands for the code that was compiled.
    """

    version: str
    device: str = ""
    times: dict[str, float] = field(default_factory=dict)
    ops: dict[str, Entry] = field(default_factory=dict)
    code: str = ""

    def __len__(self) -> int:
        return len(self.times) + len(self.ops)

    def dump(self) -> bytes:
        """As bytes, with a header that names version and device, and a checksum."""
        ops = {key: [entry.hash, entry.time_ms] for key, entry in self.ops.items()}
        body = json.dumps({"times": self.times, "ops": ops, "code": self.code}, sort_keys=True).encode()
        header = [self.version, self.device, hashlib.sha256(body).hexdigest()]
        return MAGIC + json.dumps(header).encode() + b"\n" + body

    @staticmethod
    def load(data: bytes, version: str, device: str = "") -> TimingCache:
        """Read what `dump` wrote; no bytes at all are an empty cache."""
        if not data:
            return TimingCache(version=version, device=device)
        header, found, body = data[len(MAGIC) :].partition(b"\n")
        if not data.startswith(MAGIC) or not found:
            raise CacheError("magicTagRead == kTIMING_CACHE_TAG failed.")
        try:
            written, measured_on, digest = json.loads(header)
        except ValueError:
            raise CacheError("header can be read failed.") from None
        if written != version:
            raise CacheError(
                f"versions are equal failed. Current Version: {version}, Serialized Version: {written}"
            )
        if hashlib.sha256(body).hexdigest() != digest:
            raise CacheError("checksum is right failed.")
        fields = json.loads(body)
        return TimingCache(
            version=version,
            device=measured_on,
            times={key: float(time) for key, time in fields["times"].items()},
            ops={
                key: Entry(hash=int(tag), time_ms=float(time)) for key, (tag, time) in fields["ops"].items()
            },
            code=fields["code"],
        )

    def combine(self, other: TimingCache, *, ignore_device: bool = False) -> bool:
        """Take over what the other cache has and this one lacks; False if it is of another version or device."""
        if other.version != self.version or not (ignore_device or other.device == self.device):
            return False
        self.times = {**other.times, **self.times}
        self.ops = {**other.ops, **self.ops}
        return True


def key(candidate: Candidate, setting: Setting) -> str:
    """What a time belongs to: equal layers share it, whatever they are called."""
    layouts = [f"{layout.dtype}:{layout.format}" for layout in (*candidate.inputs, *candidate.outputs)]
    text = "\x1f".join([candidate.kernel.name, candidate.precision, *layouts, setting.signature])
    return "0x" + hashlib.sha256(text.encode()).hexdigest()[:32]
