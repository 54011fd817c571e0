from __future__ import annotations

import pytest

from polygraphy_debug_ext.simulator import settings
from polygraphy_debug_ext.simulator.errors import UsageError
from polygraphy_debug_ext.simulator.settings import Settings


def test_settings_survive_the_environment() -> None:
    chosen = Settings(trt="8.6", seed=7, noise=0.1, fault=("*@a b:offset:rate=0.5",))
    assert settings.load(chosen.dump()) == chosen


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a set of settings"),
        ('{"format": 2}', "format 1"),
        ('{"format": 1, "colour": "red"}', "unknown field 'colour'"),
        ('{"format": 1, "trt": "9.9"}', "there is no personality '9.9'"),
        ('{"format": 1, "trt": 10}', "trt is not text"),
        ('{"format": 1, "seed": true}', "seed is not a whole number"),
        ('{"format": 1, "noise": "loud"}', "noise is not a number"),
        ('{"format": 1, "noise": -1}', "between 0 and 1"),
        ('{"format": 1, "fault": "*:nan"}', "not a list of texts"),
        ('{"format": 1, "fault": ["*:explode"]}', "no effect 'explode'"),
    ],
)
def test_a_damaged_variable_is_refused_with_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        settings.load(text)


def test_the_environment_is_read_at_each_use(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in (1, 2):
        monkeypatch.setenv(settings.VARIABLE, Settings(seed=seed).dump())
        assert settings.current().seed == seed


def test_without_the_variable_nothing_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(settings.VARIABLE, raising=False)
    with pytest.raises(UsageError, match="was not asked for"):
        settings.current()
