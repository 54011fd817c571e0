"""INT8 calibration: the interfaces that users implement, and finding the scale of every tensor with one."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from polygraphy_debug_ext.simulator.bindings.base import Bound
from polygraphy_debug_ext.simulator.compiler.dtypes import DTYPES
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.simulator.errors import BuildFailure
from polygraphy_debug_ext.simulator.execution.memory import read
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

    from polygraphy_debug_ext.simulator.bindings.config import IBuilderConfig
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.bindings.network import INetworkDefinition
    from polygraphy_debug_ext.simulator.compiler.log import Log
else:
    onnx = LazyModule("onnx")

INT8_MAX = 127.0
SMALLEST = 1e-8


class IInt8Calibrator(Bound):
    """Provides data, so that the range of every tensor can be found."""

    def get_batch_size(self) -> int:
        """The size of a batch."""
        raise NotImplementedError("get_batch_size must be implemented by a subclass")

    def get_batch(self, names: list[str]) -> list[int] | None:
        """Device pointers to the next batch, None when there is no more."""
        raise NotImplementedError("get_batch must be implemented by a subclass")

    def read_calibration_cache(self) -> bytes | None:
        """The result of an earlier calibration."""
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        """Keep the result of this calibration."""

    def get_algorithm(self) -> BoundEnum:
        """How ranges are found."""
        return self._api.enum("CalibrationAlgoType", "ENTROPY_CALIBRATION_2")


class IInt8EntropyCalibrator(IInt8Calibrator):
    """Calibration by entropy, first version."""

    def get_algorithm(self) -> BoundEnum:
        """How ranges are found."""
        return self._api.enum("CalibrationAlgoType", "ENTROPY_CALIBRATION")


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Calibration by entropy."""

    def get_algorithm(self) -> BoundEnum:
        """How ranges are found."""
        return self._api.enum("CalibrationAlgoType", "ENTROPY_CALIBRATION_2")


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """Calibration by minimum and maximum."""

    def get_algorithm(self) -> BoundEnum:
        """How ranges are found."""
        return self._api.enum("CalibrationAlgoType", "MINMAX_CALIBRATION")


class IInt8LegacyCalibrator(IInt8Calibrator):
    """Calibration by quantile."""

    def get_algorithm(self) -> BoundEnum:
        """How ranges are found."""
        return self._api.enum("CalibrationAlgoType", "LEGACY_CALIBRATION")


class _UserCalibrator(Protocol):
    def get_batch_size(self) -> int: ...
    def get_batch(self, names: list[str]) -> Sequence[int] | None: ...
    def read_calibration_cache(self) -> bytes | None: ...
    def write_calibration_cache(self, cache: memoryview) -> None: ...
    def get_algorithm(self) -> BoundEnum: ...


def scales(network: INetworkDefinition, config: IBuilderConfig, log: Log) -> dict[str, float]:
    """The INT8 scale of each tensor: from the ranges that the user set, and from the calibrator."""
    found = {
        name: max(abs(low), abs(high), SMALLEST) / INT8_MAX
        for name, (low, high) in network._marks.ranges.items()
    }
    if config.int8_calibrator is None:
        if not found and not any(
            "Quantize" in node.op or "Dequantize" in node.op for node in network._graph_or_raise().nodes
        ):
            log.caution(
                "INT8 is enabled without a calibrator: tensors without a dynamic range stay in higher precision."
            )
        return found
    calibrator = cast("_UserCalibrator", config.int8_calibrator)
    try:
        return {**_calibrate(network, config, calibrator, log), **found}
    except BuildFailure:
        raise
    except Exception as error:  # the user's code is the other side of the language border
        log.sink("ERROR", f"Exception caught in the calibrator: {type(error).__name__}: {error}")
        raise BuildFailure("internal", why="calibration failed") from error


def _calibrate(
    network: INetworkDefinition, config: IBuilderConfig, calibrator: _UserCalibrator, log: Log
) -> dict[str, float]:
    title = "".join(part.capitalize() for part in calibrator.get_algorithm().name.split("_"))
    cached = calibrator.read_calibration_cache()
    if cached:
        log.note(f"Reading Calibration Cache for calibrator: {title}")
        return _parse(bytes(cached))
    log.note("Starting Calibration.")
    found = _observe(network, config, calibrator)
    text = _render(f"TRT-{network._api.personality.version.replace('.', '')}-{title}", found)
    calibrator.write_calibration_cache(memoryview(text))
    return found


def _observe(
    network: INetworkDefinition, config: IBuilderConfig, calibrator: _UserCalibrator
) -> dict[str, float]:
    """Run the batches in FP32, and see how large the values of each tensor get."""
    graph = network._graph_or_raise()
    shapes = _input_shapes(network, config)
    floats = [name for name in graph.types if graph.types[name].elem_type == onnx.TensorProto.FLOAT]
    produced = [name for node in graph.nodes for name in node.outputs if name in set(floats)]
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in produced)
    session = open_session(model.SerializeToString())
    calibrator.get_batch_size()
    peaks: dict[str, float] = {}
    while True:
        pointers = calibrator.get_batch(list(graph.inputs))
        if not pointers:
            break
        feeds = {}
        for name, pointer in zip(graph.inputs, pointers, strict=True):
            dtype = DTYPES[network._dtype(name)]
            values = read(int(pointer), int(np.prod(shapes[name], dtype=np.int64)) * dtype.size).view(
                dtype.numpy
            )
            native = onnx.helper.tensor_dtype_to_np_dtype(graph.types[name].elem_type)
            feeds[name] = values.reshape(shapes[name]).astype(native)
        results = zip(produced, session.run(produced, feeds), strict=True)
        for name, value in (*results, *feeds.items()):
            if name in floats and np.size(value):
                peaks[name] = max(peaks.get(name, 0.0), float(np.abs(value).max()))
    if not peaks:
        raise BuildFailure("internal", why="the calibrator gave no data")
    return {name: float(np.float32(max(peak, SMALLEST) / INT8_MAX)) for name, peak in peaks.items()}


def _input_shapes(network: INetworkDefinition, config: IBuilderConfig) -> dict[str, tuple[int, ...]]:
    graph = network._graph_or_raise()
    profile = config._calibration_profile or next(iter(config._profiles), None)
    found: dict[str, tuple[int, ...]] = {}
    for name in graph.inputs:
        given = profile.get_shape(name) if profile is not None else []
        found[name] = tuple(given[1]) if given else tuple(graph.types[name].shape or ())
    return found


def _render(header: str, found: Mapping[str, float]) -> bytes:
    lines = [f"{name}: {struct.pack('>f', scale).hex()}" for name, scale in found.items()]
    return "\n".join([header, *lines, ""]).encode()


def _parse(data: bytes) -> dict[str, float]:
    found = {}
    for line in data.decode().splitlines()[1:]:
        name, _, digits = line.rpartition(": ")
        found[name] = float(struct.unpack(">f", bytes.fromhex(digits))[0])
    return found
