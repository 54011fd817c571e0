"""Reading and writing tensors at addresses, which are host memory here even where they are called device memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.execution.cuda import RUNTIME

if TYPE_CHECKING:
    from numpy.typing import NDArray


class IllegalAccessError(Exception):
    """An access that leaves the block of device memory in which it starts."""


def read(address: int, size: int) -> NDArray[np.uint8]:
    """A copy of the bytes at an address."""
    _check(address, size)
    return np.frombuffer(ctypes.string_at(address, size), np.uint8)


def write(address: int, values: NDArray[np.generic]) -> None:
    """Write the bytes of an array to an address."""
    _check(address, values.nbytes)
    contiguous = np.ascontiguousarray(values)
    ctypes.memmove(address, contiguous.ctypes.data, contiguous.nbytes)


def _check(address: int, size: int) -> None:
    """Memory from elsewhere (host arrays) is taken on trust, as nothing is known of it."""
    if size and not address:
        raise IllegalAccessError("an illegal memory access was encountered")
    room = RUNTIME.memory.room(address)
    if room is not None and size > room:
        raise IllegalAccessError("an illegal memory access was encountered")
