"""Bisection names the planted culprit, and proves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.model.isolation import Outcome
from polygraphy_debug_ext.search.settings import Settings

if TYPE_CHECKING:
    from tests.search.conftest import MakeWorld


@pytest.mark.parametrize("culprit", ["f0", "f31", "f63"])
def test_a_check_that_never_errs_takes_a_dozen_builds(world: MakeWorld, culprit: str) -> None:
    result = world(64, lambda bad: culprit in bad).search(Settings(seed=3)).result()
    assert result.outcome is Outcome.CONFIRMED
    (found,) = result.culprits
    assert found.members == ((culprit,),)
    assert result.builds <= 14
    assert found.inside.fails == found.inside.builds >= 1
    assert found.outside.passes == found.outside.builds >= 1
