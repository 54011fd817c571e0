"""The runtime and the engine: bytes become an engine, which describes itself and makes execution contexts."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from polygraphy_debug_ext.simulator.bindings.base import Bound, Dims, Stored, View
from polygraphy_debug_ext.simulator.bindings.context import IExecutionContext
from polygraphy_debug_ext.simulator.bindings.inspector import EngineInspector
from polygraphy_debug_ext.simulator.bindings.memory import IHostMemory, host_memory
from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.layouts import Layout
from polygraphy_debug_ext.simulator.compiler.log import Log
from polygraphy_debug_ext.simulator.errors import PlanError
from polygraphy_debug_ext.simulator.execution import plan

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.compiler.log import Sink
    from polygraphy_debug_ext.simulator.compiler.records import Binding, Engine

CHUNK = 1 << 20
ALIGNMENT = 512
# What a reader is told besides how many bytes are wanted.
STREAM_READERS: dict[str, tuple[int, ...]] = {"IStreamReader": (), "IStreamReaderV2": (0,)}


class _Reader(Protocol):
    def read(self, size: int, *stream: int) -> bytes: ...


class IStreamReader(Bound):
    """What users implement to have an engine read piece by piece."""

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end."""
        raise NotImplementedError("IStreamReader.read must be implemented by a subclass")


class IStreamReaderV2(Bound):
    """What users implement to have an engine read piece by piece, also onto the device: `stream` is a CUDA stream."""

    def read(self, num_bytes: int, stream: int) -> bytes:
        """The next bytes; none at the end."""
        raise NotImplementedError("IStreamReaderV2.read must be implemented by a subclass")

    def seek(self, offset: int, where: BoundEnum) -> bool:
        """Go elsewhere."""
        raise NotImplementedError("IStreamReaderV2.seek must be implemented by a subclass")


class Runtime(Bound):
    """Turns bytes into engines."""

    def __init__(self, logger: object) -> None:
        self._logger = logger
        self._sink = self._api.sink(logger)

    logger = View(lambda runtime: runtime._logger)
    max_threads = Stored(1)
    DLA_core = Stored(-1)
    num_DLA_cores = View(lambda _: 0)  # noqa: N815 - TensorRT's name
    engine_host_code_allowed = Stored(default=False)

    def deserialize_cuda_engine(
        self, serialized_engine: bytes | IStreamReader | IStreamReaderV2
    ) -> ICudaEngine | None:
        """An engine from bytes or from a stream; None if they are not one of this version, which the log explains."""
        kinds = {name: self._api.classes[name] for name in STREAM_READERS if name in self._api.classes}
        extra = next(
            (STREAM_READERS[name] for name, cls in kinds.items() if isinstance(serialized_engine, cls)), None
        )
        if extra is not None:
            reader = cast("_Reader", serialized_engine)
            data = b"".join(iter(lambda: bytes(reader.read(CHUNK, *extra)), b""))
        else:
            data = bytes(memoryview(cast("bytes", serialized_engine)))
        try:
            engine = plan.load(data, self._api.personality)
        except PlanError as error:
            Log(personality=self._api.personality, sink=self._sink).message("serialization", why=error)
            return None
        return self._api.new(ICudaEngine, engine, self._sink)


