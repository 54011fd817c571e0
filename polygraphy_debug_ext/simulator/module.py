"""Makes the module that user code imports as `tensorrt`: the surface, cut to one personality."""

from __future__ import annotations

import os
from types import ModuleType
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator import personality, settings
from polygraphy_debug_ext.simulator.bindings import (
    builder,
    calibration,
    config,
    context,
    engine,
    inspector,
    layers,
    listeners,
    logger,
    memory,
    network,
    parser,
    selector,
    timing_cache,
)
from polygraphy_debug_ext.simulator.bindings.base import Api, Dims, DimsHW
from polygraphy_debug_ext.simulator.bindings.enums import make_enum

if TYPE_CHECKING:
    from polygraphy_debug_ext.simulator.settings import Settings

# Enums whose members the offered classes take or give.
ENUMS = (
    "ActivationType", "BuilderFlag", "CalibrationAlgoType", "CumulativeOperation", "DataType", "DeviceType",
    "ElementWiseOperation", "EngineCapability", "ErrorCode", "ExecutionContextAllocationStrategy", "GatherMode",
    "HardwareCompatibilityLevel", "LayerInformationFormat", "LayerType", "MatrixOperation", "MemoryPoolType",
    "NetworkDefinitionCreationFlag", "OnnxParserFlag", "PaddingMode", "PoolingType", "PreviewFeature", "ProfilingVerbosity",
    "QuantizationFlag", "ReduceOperation", "RuntimePlatform", "ScaleMode", "ScatterMode", "TacticSource", "TensorFormat",
    "SeekPosition", "TensorIOMode", "TensorLocation", "TilingOptimizationLevel", "UnaryOperation",
)  # fmt: skip
# Bases come before the classes that extend them.
CLASSES = (
    Dims, DimsHW, logger.ILogger, logger.Logger, memory.IHostMemory, layers.ILayer, network.ITensor, network.INetworkDefinition,
    parser.ParserError, parser.OnnxParser, config.IOptimizationProfile, timing_cache.TimingCacheKey,
    timing_cache.TimingCacheValue, timing_cache.ITimingCache, config.IBuilderConfig,
    selector.IAlgorithmIOInfo, selector.IAlgorithmVariant, selector.IAlgorithm, selector.IAlgorithmContext,
    selector.IAlgorithmSelector, calibration.IInt8Calibrator, calibration.IInt8EntropyCalibrator,
    calibration.IInt8EntropyCalibrator2, calibration.IInt8MinMaxCalibrator, calibration.IInt8LegacyCalibrator,
    builder.IProgressMonitor, builder.Builder, engine.IStreamReader, engine.IStreamReaderV2, engine.Runtime, engine.ICudaEngine,
    inspector.EngineInspector, listeners.IOutputAllocator, listeners.IDebugListener, listeners.IProfiler,
    context.IExecutionContext,
)  # fmt: skip
DATA_TYPES = {
    "float32": "FLOAT", "float16": "HALF", "int8": "INT8", "int32": "INT32", "int64": "INT64", "bool": "BOOL",
    "uint8": "UINT8", "bfloat16": "BF16", "fp8": "FP8", "int4": "INT4", "fp4": "FP4", "e8m0": "E8M0",
}  # fmt: skip


def build_module(name: str = personality.DEFAULT, fixed: Settings | None = None) -> ModuleType:
    """The module of a personality; without `fixed` settings those of the environment count, as they are at each use."""
    api = make_api(name, fixed)
    module = ModuleType("tensorrt", f"TensorRT {api.personality.version}, simulated on a CPU.")
    severity = api.enums["Severity"]
    module_fields = {
        **{name: enum for name, enum in api.enums.items() if name != "Severity"},
        **api.classes,
        **{
            name: api.enum("DataType", DATA_TYPES[name])
            for name in api.personality.functions
            if name in DATA_TYPES
        },
        "init_libnvinfer_plugins": init_libnvinfer_plugins,
        "__version__": api.personality.version,
    }
    api.classes["ILogger"].Severity = severity  # type: ignore[attr-defined]  # as the bindings nest it
    for member, value in severity.__members__.items():
        setattr(api.classes["ILogger"], member, value)
    vars(module).update(module_fields)
    return module


def make_api(name: str, fixed: Settings | None = None) -> Api:
    """The surface of a personality, before it is put into a module."""
    api = Api(
        personality=personality.load(name),
        settings=lambda: fixed if fixed is not None else _environment(name),
    )
    api.enums["Severity"] = make_enum("Severity", logger.SEVERITIES)
    for enum in ENUMS:
        api.add_enum(enum)
    api.add_classes(CLASSES)
    layers.make_layer_classes(api)
    return api


def _environment(name: str) -> Settings:
    """The settings of the process, or the defaults where it was not started by the launcher."""
    return settings.current() if settings.VARIABLE in os.environ else settings.Settings(trt=name)


def init_libnvinfer_plugins(logger: object, namespace: str) -> bool:
    """There are no plugins to register."""
    del logger, namespace
    return True
