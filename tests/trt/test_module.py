"""Which module is TensorRT, and what is said where it cannot be had."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

import polygraphy
import pytest
from polygraphy.backend.trt import CreateNetwork

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.trt.module import tensorrt

if TYPE_CHECKING:
    from collections.abc import Callable


def asking_for(explicit_batch: bool | None) -> Callable[[Any], None]:  # noqa: FBT001 - as in Polygraphy
    """A constructor of Polygraphy's that asks for a flag, or does not."""

    def construct(self: Any) -> None:  # noqa: ANN401 - Polygraphy has no types
        self.explicit_batch = explicit_batch

    return construct


@pytest.fixture
def rtx(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module in the place of TensorRT-RTX, which Polygraphy is told to use."""
    module = types.ModuleType("tensorrt_rtx")
    vars(module).update(
        __version__="1.7", NetworkDefinitionCreationFlag=type("Flags", (), {"STRONGLY_TYPED": 0})
    )
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", module)
    monkeypatch.setattr(polygraphy.config, "USE_TENSORRT_RTX", True, raising=False)
    return module


def test_polygraphy_says_which_module_it_is(rtx: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateNetwork, "__init__", asking_for(None))
    assert tensorrt() is rtx


def test_a_polygraphy_that_does_not_know_tensorrt_rtx_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYGRAPHY_USE_TENSORRT_RTX", "1")
    monkeypatch.delattr(polygraphy.config, "USE_TENSORRT_RTX", raising=False)
    with pytest.raises(UsageError, match="does not know TensorRT-RTX"):
        tensorrt()


@pytest.mark.usefixtures("rtx")
def test_a_polygraphy_that_is_too_old_for_tensorrt_rtx_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateNetwork, "__init__", asking_for(True))
    with pytest.raises(UsageError, match=r"is too old for tensorrt_rtx 1\.7"):
        tensorrt()


def test_a_module_that_is_not_there_is_told_of_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polygraphy.config, "USE_TENSORRT_RTX", True, raising=False)
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", None)
    with pytest.raises(UsageError, match="pip install tensorrt-rtx-cu13"):
        tensorrt()
