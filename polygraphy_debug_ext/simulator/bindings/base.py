"""The ground of the surface: classes are written once, with everything that any version has, and cut to a personality.

Code of the surface reaches its personality through `self._api`; public members that the personality lacks do not exist on the
classes that users see. Zero-argument `super()` does not work in such classes, as they are copies.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast, overload

from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum, make_enum

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from polygraphy_debug_ext.simulator.compiler.log import Sink
    from polygraphy_debug_ext.simulator.personality import Personality
    from polygraphy_debug_ext.simulator.settings import Settings

T = TypeVar("T")


@dataclass(slots=True)
class _Announcement:
    """Whether this process has said that it is a simulation."""

    done: bool = False


_ANNOUNCEMENT = _Announcement()


@dataclass(kw_only=True)
class Api:
    """The surface of one personality: its enums and classes by name, and where its settings come from."""

    personality: Personality
    settings: Callable[[], Settings]
    enums: dict[str, type[BoundEnum]] = field(default_factory=dict)
    classes: dict[str, type] = field(default_factory=dict)

    def add_enum(self, name: str) -> None:
        """Make an enum of the personality, if it has it."""
        if name in self.personality.enums:
            self.enums[name] = make_enum(name, self.personality.enums[name])

    def add_classes(self, classes: Iterable[type]) -> None:
        """Cut classes to the personality; those that it lacks altogether are left out."""
        for cls in classes:
            if cls.__name__ in self.personality.classes:
                self.classes[cls.__name__] = self._cut(cls)

    def _cut(self, cls: type) -> type:
        allowed = self.personality.classes[cls.__name__]
        namespace = {
            name: value
            for name, value in vars(cls).items()
            if (name.startswith("_") and name not in {"__dict__", "__weakref__"}) or name in allowed
        }
        namespace.update(__module__="tensorrt", _api=self)
        return type(
            cls.__name__, tuple(self.classes.get(base.__name__, base) for base in cls.__bases__), namespace
        )

    def enum(self, name: str, member: str) -> BoundEnum:
        """A member of an enum."""
        return self.enums[name].__members__[member]

    def new(self, cls: type[T], *args: object) -> T:
        """An instance of this personality's version of a class."""
        return cast("T", self.classes[cls.__name__](*args))

    def sink(self, logger: object) -> Sink:
        """Where messages for this logger go; the first one of a process says what this is."""
        log = cast("Callable[[BoundEnum, str], None]", logger.log)  # type: ignore[attr-defined]  # a class of the user
        severities = self.enums["Severity"].__members__

        def write(severity: str, text: str) -> None:
            log(severities[severity], text)

        if not _ANNOUNCEMENT.done:
            _ANNOUNCEMENT.done = True
            write(
                "WARNING",
                f"TensorRT simulator (personality {self.personality.name}, no GPU is used): "
                "results are not those of NVIDIA TensorRT",
            )
        return write


class Bound:
    """A class of the surface. All of them can be used in a `with` statement, which frees nothing here."""

    _api: ClassVar[Api]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to free: objects live as long as somebody uses them."""


class View:
    """A read-only attribute that is computed, without the ceremony of a property for each."""

    def __init__(self, compute: Callable[[Any], object]) -> None:
        self._compute = compute

    @overload
    def __get__(self, instance: None, owner: type) -> View: ...
    @overload
    def __get__(self, instance: object, owner: type) -> object: ...
    def __get__(self, instance: object, owner: type) -> object:
        return self if instance is None else self._compute(instance)

    def __set__(self, instance: object, value: object) -> None:
        raise AttributeError(
            f"this attribute of {type(instance).__name__} cannot be set to {value!r}: it is read-only"
        )


class Stored(Generic[T]):
    """An attribute that keeps what the user sets, with a default."""

    def __init__(self, default: T) -> None:
        self._default = default
        self._key = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._key = f"_stored_{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Stored[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> Stored[T] | T:
        return self if instance is None else vars(instance).get(self._key, self._default)

    def __set__(self, instance: object, value: T) -> None:
        vars(instance)[self._key] = value


class Dims(Bound, tuple[int, ...]):
    """A shape; it compares equal to the tuple of its sizes."""

    __slots__ = ()
    MAX_DIMS = 8

    def __new__(cls, shape: Iterable[int] = ()) -> Self:
        """From any sequence of sizes."""
        return tuple.__new__(cls, (int(size) for size in shape))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple)) and tuple(self) == tuple(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)


class DimsHW(Dims):
    """Height and width."""

    __slots__ = ()
    h = View(lambda dims: dims[0])
    w = View(lambda dims: dims[1])
