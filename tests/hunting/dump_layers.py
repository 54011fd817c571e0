"""A check that passes, and writes the layer information of an engine to layers.json. Argument: the engine."""

import sys
from pathlib import Path

import tensorrt as trt

engine = trt.Runtime(trt.Logger(trt.Logger.ERROR)).deserialize_cuda_engine(Path(sys.argv[1]).read_bytes())
text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
Path("layers.json").write_text(text)
