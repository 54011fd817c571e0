from __future__ import annotations

import numpy as np
import pytest

from polygraphy_debug_ext.simulator.compiler.layouts import FORMATS, Layout


@pytest.mark.parametrize(
    ("layout", "shape", "text"),
    [
        (Layout(dtype="FLOAT"), (1, 32, 28, 28), "Float(25088,784,28,1)"),
        (Layout(dtype="HALF", format="HWC8"), (1, 1, 28, 28), "Half(784,1:8,28,1)"),
        (Layout(dtype="HALF", format="HWC8"), (1, 32, 28, 28), "Half(3136,1:8,112,4)"),
        (Layout(dtype="INT8", format="CHW32"), (1, 64, 28, 28), "Int8(1568,784:32,28,1)"),
        (Layout(dtype="FLOAT", format="HWC"), (1, 3, 4, 5), "Float(60,1,15,3)"),
        (Layout(dtype="INT64"), (), "Int64()"),
    ],
)
def test_strides_read_as_in_the_log(layout: Layout, shape: tuple[int, ...], text: str) -> None:
    assert layout.strides_text(shape) == text


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("channels", [1, 5, 33])
def test_packing_can_be_undone(name: str, channels: int) -> None:
    layout = Layout(dtype="HALF", format=name)
    values = np.arange(2 * channels * 12, dtype=np.float16).reshape(2, channels, 3, 4)
    packed = layout.pack(values)
    assert packed.nbytes == layout.nbytes(values.shape)
    np.testing.assert_array_equal(layout.unpack(packed.ravel(), values.shape), values)


def test_a_vectorized_dimension_is_marked() -> None:
    layout = Layout(dtype="HALF", format="HWC8")
    assert layout.dims_text((-1, 32, 28, 28)) == "-1,32:8,28,28"
    assert (layout.vectorized_axis, layout.components) == (1, 8)
    assert Layout(dtype="FLOAT").vectorized_axis == -1
