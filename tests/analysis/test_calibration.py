"""The ranking keeps its word: the study of tests/benchmarks, with fewer runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from types import ModuleType


@pytest.mark.parametrize(
    ("layers", "tactics", "a", "b", "theirs"), [(100, 6, 0.05, 0.95, 0.6), (100, 3, 0.0, 0.5, 0.0)]
)
def test_eighty_builds_name_the_culprit_where_set_difference_does_not(
    study: ModuleType, layers: int, tactics: int, a: float, b: float, theirs: float
) -> None:
    network = study.Network(name="", layers=layers, tactics=tactics)
    generator = np.random.default_rng(3)
    drawn = [study.draw(network, 80, a, b, generator) for _ in range(60)]
    said = Counter(map(study.judge, drawn))
    # The goal is 95 %; 60 runs of a rate of 95 % have fewer than 53 hits once in 100 times.
    assert said["right"] >= 53
    assert said["wrong"] == 0
    assert Counter(map(study.stock, drawn))["alone"] <= 60 * theirs


@pytest.mark.parametrize("flake", [0.0, 0.2, 0.5])
def test_claims_are_right_as_often_as_they_say(study: ModuleType, flake: float) -> None:
    generator = np.random.default_rng(4)
    said = Counter(
        study.judge(study.draw(network, builds, a, b, generator))
        for network in study.NETWORKS
        for a, b in study.rates_of(flake)
        for builds in (8, 30, 100)
        for _ in range(3)
    )
    assert said["right"] >= 30
    # Of 100 claims that are right 95 times of 100, at most 9 are wrong 97 times of 100.
    assert said["wrong"] <= 0.09 * (said["right"] + said["wrong"])


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
def test_failures_that_have_nothing_to_do_with_tactics_are_blamed_on_none(
    study: ModuleType, rate: float
) -> None:
    generator = np.random.default_rng(5)
    said = Counter(
        study.judge(study.draw(network, builds, rate, rate, generator))
        for network in study.NETWORKS
        for builds in (10, 40)
        for _ in range(8)
    )
    assert said["right"] + said["wrong"] <= 0.05 * sum(said.values()) + 2


def test_one_who_looks_after_every_build_is_not_misled_more_often_than_said(study: ModuleType) -> None:
    network = study.Network(name="", layers=12, tactics=3)
    generator = np.random.default_rng(6)
    said = Counter(study.until_decided(study.draw(network, 30, 0.4, 0.4, generator))[0] for _ in range(20))
    # Ville's inequality: at most 1 of 19 on average; more than 4 of 20 come once in 200 times.
    assert said["right"] + said["wrong"] <= 4


@pytest.mark.parametrize("flake", [0.0, 0.5])
def test_a_check_that_passes_by_mistake_delays_the_answer_and_does_not_change_it(
    study: ModuleType, flake: float
) -> None:
    network = study.Network(name="", layers=30, tactics=3)
    generator = np.random.default_rng(7)
    drawn = [study.draw(network, 150, 0.0, 1 - flake, generator) for _ in range(12)]
    decided = [study.until_decided(builds) for builds in drawn]
    assert [said for said, _ in decided].count("right") >= 11
    if flake:
        theirs = Counter(
            study.stock(builds.first(size)) for builds, (_, size) in zip(drawn, decided, strict=True)
        )
        assert theirs["alone"] == 0
        assert theirs["acquitted"] >= 11
