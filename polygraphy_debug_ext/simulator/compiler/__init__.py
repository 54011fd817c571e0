"""From an ONNX model to the choices of an engine: graph, fusion, kernels, timing, tuning."""
