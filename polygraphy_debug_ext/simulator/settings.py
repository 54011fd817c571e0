"""The settings of a simulation, which travel to every child process in one environment variable (JSON)."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from functools import cache

from polygraphy_debug_ext.simulator import faults, personality
from polygraphy_debug_ext.simulator.errors import UsageError

VARIABLE = "POLYGRAPHY_TRT_SIM"
FORMAT = 1
DEFAULT_NOISE = 0.06
DEFAULT_GPU = "NVIDIA A100-SXM4-40GB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `polygraphy-trt-sim` was asked for: `noise` is the spread (sigma) of measured times, `fault` the specifications.

    `gpu` is the name of the device that is imitated: nothing but timing caches knows it.
    """

    trt: str = personality.DEFAULT
    seed: int | None = None
    noise: float = DEFAULT_NOISE
    fault: tuple[str, ...] = ()
    gpu: str = DEFAULT_GPU

    def faults(self) -> tuple[faults.Fault, ...]:
        """The planted faults."""
        return _parse_all(self.fault)

    def dump(self) -> str:
        """As text for the environment."""
        return json.dumps({"format": FORMAT, **asdict(self)})


@cache
def _parse_all(specs: tuple[str, ...]) -> tuple[faults.Fault, ...]:
    return tuple(faults.parse(spec) for spec in specs)


def validated(settings: Settings) -> Settings:
    """The same settings, if they make sense."""
    personality.load(settings.trt)
    settings.faults()
    if not (math.isfinite(settings.noise) and 0 <= settings.noise <= 1):
        raise UsageError(f"the noise must be between 0 and 1, not {settings.noise}")
    return settings


@cache
def load(text: str) -> Settings:
    """Read what `dump` wrote; anything else is refused with a sentence."""
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise _bad(f"not JSON ({error})") from None
    if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
        raise _bad(f"not a set of settings of format {FORMAT}")
    unknown = set(fields) - {"trt", "seed", "noise", "fault", "gpu"}
    if unknown:
        raise _bad(f"unknown field {min(unknown)!r}")
    trt, seed = fields.get("trt", personality.DEFAULT), fields.get("seed")
    noise, specs = fields.get("noise", DEFAULT_NOISE), fields.get("fault", [])
    if not isinstance(trt, str):
        raise _bad("trt is not text")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise _bad("seed is not a whole number")
    if not isinstance(noise, (int, float)) or isinstance(noise, bool):
        raise _bad("noise is not a number")
    if not isinstance(specs, list) or not all(isinstance(spec, str) for spec in specs):
        raise _bad("fault is not a list of texts")
    gpu = fields.get("gpu", DEFAULT_GPU)
    if not isinstance(gpu, str) or not gpu:
        raise _bad("gpu is not a name")
    return validated(Settings(trt=trt, seed=seed, noise=float(noise), fault=tuple(specs), gpu=gpu))


def current() -> Settings:
    """The settings of this process; read afresh, as a test or a check may change the environment."""
    text = os.environ.get(VARIABLE)
    if text is None:
        raise UsageError(
            "the TensorRT simulator is on the path, but was not asked for: start with polygraphy-trt-sim"
        )
    return load(text)


def _bad(problem: str) -> UsageError:
    return UsageError(
        f"the environment variable {VARIABLE} is damaged: {problem}. Let polygraphy-trt-sim set it"
    )