class ICudaEngine(Bound):
    """An engine."""

    def __init__(self, engine: Engine, sink: Sink) -> None:
        self._engine = engine
        self._sink = sink
        self._io = [binding for binding in engine.bindings if not binding.is_debug]
        self._by_name = {binding.name: binding for binding in self._io}

    name = View(lambda engine: engine._engine.name)
    num_layers = View(lambda engine: len(engine._engine.layers))
    num_io_tensors = View(lambda engine: len(engine._io))
    num_bindings = View(lambda engine: len(engine._io) * len(engine._engine.profiles))
    num_optimization_profiles = View(lambda engine: len(engine._engine.profiles))
    num_aux_streams = View(lambda engine: engine._engine.properties["num_aux_streams"])
    tactic_sources = View(lambda engine: engine._engine.properties["tactic_sources"])
    has_implicit_batch_dimension = View(lambda _: False)
    refittable = View(lambda _: False)
    max_batch_size = View(lambda _: 1)
    device_memory_size = View(lambda engine: engine._memory(None))
    device_memory_size_v2 = View(lambda engine: engine._memory(None))

    def __len__(self) -> int:
        return len(self._io)

    def __getitem__(self, key: int | str) -> str | int:
        return self._io[key].name if isinstance(key, int) else list(self._by_name).index(key)

    def _memory(self, profile: int | None) -> int:
        """The memory for the tensors between the layers."""
        chosen = self._engine.choices if profile is None else self._engine.profiles[profile]
        layers = [layer for choice in chosen for layer in choice.layers]
        sizes = [tensor.layout.nbytes(tensor.optimum) for layer in layers for tensor in layer.outputs]
        return max(sizes, default=0) // ALIGNMENT * ALIGNMENT + ALIGNMENT

    def _binding(self, name: str | int) -> Binding:
        if isinstance(name, int):
            return self._io[name % len(self._io)]
        if name not in self._by_name:
            raise ValueError(f"the engine has no input or output named {name!r}")
        return self._by_name[name]

    def _layout(self, name: str | int) -> Layout:
        binding = self._binding(name)
        return Layout(dtype=binding.dtype, format=binding.format)

    @property
    def profiling_verbosity(self) -> BoundEnum:
        """How much the engine knows about its layers."""
        return self._api.enum("ProfilingVerbosity", self._engine.verbosity)

    @property
    def engine_capability(self) -> BoundEnum:
        """The capability for which it was built."""
        return self._api.enums["EngineCapability"](self._engine.properties["engine_capability"])

    @property
    def hardware_compatibility_level(self) -> BoundEnum:
        """The compatibility for which it was built."""
        level = self._engine.properties["hardware_compatibility_level"]
        return self._api.enums["HardwareCompatibilityLevel"](level)

    def get_device_memory_size_for_profile(self, profile_index: int) -> int:
        """The memory for the tensors between the layers, for one profile."""
        return self._memory(profile_index)

    def get_device_memory_size_for_profile_v2(self, profile_index: int) -> int:
        """The memory for the tensors between the layers, for one profile."""
        return self._memory(profile_index)

    def get_tensor_name(self, index: int) -> str:
        """The name of an input or output."""
        return self._io[index].name

    def get_tensor_mode(self, name: str) -> BoundEnum:
        """Whether it is an input or an output."""
        return self._api.enum("TensorIOMode", "INPUT" if self._binding(name).is_input else "OUTPUT")

    def get_tensor_shape(self, name: str) -> Dims:
        """Its shape; -1 is dynamic."""
        return self._api.new(Dims, self._binding(name).shape)

    def get_tensor_dtype(self, name: str) -> BoundEnum:
        """Its data type."""
        return self._api.enum("DataType", self._binding(name).dtype)

    def get_tensor_location(self, name: str) -> BoundEnum:
        """Where its values have to be."""
        return self._api.enum("TensorLocation", "HOST" if self._binding(name).is_shape else "DEVICE")

    def get_tensor_format(self, name: str, profile_index: int = 0) -> BoundEnum:
        """Its format, which is the same for all profiles."""
        del profile_index
        return self._api.enum("TensorFormat", self._binding(name).format)

    def get_tensor_format_desc(self, name: str, profile_index: int = 0) -> str:
        """Its format in words."""
        del profile_index
        return self._layout(name).long_text

    def get_tensor_vectorized_dim(self, name: str, profile_index: int = 0) -> int:
        """The dimension that is packed, -1 if none is."""
        del profile_index
        return self._layout(name).vectorized_axis

    def get_tensor_components_per_element(self, name: str, profile_index: int = 0) -> int:
        """How many components are packed into an element; -1 if none are."""
        del profile_index
        layout = self._layout(name)
        return layout.components if layout.components > 1 else -1

    def get_tensor_bytes_per_component(self, name: str, profile_index: int = 0) -> int:
        """The size of a component; -1 if the format is not packed."""
        del profile_index
        layout = self._layout(name)
        return DTYPES[layout.dtype].size if layout.components > 1 else -1

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Dims]:
        """Minimum, optimum and maximum shape of an input."""
        return [self._api.new(Dims, shape) for shape in self._binding(name).shapes[profile_index]]

    def get_tensor_profile_values(self, name: str, profile_index: int) -> list[list[int]]:
        """Minimum, optimum and maximum of the values of an input that holds a shape."""
        values = self._binding(name).values
        return [list(numbers) for numbers in values[profile_index]] if values else []

    def is_shape_inference_io(self, name: str) -> bool:
        """Whether its values say how large other tensors are."""
        return self._binding(name).is_shape

    def is_debug_tensor(self, name: str) -> bool:
        """Whether the tensor is reported to the debug listener."""
        return any(binding.name == name and binding.is_debug for binding in self._engine.bindings)

    def get_binding_name(self, index: int) -> str:
        """The name of a binding; the bindings of later profiles carry their number."""
        profile = index // len(self._io)
        return self._binding(index).name + (f" [profile {profile}]" if profile else "")

    def get_binding_index(self, name: str) -> int:
        """The index of a binding, -1 if there is none of that name."""
        names = [self.get_binding_name(index) for index in range(len(self._io) * len(self._engine.profiles))]
        return names.index(name) if name in names else -1

    def get_binding_shape(self, binding: str | int) -> Dims:
        """The shape of a binding."""
        return self._api.new(Dims, self._binding(binding).shape)

    def get_binding_dtype(self, binding: str | int) -> BoundEnum:
        """The data type of a binding."""
        return self._api.enum("DataType", self._binding(binding).dtype)

    def binding_is_input(self, binding: str | int) -> bool:
        """Whether a binding is an input."""
        return self._binding(binding).is_input

    def create_execution_context(self, strategy: BoundEnum | None = None) -> IExecutionContext:
        """Something to run the engine with; host memory makes all strategies alike."""
        del strategy
        return self._api.new(IExecutionContext, self)

    def create_execution_context_without_device_memory(self) -> IExecutionContext:
        """Something to run the engine with, whose memory the user provides."""
        return self._api.new(IExecutionContext, self)

    def create_engine_inspector(self) -> EngineInspector:
        """Something to look into the engine with."""
        return self._api.new(EngineInspector, self._engine)

    def serialize(self) -> IHostMemory:
        """As bytes."""
        return host_memory(self._api, plan.dump(self._engine, self._api.personality))
