"""Which candidates there are, and what they weigh."""

from __future__ import annotations

import numpy as np
import pytest

from polygraphy_debug_ext.analysis.hypotheses import hypotheses
from polygraphy_debug_ext.analysis.table import Choice, Table
from polygraphy_debug_ext.model import Tactic
from polygraphy_debug_ext.model.answer import View


def table(rows: list[list[int]], tactics: list[Tactic]) -> Table:
    """Builds (rows) of layers with two choices each, whose tactics are given in turn."""
    layers = len(rows[0])
    return Table(
        layers=tuple(f"layer{layer}" for layer in range(layers)),
        choices=tuple(Choice(layer=f"layer{n // 2}", tactic=tactic) for n, tactic in enumerate(tactics)),
        layer_of=(np.arange(2 * layers) // 2).astype(np.int32),
        codes=(np.array(rows) + 2 * np.arange(layers)).astype(np.int32),
        bad=np.zeros(len(rows), dtype=np.bool_),
        origins=("",) * len(rows),
    )


def named(*kernels: str | None) -> list[Tactic]:
    return [Tactic(implementation=1, tactic=number, kernel=kernel) for number, kernel in enumerate(kernels)]


ROWS = [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_a_kernel_of_several_layers_takes_half_the_weight_of_its_uses() -> None:
    found = hypotheses(table(ROWS, named("x", "a", "x", "b")), View.LAYER)
    assert found.choices == ((0,), (1,), (2,), (3,), (0, 2))
    assert found.views == (*[View.LAYER] * 4, View.KERNEL)
    assert found.weights.tolist() == [0.5, 1, 0.5, 1, 1]
    assert found.presence[4].tolist() == [True, True, True, False]


def test_a_kernel_that_is_where_one_of_its_uses_is_says_nothing_new() -> None:
    rows = [[0, 0], [0, 1], [1, 1], [1, 1]]
    found = hypotheses(table(rows, named("x", "a", "x", "b")), View.LAYER)
    assert found.choices == ((0,), (1,), (2,), (3,))
    assert found.weights.tolist() == [1, 1, 1, 1]


def test_a_kernel_that_every_build_has_is_no_candidate() -> None:
    found = hypotheses(table(ROWS, named("x", "a", "b", "a")), View.KERNEL)
    assert found.choices == ((0,), (1, 3), (2,))
    always = hypotheses(table([[0, 0], [1, 1]], named("x", "a", "a", "x")), View.KERNEL)
    assert always.choices == ()


def test_where_no_name_is_known_implementation_and_id_tell_the_kernel() -> None:
    tactics = [Tactic(implementation=each, tactic=-1) for each in (1, 2, 1, 3)]
    assert hypotheses(table(ROWS, tactics), View.KERNEL).choices == ((0, 2), (1,), (3,))
    tactics[0] = Tactic(implementation=1, tactic=2**64 - 1, kernel="x")
    assert hypotheses(table(ROWS, tactics), View.KERNEL).choices == ((0, 2), (1,), (3,))


def test_candidates_of_the_same_builds_are_one_class() -> None:
    found = hypotheses(table([[0, 0], [1, 1], [1, 1]], named(None, None, None, None)), View.LAYER)
    assert found.class_of.tolist() == [0, 1, 0, 1]
    assert found.class_sizes.tolist() == [2, 2]
    assert found.class_presence.tolist() == [[True, False, False], [False, True, True]]


@pytest.mark.parametrize("view", list(View))
def test_weights_come_to_what_varies(view: View) -> None:
    found = hypotheses(table(ROWS, named("x", "a", "x", "b")), view)
    assert found.class_weights.sum() == pytest.approx(4 if view is View.LAYER else 3)
