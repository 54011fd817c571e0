"""A personality: what one version of TensorRT has, and how it talks. All of it is data in `personalities/`.

Code asks a personality what exists (an enum member, a member of a class), never which version it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT = "10.13"
DIRECTORY = Path(__file__).parent / "personalities"


@dataclass(frozen=True, slots=True, kw_only=True)
class Personality:
    """One version of TensorRT: `messages` maps a kind of log line to its severity and template.

    `myelin` says which kinds of layers Myelin takes, `autotuning` how the table of an op begins, with and without its key.
    """

    name: str
    version: str
    serialization: int
    tensor_text: str
    runner_text: str
    invalid_time: str
    layer_information: Mapping[str, object]
    myelin: Mapping[str, Sequence[str]]
    autotuning: Mapping[str, str]
    runners: Mapping[str, int]
    messages: Mapping[str, Sequence[str]]
    enums: Mapping[str, Mapping[str, int]]
    classes: Mapping[str, Sequence[str]]
    functions: Sequence[str]

    def has(self, name: str, member: str) -> bool:
        """Whether the enum or class `name` has this member."""
        return member in self.enums.get(name, ()) or member in self.classes.get(name, ())

    def implementation(self, runner: str) -> int:
        """The id of a runner, as an unsigned 32-bit number."""
        return self.runners[runner]


def names() -> tuple[str, ...]:
    """The personalities that exist, oldest first."""
    return tuple(
        sorted(
            (path.stem for path in DIRECTORY.glob("*.json")),
            key=lambda name: [int(n) for n in name.split(".")],
        )
    )


@cache
def load(name: str) -> Personality:
    """The personality of this name."""
    if name not in names():
        raise UsageError(f"there is no personality {name!r}: choose one of {', '.join(names())}")
    fields = json.loads((DIRECTORY / f"{name}.json").read_text(encoding="utf-8"))
    return Personality(**fields)
