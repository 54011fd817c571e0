"""Builds that are drawn at random, and the study of what is concluded from them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="session")
def study() -> ModuleType:
    """The script that draws builds and counts what is concluded."""
    path = Path(__file__).parents[1] / "benchmarks" / "study_calibration.py"
    spec = importlib.util.spec_from_file_location("study_calibration", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
