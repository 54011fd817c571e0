"""The execution context: shapes, addresses and allocators of one user of an engine, and running it."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from polygraphy_debug_ext.simulator.bindings.base import Bound, Dims, Stored, View
from polygraphy_debug_ext.simulator.bindings.listeners import IDebugListener, IOutputAllocator, hand_over
from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.layouts import Layout
from polygraphy_debug_ext.simulator.compiler.log import Log
from polygraphy_debug_ext.simulator.execution import memory, output_shapes
from polygraphy_debug_ext.simulator.execution.device import DEVICE
from polygraphy_debug_ext.simulator.execution.run import Executor

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from polygraphy_debug_ext.simulator.bindings.engine import ICudaEngine
    from polygraphy_debug_ext.simulator.compiler.records import Binding


class _Profiler(Protocol):
    def report_layer_time(self, layer_name: str, ms: float) -> None: ...


class IExecutionContext(Bound):
    """One user of an engine."""

    def __init__(self, engine: ICudaEngine) -> None:
        self._engine = engine
        self._log = Log(personality=self._api.personality, sink=engine._sink)
        self._profile = 0
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, IOutputAllocator] = {}
        self._executors: dict[int, Executor] = {}
        self._listener: IDebugListener | None = None
        self._debugged: set[str] = set()
        self._reset_shapes()

    engine = View(lambda context: context._engine)
    active_optimization_profile = View(lambda context: context._profile)
    all_binding_shapes_specified = View(lambda context: not context._missing_shapes())
    all_shape_inputs_specified = View(lambda context: not context._missing_shapes())
    name = Stored("")
    profiler: Stored[object] = Stored(None)
    device_memory = Stored(0)
    debug_sync = Stored(default=False)

    def _reset_shapes(self) -> None:
        self._shapes = {binding.name: binding.shape for binding in self._engine._io if binding.is_input}

    def _missing_shapes(self) -> list[str]:
        return [name for name, shape in self._shapes.items() if -1 in shape]

    def _complain(self, method: str, why: str) -> bool:
        self._log.message("context", method=method, why=why)
        return False

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        """Choose a profile."""
        del stream_handle
        count = len(self._engine._engine.profiles)
        if not 0 <= profile_index < count:
            return self._complain(
                "setOptimizationProfileAsync",
                f"profile {profile_index} does not exist: the engine has {count}",
            )
        self._profile = profile_index
        self._reset_shapes()
        return True

    def set_input_shape(self, name: str, shape: Sequence[int]) -> bool:
        """Set the shape of an input; it has to be within the bounds of the profile."""
        if name not in self._shapes:
            return self._complain("setInputShape", f"{name} is not an input")
        wanted = tuple(int(size) for size in shape)
        low, _, high = self._engine._by_name[name].shapes[self._profile]
        fits = len(low) == len(wanted)
        if not fits or not all(
            least <= size <= most for least, size, most in zip(low, wanted, high, strict=True)
        ):
            return self._complain(
                "setInputShape",
                f"shape {list(wanted)} of {name} is outside of profile {self._profile}: "
                f"minimum {list(low)}, maximum {list(high)}",
            )
        self._shapes[name] = wanted
        return True

    def set_binding_shape(self, binding: int, shape: Sequence[int]) -> bool:
        """Set the shape of an input by its index."""
        return self.set_input_shape(self._engine._binding(binding).name, shape)

    def get_binding_shape(self, binding: int) -> Dims:
        """The shape of a binding."""
        return self.get_tensor_shape(self._engine._binding(binding).name)

    def get_tensor_shape(self, name: str) -> Dims:
        """The shape of an input or output; -1 is not known yet."""
        binding = self._engine._binding(name)
        shape = self._shapes.get(name, binding.shape)
        if not binding.is_input and -1 in shape and not self._missing_shapes():
            shape = output_shapes.infer(self._engine._engine.model, self._shapes, self._shape_values()).get(
                name, shape
            )
        return self._api.new(Dims, shape)

    def _shape_values(self) -> dict[str, tuple[int, ...]]:
        """The values of inputs that hold shapes, as far as they have been given."""
        return {
            binding.name: tuple(int(number) for number in self._feed(binding).ravel())
            for binding in self._engine._io
            if binding.is_shape and self._addresses.get(binding.name)
        }

    def get_tensor_strides(self, name: str) -> Dims:
        """The strides of an input or output."""
        return self._api.new(Dims, self._engine._layout(name).strides(self.get_tensor_shape(name)))

    def infer_shapes(self) -> list[str]:
        """The inputs that still lack a shape or an address that is needed to know the shapes of the outputs."""
        lacking = [b.name for b in self._engine._io if b.is_shape and not self._addresses.get(b.name)]
        return self._missing_shapes() + lacking

    def get_max_output_size(self, name: str) -> int:
        """The bytes that an output needs at most: at the shapes that are set."""
        return self._engine._layout(name).nbytes(self.get_tensor_shape(name))

    def set_tensor_address(self, name: str, memory: int) -> bool:
        """Say where an input or output is."""
        if name not in self._engine._by_name:
            return self._complain("setTensorAddress", f"{name} is not an input or output")
        self._addresses[name] = int(memory)
        return True

    def get_tensor_address(self, name: str) -> int:
        """Where an input or output is; 0 is nowhere."""
        return self._addresses.get(name, 0)

    def set_output_allocator(self, name: str, output_allocator: IOutputAllocator | None) -> bool:
        """Have an output allocated when its size is known."""
        if name not in self._engine._by_name or self._engine._by_name[name].is_input:
            return self._complain("setOutputAllocator", f"{name} is not an output")
        if output_allocator is None:
            self._allocators.pop(name, None)
        else:
            self._allocators[name] = output_allocator
        return True

    def get_output_allocator(self, name: str) -> IOutputAllocator | None:
        """Who allocates an output."""
        return self._allocators.get(name)

    def set_device_memory(self, memory: int, size: int) -> None:
        """Provide the memory for the tensors between the layers."""
        del size
        self.device_memory = memory

    def update_device_memory_size_for_shapes(self) -> int:
        """The memory that is needed at the shapes that are set."""
        return self._engine._memory(self._profile)

    def set_debug_listener(self, listener: IDebugListener) -> bool:
        """Have debug tensors reported."""
        self._listener = listener
        return True

    def get_debug_listener(self) -> IDebugListener | None:
        """Who hears of debug tensors."""
        return self._listener

    def set_tensor_debug_state(self, name: str, flag: bool) -> bool:  # noqa: FBT001 - TensorRT's signature
        """Turn the report of a debug tensor on or off."""
        if not self._engine.is_debug_tensor(name):
            return False
        (self._debugged.add if flag else self._debugged.discard)(name)
        return True

    def set_all_tensors_debug_state(self, flag: bool) -> bool:  # noqa: FBT001 - TensorRT's signature
        """Turn the reports of all debug tensors on or off."""
        self._debugged = {b.name for b in self._engine._engine.bindings if b.is_debug} if flag else set()
        return True

    def get_debug_state(self, name: str) -> bool:
        """Whether a debug tensor is reported."""
        return name in self._debugged

    def execute_v2(self, bindings: Sequence[int]) -> bool:
        """Run, with the addresses of all inputs and outputs in the order of the engine."""
        for binding, address in zip(self._engine._io, bindings, strict=False):
            self._addresses[binding.name] = int(address)
        return self._run("executeV2", 0)

    def execute_async_v2(
        self, bindings: Sequence[int], stream_handle: int, input_consumed: object = None
    ) -> bool:
        """Run on a stream; here it is done at once, and no event is signalled."""
        del input_consumed
        for binding, address in zip(self._engine._io, bindings, strict=False):
            self._addresses[binding.name] = int(address)
        return self._run("enqueueV2", stream_handle)

    def execute_async_v3(self, stream_handle: int) -> bool:
        """Run on a stream; here it is done at once."""
        return self._run("enqueueV3", stream_handle)

    def _run(self, method: str, stream: int) -> bool:
        if DEVICE.sticky:
            self._log.message("execution", method=method, why=DEVICE.sticky)
            return False
        missing = self._missing_shapes()
        if missing:
            return self._complain(method, f"the shape of input {missing[0]} is not set")
        unplaced = [
            b.name
            for b in self._engine._io
            if b.name not in self._allocators and not self._addresses.get(b.name)
        ]
        if unplaced:
            return self._complain(method, f"the address of {unplaced[0]} is not set")
        try:
            feeds = {binding.name: self._feed(binding) for binding in self._engine._io if binding.is_input}
            self._deliver(self._executor().run(feeds), stream)
        except memory.IllegalAccessError as error:
            self._log.message("execution", method=method, why=error)
            return False
        except RuntimeError as error:  # what ONNX Runtime raises when values and shapes do not fit
            return self._complain(method, str(error).splitlines()[0])
        profiler = cast("_Profiler | None", self.profiler)
        if profiler is not None:
            for choice in self._engine._engine.profiles[self._profile]:
                for layer in choice.layers:
                    profiler.report_layer_time(layer.name, layer.time_ms)
        return True

    def _executor(self) -> Executor:
        if self._profile not in self._executors:
            self._executors[self._profile] = Executor(
                self._engine._engine, self._profile, self._api.settings()
            )
        return self._executors[self._profile]

    def _feed(self, binding: Binding) -> NDArray[np.generic]:
        layout = Layout(dtype=binding.dtype, format=binding.format)
        shape = self._shapes[binding.name]
        data = memory.read(self._addresses[binding.name], layout.nbytes(shape))
        return layout.unpack(data.view(DTYPES[binding.dtype].numpy), shape)

    def _deliver(self, results: dict[str, NDArray[np.generic]], stream: int) -> None:
        for binding in self._engine._engine.bindings:
            if binding.is_input:
                continue
            values = results[binding.name]
            packed = Layout(dtype=binding.dtype, format=binding.format).pack(values)
            if binding.is_debug:
                if self._listener is not None and binding.name in self._debugged:
                    self._report(binding, packed, values.shape, stream)
                continue
            address = self._addresses.get(binding.name, 0)
            allocator = self._allocators.get(binding.name)
            if allocator is not None:
                shape = self._api.new(Dims, values.shape)
                address = hand_over(allocator, binding.name, address, packed.nbytes, shape, stream)
            memory.write(address, packed)

    def _report(
        self, binding: Binding, values: NDArray[np.generic], shape: Sequence[int], stream: int
    ) -> None:
        if self._listener is None:
            return
        self._listener.process_debug_tensor(
            values.ctypes.data,
            self._api.enum("TensorLocation", "HOST"),
            self._api.enum("DataType", binding.dtype),
            self._api.new(Dims, shape),
            binding.name,
            stream,
        )
