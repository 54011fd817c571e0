from __future__ import annotations

import pytest

from polygraphy_debug_ext.simulator.errors import UsageError
from polygraphy_debug_ext.simulator.faults import EFFECTS, Fault, parse


@pytest.mark.parametrize("effect", EFFECTS)
def test_every_effect_can_be_planted_everywhere(effect: str) -> None:
    assert parse(f"*:{effect}") == Fault(kernel="*", layer="*", effect=effect)


def test_options_come_in_any_order() -> None:
    wanted = Fault(kernel="k*", layer="conv1 + relu1", effect="offset", rate=0.25, value=-3.0)
    assert parse("k*@conv1 + relu1:offset:rate=0.25:value=-3") == wanted
    assert parse("k*@conv1 + relu1:offset:value=-3:rate=0.25") == wanted


def test_layer_names_may_hold_colons_and_brackets() -> None:
    fault = parse("k@b3/read:0 [profile 1]:nan")
    assert fault.layer == "b3/read:0 [profile 1]"
    assert fault.matches("k", "b3/read:0 [profile 1]")


def test_globs_are_case_sensitive_and_need_the_whole_name() -> None:
    assert parse("*F16*:nan").matches("xF16y", "any")
    assert not parse("*F16*:nan").matches("xf16y", "any")
    assert not parse("f16:nan").matches("xf16y", "any")


def test_any_of_the_names_of_a_layer_will_do() -> None:
    assert parse("*@conv1:nan").matches("k", "conv1 [profile 1]", "conv1")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("", "no effect"),
        ("kernel", "no effect"),
        ("kernel:explode", "there is no effect 'explode'"),
        (":nan", "is empty"),
        ("k@:nan", "is empty"),
        ("k:nan:rate=0", "rate must be"),
        ("k:nan:rate=1.5", "rate must be"),
        ("k:nan:rate=often", "not a number"),
        ("k:nan:rate=nan", "finite"),
        ("k:nan:rate=1:rate=1", "twice"),
        ("k:nan:value=1", "belongs to the effect offset"),
    ],
)
def test_a_bad_specification_is_refused_with_the_grammar(spec: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        parse(spec)
    assert "KERNEL[@LAYER]:EFFECT" in str(caught.value)
