"""What parent and build worker say to each other: one JSON object a line, each of a known type."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec


class _Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """A line."""


class Load(_Message, tag="load", kw_only=True, frozen=True):
    """Load the network, by these arguments of the command line."""

    arguments: dict[str, Any]


class BuildTrial(_Message, tag="build", kw_only=True, frozen=True):
    """Build the engine of a trial.

    `force` is a replay whose tactics are forced in this one build, `caches` are replays whose timing caches it starts from as
    well.
    """

    trial: int
    force: str | None = None
    caches: list[str] = []


class Ready(_Message, tag="ready", kw_only=True, frozen=True):
    """The network is loaded; this is what builds."""

    environment: dict[str, str]


class Said(_Message, tag="said", kw_only=True, frozen=True):
    """A line for the terminal, exactly as it is to be shown."""

    text: str
    error: bool


class Built(_Message, tag="built", kw_only=True, frozen=True):
    """There is an engine. Of the tactics that were forced, `not_honoured` says by layer why the engine does not have them; `void`
    are layers whose tactics the recorded engine did not have either.
    """

    trial: int
    seconds: float
    not_honoured: dict[str, str] = {}
    void: list[str] = []


class Failed(_Message, tag="failed", kw_only=True, frozen=True):
    """What was asked for cannot be done. With a remedy it is the user's to mend."""

    problem: str
    remedy: str
    seconds: float = 0.0


Request: TypeAlias = Load | BuildTrial
Answer: TypeAlias = Ready | Said | Built | Failed

REQUESTS: Final = msgspec.json.Decoder(Request)
ANSWERS: Final = msgspec.json.Decoder(Answer)
_ENCODER: Final = msgspec.json.Encoder()


def line(message: Request | Answer) -> bytes:
    """Return the line of a message."""
    return _ENCODER.encode(message) + b"\n"
