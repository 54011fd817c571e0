"""Host memory: the bytes of an engine or a cache, which any function that reads buffers accepts."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, cast

from polygraphy_debug_ext.simulator.bindings.base import Api, Bound, View

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum


class IHostMemory(Bound):
    """Bytes on the host. Instances are of a subclass that is an array as well, as only C types can be read as buffers."""

    nbytes = View(ctypes.sizeof)

    @property
    def dtype(self) -> BoundEnum:
        """The type of the elements."""
        return self._api.enum("DataType", "INT8")


def host_memory(api: Api, data: bytes) -> IHostMemory:
    """Host memory with these bytes."""
    array = ctypes.c_ubyte * len(data)
    mixed = type("IHostMemory", (api.classes["IHostMemory"], array), {"__module__": "tensorrt"})
    return cast("IHostMemory", cast("type[ctypes.Array[ctypes.c_ubyte]]", mixed).from_buffer_copy(data))
