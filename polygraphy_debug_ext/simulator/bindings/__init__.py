"""The surface: the classes that user code sees as `tensorrt`. They delegate to `compiler` and `execution`."""
