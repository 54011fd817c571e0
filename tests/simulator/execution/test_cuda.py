from __future__ import annotations

import ctypes
import ctypes.util
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from polygraphy_debug_ext.simulator.execution import cuda, device

if TYPE_CHECKING:
    from collections.abc import Iterator

# The library has whatever functions it has: ctypes does not type them either.
Library: TypeAlias = Any


@pytest.fixture
def library() -> Iterator[Library]:
    cuda.install()
    yield ctypes.CDLL("/somewhere/libcudart.so.12")
    # A class whose __new__ was deleted refuses arguments from then on: it gets one that does what it had inherited.
    ctypes.CDLL.__new__ = lambda cls, *_, **__: object.__new__(cls)  # type: ignore[method-assign]


def allocate(library: Library, size: int) -> int:
    pointer = ctypes.c_void_p()
    assert library.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == cuda.SUCCESS
    return pointer.value or 0


@pytest.mark.parametrize(
    ("name", "is_it"),
    [
        ("libcudart.so", True),
        ("/usr/local/cuda/lib64/libcudart.so.12.4.99", True),
        ("C:\\cuda\\bin\\cudart64_12.dll", True),
        ("/x/libcudart.so.trt-sim", True),
        ("libcuda.so.1", False),
        ("libcudartless.so", False),
        ("libm.so.6", False),
        (None, False),
    ],
)
def test_only_the_cuda_runtime_is_replaced(name: str | None, is_it: bool) -> None:  # noqa: FBT001 - a parameter of the test
    assert cuda.is_cuda_runtime(name) is is_it


def test_other_libraries_load_untouched(library: Library) -> None:
    del library
    name = ctypes.util.find_library("m") or ctypes.util.find_library("c")
    loaded = ctypes.CDLL(name)
    assert type(loaded) is ctypes.CDLL
    loaded.abs.restype = ctypes.c_int
    assert loaded.abs(-3) == 3
    assert isinstance(ctypes.pythonapi, ctypes.CDLL)
    assert isinstance(ctypes.PyDLL(None), ctypes.PyDLL)


def test_memory_goes_to_the_device_and_back(library: Library) -> None:
    address = allocate(library, 16)
    source, target = ctypes.create_string_buffer(b"0123456789abcdef", 16), ctypes.create_string_buffer(16)
    there, back = ctypes.c_int(1), ctypes.c_int(2)
    stream = ctypes.c_void_p()
    assert library.cudaStreamCreate(ctypes.byref(stream)) == 0
    assert library.cudaMemcpy(ctypes.c_void_p(address), source, ctypes.c_size_t(16), there) == 0
    assert (
        library.cudaMemcpyAsync(target, ctypes.c_void_p(address + 4), ctypes.c_size_t(12), back, stream) == 0
    )
    assert target.raw[:12] == b"456789abcdef"
    assert library.cudaStreamSynchronize(stream) == 0
    assert library.cudaStreamDestroy(stream) == 0
    assert library.cudaFree(ctypes.c_void_p(address)) == 0


def test_wrong_calls_get_the_codes_of_the_real_library(library: Library) -> None:
    address = allocate(library, 8)
    host = ctypes.create_string_buffer(64)
    assert library.cudaFree(ctypes.c_void_p(address + 1)) == cuda.INVALID_VALUE
    assert library.cudaMemcpy(address, host, 9, 1) == cuda.INVALID_VALUE
    assert library.cudaMemcpy(host, 12345, 1, 2) == cuda.INVALID_VALUE
    assert library.cudaFree(address) == 0
    assert library.cudaFree(address) == cuda.INVALID_VALUE
    assert library.cudaStreamSynchronize(99) == cuda.INVALID_HANDLE
    assert library.cudaSetDevice(1) == cuda.INVALID_DEVICE


def test_nothing_is_allocated_for_nothing(library: Library) -> None:
    assert allocate(library, 0) == 0
    assert library.cudaFree(ctypes.c_void_p(None)) == 0


def test_types_can_be_declared_as_for_a_real_function(library: Library) -> None:
    library.cudaGetDeviceCount.restype = ctypes.c_int
    count = ctypes.c_int(0)
    assert library.cudaGetDeviceCount(ctypes.pointer(count)) == 0
    assert count.value == 1


def test_a_function_that_is_not_there_is_named(library: Library) -> None:
    with pytest.raises(AttributeError, match="cudaGraphLaunch"):
        library.cudaGraphLaunch()


def test_a_sticky_error_is_returned_by_every_call(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device.DEVICE, "sticky", device.MISALIGNED)
    assert library.cudaDeviceSynchronize() == device.MISALIGNED_CODE
    assert library.cudaGetErrorString(device.MISALIGNED_CODE) == b"misaligned address"
