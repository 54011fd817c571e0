"""A TensorRT that runs on a CPU, for rehearsal, tests and benchmarks.

- *personality*: the version of TensorRT that is imitated (what its bindings have, how its log reads);
- *kernel*: what a tactic id stands for; *candidate*: a kernel that a layer could use, with its I/O formats;
- *fault*: a kernel that is planted to be wrong, to crash or to hang.

`bindings/` is what user code sees as `tensorrt`, `compiler/` turns ONNX into an engine, `execution/` runs it through
ONNX Runtime. Nothing here is active unless `polygraphy-trt-sim` asks for it.
"""
