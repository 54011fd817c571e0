"""A tactic: the implementation and tactic id that TensorRT chose for a layer, with the layouts of its tensors.

Some sources name the kernel only. Ids reach us as signed or unsigned integers, depending on who wrote them; they are compared as unsigned ones
(32 bits for the implementation, 64 bits for the tactic), and printed as Polygraphy prints them (signed tactic).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

IMPLEMENTATION_MASK = 2**32 - 1
TACTIC_MASK = 2**64 - 1


class Field(enum.Enum):
    """What a source may or may not record of a tensor; two sources are compared on what both record."""

    DTYPE = "dtype"
    TENSOR_FORMAT = "tensor_format"
    STRIDES = "strides"
    VECTORIZED_DIM = "vectorized_dim"
    COMPONENTS = "components_per_element"


class Witness(enum.Enum):
    """Who says that a layer has a tactic; only the engine says what is really in it."""

    CACHE = "cache"
    LOG = "log"
    ENGINE = "engine"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """Data type and layout of one input or output; what the source does not record is None.

    Strides are in elements; `vectorized_dim` is -1 where no dimension is vectorized.
    """

    dtype: str
    tensor_format: str | None = None
    strides: tuple[int, ...] | None = None
    vectorized_dim: int | None = None
    components_per_element: int | None = None

    def __str__(self) -> str:
        """As Polygraphy prints it."""
        layout = (self.strides, self.vectorized_dim, self.components_per_element)
        parts = [f"DataType.{self.dtype}", *(str(part) for part in layout)]
        if self.tensor_format is not None:
            parts.insert(0, f"TensorFormat.{self.tensor_format}")
        return f"TensorInfo({', '.join(parts)})"

    def identity(self, fields: frozenset[Field]) -> Hashable:
        """The values of `fields`, to be compared with those of another tensor."""
        return _values(fields)(self)


ALL_FIELDS = frozenset(Field)


@lru_cache(maxsize=32)
def _values(fields: frozenset[Field]) -> Callable[[TensorInfo], Hashable]:
    """What gets the values of fields, in one order."""
    names = [field.value for field in Field if field in fields]
    values: Callable[[TensorInfo], Hashable] = attrgetter(*names) if names else lambda _: ()
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class Tactic:
    """What was chosen for one layer.

    `implementation` and `tactic` are kept as the source wrote them, and are None where it does not tell; `kernel` (name),
    `time_ms`, `cache_key` and `witnesses` ride along. Two tactics are the same if their `identity` is.
    """

    implementation: int | None
    tactic: int | None
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    kernel: str | None = None
    time_ms: float | None = None
    cache_key: str | None = None
    witnesses: frozenset[Witness] = frozenset()

    @property
    def swallowed(self) -> bool:
        """Whether it was timed and picked, but the engine does not have it: forcing it is void.

        A fusion replaced the op, or another format of it is in the engine.
        """
        return bool(self.witnesses) and Witness.ENGINE not in self.witnesses

    @property
    def hex(self) -> str:
        """The tactic id as the build log prints it: `0x` and 16 digits; empty where it is not known."""
        return "" if self.tactic is None else f"0x{self.tactic & TACTIC_MASK:016x}"

    def identity(self, fields: frozenset[Field] = ALL_FIELDS) -> Hashable:
        """What makes this tactic differ from another, comparing only `fields` of its tensors."""
        if self.tactic is None:
            # Inside a Myelin graph an engine tells the kernel and nothing else.
            return self.kernel
        return (
            None if self.implementation is None else self.implementation & IMPLEMENTATION_MASK,
            self.tactic & TACTIC_MASK,
            tuple(info.identity(fields) for info in self.inputs) if fields else (),
            tuple(info.identity(fields) for info in self.outputs) if fields else (),
        )

    def __str__(self) -> str:
        """As Polygraphy prints it, where it could have recorded it."""
        if self.tactic is None or self.implementation is None:
            known = [f"Tactic: {self.tactic}"] if self.tactic is not None else []
            return f"({', '.join([*known, f'Kernel: {self.kernel}'])})"
        # Python prints a tuple of one with a trailing comma, and so does Polygraphy.
        ends = [
            f"({', '.join(map(str, infos))}{',' * (len(infos) == 1)})"
            for infos in (self.inputs, self.outputs)
        ]
        return f"(Implementation: {self.implementation}, Tactic: {self.tactic}) | Inputs: {ends[0]} | Outputs: {ends[1]}"
