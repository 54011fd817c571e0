"""Finds the TensorRT tactic behind a flaky engine build, as subtools of `polygraphy debug`."""

__version__ = "0.1.0"
