"""Running an engine: the plan, the ONNX model that computes what its tactics compute, and a host-memory CUDA."""
