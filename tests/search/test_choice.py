"""What stands in the way of tests."""

from __future__ import annotations

import numpy as np
import pytest

from polygraphy_debug_ext.search.choice import Terrain


@pytest.mark.parametrize("count", [1, 7, 40])
def test_beginnings_are_eased_as_each_of_them_is_by_itself(count: int) -> None:
    generator = np.random.default_rng(count)
    beginnings = np.tri(count + 1, count, -1, dtype=np.bool_)
    nothing = np.zeros(count, dtype=np.bool_)
    refused = [*(generator.random((3, count)) < 0.5), beginnings[count // 2]]
    terrain = Terrain(never=nothing, always=nothing, refused=refused, barred=[beginnings[count]])
    eases = terrain.ease_of_beginnings()
    assert eases.tolist() == pytest.approx([terrain.ease(build) for build in beginnings])
    assert eases[count // 2] == eases[count] == 0
