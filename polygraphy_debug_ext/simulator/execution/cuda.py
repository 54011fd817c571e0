"""A CUDA runtime in host memory, for programs that load `libcudart` through ctypes (as Polygraphy does).

Device pointers are host pointers. Calls return the codes of the real library; after a sticky error of the simulated device
every call returns it.
"""

from __future__ import annotations

import ctypes
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator import settings
from polygraphy_debug_ext.simulator.execution.device import DEVICE, MISALIGNED_CODE

if TYPE_CHECKING:
    from collections.abc import Callable

SUCCESS = 0
INVALID_VALUE = 1
INVALID_DEVICE = 101
INVALID_HANDLE = 400
RUNTIME_VERSION = DRIVER_VERSION = 12080
# Compute capabilities by what the name of a GPU has in it; of any other, that of an A100.
CAPABILITIES = {"L4": (8, 9), "L40": (8, 9), "H100": (9, 0), "H200": (9, 0), "B200": (10, 0)}
CAPABILITY = (8, 0)
ATTRIBUTE_MAJOR, ATTRIBUTE_MINOR = 75, 76
NAME_SIZE = 256
TOTAL_MEMORY = 1 << 34
HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3
_LIBRARY = re.compile(r"(libcudart([.-].*)?\.so.*|libcudart.*\.dylib|cudart64.*\.dll)")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_ERRORS = {SUCCESS: b"no error", INVALID_VALUE: b"invalid argument", INVALID_DEVICE: b"invalid device ordinal",
           INVALID_HANDLE: b"invalid resource handle", MISALIGNED_CODE: b"misaligned address"}  # fmt: skip


class Memory:
    """What is allocated, by address."""

    def __init__(self) -> None:
        self._blocks: dict[int, ctypes.Array[ctypes.c_ubyte]] = {}

    def allocate(self, size: int) -> int:
        """A new block; nothing is allocated for nothing."""
        if size == 0:
            return 0
        block = (ctypes.c_ubyte * size)()
        address = ctypes.addressof(block)
        self._blocks[address] = block
        return address

    def free(self, address: int) -> bool:
        """Whether the address was that of a block, which is gone now."""
        return not address or self._blocks.pop(address, None) is not None

    def room(self, address: int) -> int | None:
        """The bytes from this address to the end of its block; None for memory that is not from here."""
        if address in self._blocks:
            return len(self._blocks[address])
        for start, block in self._blocks.items():
            if start < address < start + len(block):
                return start + len(block) - address
        return None


