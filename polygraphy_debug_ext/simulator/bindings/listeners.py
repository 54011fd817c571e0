"""What users implement to take part in an execution: output allocators, debug listeners, profilers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from polygraphy_debug_ext.simulator.bindings.base import Bound

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.bindings.base import Dims
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum

ALIGNMENT = 256


class IOutputAllocator(Bound):
    """Allocates outputs when their sizes are known.

    Subclasses implement `reallocate_output` or `reallocate_output_async`, and `notify_shape`.
    """

    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
        """An address with room for the output."""
        raise NotImplementedError("IOutputAllocator.reallocate_output must be implemented by a subclass")

    def notify_shape(self, tensor_name: str, shape: Dims) -> None:
        """The shape that the output came to have."""
        raise NotImplementedError("IOutputAllocator.notify_shape must be implemented by a subclass")


class _Allocator(Protocol):
    def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int: ...
    def reallocate_output_async(
        self, tensor_name: str, memory: int, size: int, alignment: int, stream: int
    ) -> int: ...
    def notify_shape(self, tensor_name: str, shape: Dims) -> None: ...


def hand_over(allocator: object, name: str, address: int, size: int, shape: Dims, stream: int) -> int:
    """Ask an allocator for room, and tell it the shape."""
    user = cast("_Allocator", allocator)
    if hasattr(allocator, "reallocate_output_async"):
        address = user.reallocate_output_async(name, address, size, ALIGNMENT, stream)
    else:
        address = user.reallocate_output(name, address, size, ALIGNMENT)
    user.notify_shape(name, shape)
    return int(address or 0)


class IDebugListener(Bound):
    """Hears of the values of debug tensors."""

    def process_debug_tensor(
        self,
        addr: int,
        location: BoundEnum,
        type: BoundEnum,  # noqa: A002 - TensorRT's name
        shape: Dims,
        name: str,
        stream: int,
    ) -> None:
        """Take the values of one tensor."""
        raise NotImplementedError("IDebugListener.process_debug_tensor must be implemented by a subclass")


class IProfiler(Bound):
    """Hears how long each layer took."""

    def report_layer_time(self, layer_name: str, ms: float) -> None:
        """Take the time of one layer."""
        raise NotImplementedError("IProfiler.report_layer_time must be implemented by a subclass")
