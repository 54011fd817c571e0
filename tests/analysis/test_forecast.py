"""What is foretold agrees with what comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.model.answer import Conclusion

if TYPE_CHECKING:
    from types import ModuleType


def test_after_the_number_that_is_foretold_about_half_of_all_cases_are_decided(study: ModuleType) -> None:
    network = study.Network(name="", layers=30, tactics=3)
    generator = np.random.default_rng(12)
    decided = []
    # As believed beforehand: in half of the cases a tactic is at fault.
    for a, b in ((0.02, 0.98), (0.1, 0.8), (0.3, 0.3), (0.7, 0.7)) * 8:
        builds = study.draw(network, 300, a, b, generator)
        early = builds.first(10)
        answer = rank(network.table(early.picks, early.bad))
        if answer.further_builds is not None and answer.further_builds <= 290:
            decided.append(study.judge(builds.first(10 + answer.further_builds)) != "undecided")
    assert len(decided) >= 20
    assert 0.3 <= np.mean(decided) <= 0.8


def test_no_number_is_given_where_no_decision_is_in_sight(study: ModuleType) -> None:
    network = study.Network(name="", layers=40, tactics=2, rare=0.02)
    generator = np.random.default_rng(1)
    builds = study.draw(network, 40, 0.5, 0.55, generator)
    answer = rank(network.table(builds.picks, builds.bad), confidence=1 - 1e-12)
    assert answer.conclusion is Conclusion.UNDECIDED
    assert answer.further_builds is None


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_builds_foretell_the_same(study: ModuleType, seed: int) -> None:
    network = study.Network(name="", layers=20, tactics=3)
    builds = study.draw(network, 10, 0.0, 1.0, np.random.default_rng(seed))
    data = network.table(builds.picks, builds.bad)
    assert rank(data) == rank(data)


def test_the_likeliest_suspect_tells_most_while_it_is_far_from_sure(study: ModuleType) -> None:
    network = study.Network(name="", layers=30, tactics=3)
    builds = study.draw(network, 11, 0.0, 1.0, np.random.default_rng(3))
    answer = rank(network.table(builds.picks, builds.bad))
    assert answer.conclusion is Conclusion.UNDECIDED
    assert answer.telling[0] in answer.suspects[:3]
