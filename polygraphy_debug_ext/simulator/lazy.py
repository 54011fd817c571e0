"""Modules that are imported when they are first used: importing `tensorrt` must stay cheap, and onnx is not."""

from __future__ import annotations

import importlib


class LazyModule:
    """Stands for a module until one of its names is needed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> object:
        return getattr(importlib.import_module(self._name), attribute)