class CudaRuntime:
    """The functions of the library, as methods that take ctypes values or numbers: `cudaMemcpyAsync` is `memcpy_async`."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._streams = Memory()

    def malloc(self, pointer: object, size: object) -> int:
        """Allocate device memory."""
        _store(pointer, self.memory.allocate(_number(size)))
        return SUCCESS

    def free(self, address: object) -> int:
        """Free device memory."""
        return SUCCESS if self.memory.free(_number(address)) else INVALID_VALUE

    def malloc_host(self, pointer: object, size: object) -> int:
        """Allocate page-locked host memory."""
        return self.malloc(pointer, size)

    def free_host(self, address: object) -> int:
        """Free page-locked host memory."""
        return self.free(address)

    def memcpy(self, target: object, source: object, size: object, kind: object) -> int:
        """Copy memory; what the direction says is on the device must be."""
        to, start, count, way = (_number(value) for value in (target, source, size, kind))
        on_device = [to] * (way in {HOST_TO_DEVICE, DEVICE_TO_DEVICE}) + [start] * (
            way in {DEVICE_TO_HOST, DEVICE_TO_DEVICE}
        )
        if count and not all(count <= (self.memory.room(address) or 0) for address in on_device):
            return INVALID_VALUE
        ctypes.memmove(to, start, count)
        return SUCCESS

    def memcpy_async(
        self, target: object, source: object, size: object, kind: object, stream: object = 0
    ) -> int:
        """Copy memory on a stream; here it is done at once."""
        return self.memcpy(target, source, size, kind) or self.stream_synchronize(stream)

    def memset(self, target: object, value: object, size: object) -> int:
        """Fill device memory."""
        address, count = _number(target), _number(size)
        if count > (self.memory.room(address) or 0):
            return INVALID_VALUE
        ctypes.memset(address, _number(value), count)
        return SUCCESS

    def mem_get_info(self, free: object, total: object) -> int:
        """The memory of the device."""
        _store(free, TOTAL_MEMORY // 2)
        _store(total, TOTAL_MEMORY)
        return SUCCESS

    def stream_create(self, pointer: object) -> int:
        """Create a stream."""
        _store(pointer, self._streams.allocate(1))
        return SUCCESS

    def stream_destroy(self, stream: object) -> int:
        """Destroy a stream."""
        address = _number(stream)
        return SUCCESS if address and self._streams.free(address) else INVALID_HANDLE

    def stream_synchronize(self, stream: object) -> int:
        """Wait for a stream; nothing is ever under way."""
        address = _number(stream)
        return SUCCESS if not address or self._streams.room(address) else INVALID_HANDLE

    def device_synchronize(self) -> int:
        """Wait for the device."""
        return SUCCESS

    def get_device_count(self, count: object) -> int:
        """There is one device."""
        _store(count, 1)
        return SUCCESS

    def get_device(self, index: object) -> int:
        """It is the first."""
        _store(index, 0)
        return SUCCESS

    def set_device(self, index: object) -> int:
        """Choose the device."""
        return SUCCESS if _number(index) == 0 else INVALID_DEVICE

    def runtime_get_version(self, version: object) -> int:
        """The version of the runtime."""
        _store(version, RUNTIME_VERSION)
        return SUCCESS

    def driver_get_version(self, version: object) -> int:
        """The version of CUDA that the driver has."""
        _store(version, DRIVER_VERSION)
        return SUCCESS

    def get_device_properties(self, properties: object, device: object) -> int:
        """The name of the device, which is the first field; nothing else is filled in."""
        if _number(device) != 0:
            return INVALID_DEVICE
        name = settings.current().gpu.encode()[: NAME_SIZE - 1]
        ctypes.memmove(_number(properties), name + b"\0", len(name) + 1)
        return SUCCESS

    def device_get_attribute(self, value: object, attribute: object, device: object) -> int:
        """The compute capability; no other attribute is known."""
        which = _number(attribute) - ATTRIBUTE_MAJOR
        if _number(device) != 0 or which not in {0, ATTRIBUTE_MINOR - ATTRIBUTE_MAJOR}:
            return INVALID_VALUE
        words = settings.current().gpu.replace("-", " ").split()
        _store(value, next((CAPABILITIES[word] for word in words if word in CAPABILITIES), CAPABILITY)[which])
        return SUCCESS

    def get_last_error(self) -> int:
        """The sticky error, if there is one."""
        return SUCCESS

    def get_error_string(self, code: object) -> bytes:
        """The text of an error."""
        return _ERRORS.get(_number(code), b"unrecognized error code")


class _Function:
    """A function of the library; like one of ctypes it lets its types be declared, and needs no such declaration."""

    restype: object = None
    argtypes: object = None

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    def __call__(self, *arguments: object) -> object:
        result = self._call(*arguments)
        return MISALIGNED_CODE if DEVICE.sticky and isinstance(result, int) else result


class CudaLibrary:
    """What takes the place of a `ctypes.CDLL` of the real library."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._functions: dict[str, _Function] = {}

    def __getattr__(self, name: str) -> _Function:
        method = _CAPITAL.sub("_", name.removeprefix("cuda")).lower()
        if not name.startswith("cuda") or not callable(getattr(RUNTIME, method, None)):
            raise AttributeError(f"the simulated CUDA runtime has no function {name!r}")
        return self._functions.setdefault(name, _Function(getattr(RUNTIME, method)))


RUNTIME = CudaRuntime()


def _number(value: object) -> int:
    """A plain number from what callers pass: a number, a ctypes value (a null pointer has no value), or a pointer."""
    if isinstance(value, int):
        return value
    if value is None:
        return 0
    if isinstance(value, ctypes.Array):
        return ctypes.addressof(value)
    inner = getattr(value, "value", None)
    if isinstance(inner, int):
        return inner
    if hasattr(value, "value"):
        return 0
    return ctypes.cast(value, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # any pointer of ctypes


def _store(pointer: object, value: int) -> None:
    """Write through what `byref` or `pointer` returned."""
    target = getattr(pointer, "_obj", None)
    if target is None:
        target = pointer.contents  # type: ignore[attr-defined]  # a pointer of ctypes
    target.value = value


def is_cuda_runtime(name: object) -> bool:
    """Whether this is the name of the CUDA runtime library."""
    return isinstance(name, str) and _LIBRARY.fullmatch(PurePath(name.replace("\\", "/")).name) is not None


def _new(cls: type, name: object = None, *_: object, **__: object) -> object:
    if cls is ctypes.CDLL and isinstance(name, str) and is_cuda_runtime(name):
        return CudaLibrary(name)
    return object.__new__(cls)


def install() -> None:
    """Have `ctypes.CDLL` return the simulated runtime for `libcudart`, and load everything else as ever.

    The class itself stays as it is, so that subclasses, `isinstance` and earlier imports of the name keep working.
    """
    ctypes.CDLL.__new__ = _new  # type: ignore[method-assign, assignment]  # a class of ctypes has none of its own
