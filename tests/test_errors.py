"""Every error that a user can mend renders both halves: what happened, and what to do."""

from __future__ import annotations

import pytest

from polygraphy_debug_ext import errors


def all_errors(base: type[errors.DebugExtError]) -> list[type[errors.DebugExtError]]:
    return [base, *(error for child in base.__subclasses__() for error in all_errors(child))]


@pytest.mark.parametrize("error", all_errors(errors.DebugExtError))
def test_an_error_renders_problem_and_remedy(error: type[errors.DebugExtError]) -> None:
    if issubclass(error, errors.FormatError):
        raised: errors.DebugExtError = error("a.json", "truncated (line 3)", "Record it again.")
        assert raised.problem == "a.json: truncated (line 3)"
    else:
        raised = error("It broke", "Record it again.")
        assert raised.problem == "It broke"
    assert str(raised) == f"{raised.problem}. Record it again."
