"""What goes wrong in the simulator: mistakes of its user, and what TensorRT would answer with an error line."""

from __future__ import annotations


class UsageError(Exception):
    """The simulator was asked for something that it cannot do; the text says what, and what to do instead."""


class GraphError(Exception):
    """A model that cannot become a network; names the node if one is to blame."""

    def __init__(self, message: str, *, node: int = -1, name: str = "", operator: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.node = node
        self.name = name
        self.operator = operator


class BuildFailure(Exception):  # noqa: N818 - not an error of the program: the build ends with None and a log line
    """A build that TensorRT ends with None: `kind` is the message of the personality, `fields` fill it."""

    def __init__(self, kind: str, **fields: object) -> None:
        super().__init__(kind, fields)
        self.kind = kind
        self.fields = fields


class PlanError(Exception):
    """Bytes that are not an engine of this personality; the text completes `Serialization assertion`."""
