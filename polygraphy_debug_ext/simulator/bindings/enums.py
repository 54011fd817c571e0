"""Enums as pybind11 makes them: not integers, but convertible to and from them; members by attribute and in `__members__`."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


class BoundEnum:
    """A value of an enum; several members may share one value, the first of them names it."""

    __members__: ClassVar[dict[str, BoundEnum]] = {}

    def __init__(self, value: int) -> None:
        self.__value = int(value)

    @property
    def name(self) -> str:
        """The name of the member."""
        return next((name for name, member in self.__members__.items() if member == self), "???")

    @property
    def value(self) -> int:
        """The number."""
        return self.__value

    def __int__(self) -> int:
        return self.__value

    def __index__(self) -> int:
        return self.__value

    def __hash__(self) -> int:
        return hash(self.__value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and int(other) == self.__value

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self) -> str:
        return f"<{self}: {self.__value}>"


def make_enum(name: str, members: Mapping[str, int]) -> type[BoundEnum]:
    """The enum of this name."""
    enum = cast("type[BoundEnum]", type(name, (BoundEnum,), {"__module__": "tensorrt", "__members__": {}}))
    for member, value in members.items():
        instance = enum(value)
        enum.__members__[member] = instance
        setattr(enum, member, instance)
    # Polygraphy tells an enum of pybind11 by this attribute.
    setattr(enum, "__entries", {member: (instance, None) for member, instance in enum.__members__.items()})
    return enum
