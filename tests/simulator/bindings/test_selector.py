from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.simulator.conftest import Made, Models, Workbench


def selector(
    bench: Workbench,
    select: Callable[[Made, Sequence[Made]], object] | None = None,
    reported: list[tuple[Made, Made]] | None = None,
) -> Callable[[Made, Made, Made], None]:
    """Prepares a build with a selector that answers as told."""

    class Selector(bench.trt.IAlgorithmSelector):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def select_algorithms(self, context: Made, choices: Sequence[Made]) -> object:
            return list(range(len(choices))) if select is None else select(context, choices)

        def report_algorithms(self, contexts: Sequence[Made], choices: Sequence[Made]) -> None:
            if reported is not None:
                reported.extend(zip(contexts, choices, strict=True))

    def prepare(_: Made, __: Made, config: Made) -> None:
        config.algorithm_selector = Selector()

    return prepare


@pytest.mark.parametrize("name", ["8.6", "10.13"])
def test_the_report_has_every_layer_in_order(
    workbench: Callable[..., Workbench], models: Models, name: str
) -> None:
    bench, reported = workbench(name), list[tuple[object, object]]()
    plan = bench.build(models.conv_net(), "FP16", prepare=selector(bench, reported=reported))
    choices = bench.engine(plan)._engine.choices
    mask = 2**64 - 1
    found = [(context.name, choice.algorithm_variant.tactic & mask) for context, choice in reported]  # type: ignore[attr-defined]
    assert found == [(choice.name, choice.tactic) for choice in choices]
    assert all(choice.algorithm_variant.implementation >= 1 << 31 for _, choice in reported)  # type: ignore[attr-defined]


def test_a_choice_describes_its_tensors(bench: Workbench, models: Models) -> None:
    seen: dict[str, list[str]] = {}

    def look(context: Made, choices: Sequence[Made]) -> list[int]:
        infos = [
            choices[-1].get_algorithm_io_info(i) for i in range(context.num_inputs + context.num_outputs)
        ]
        seen[context.name] = [
            f"{i.dtype} {i.strides} {i.vectorized_dim} {i.components_per_element}" for i in infos
        ]
        assert tuple(context.get_shape(0)[1]) != ()
        assert all(choice.timing_msec == -1 and choice.workspace_size >= 0 for choice in choices)
        return []

    bench.build(models.conv_net(), "FP16", prepare=selector(bench, look))
    assert seen["conv1 + relu1"] == ["DataType.HALF (256, 1, 16, 1) 1 8"] * 2


def test_what_is_selected_is_what_is_built(bench: Workbench, models: Models) -> None:
    for index in (0, -1):
        wanted: dict[str, int] = {}

        def pick(
            context: Made, choices: Sequence[Made], index: int = index, wanted: dict[str, int] = wanted
        ) -> list[int]:
            wanted[context.name] = choices[index].algorithm_variant.tactic % 2**64
            return [index % len(choices)]

        plan = bench.build(models.conv_net(), "FP16", prepare=selector(bench, pick))
        assert {c.name: c.tactic for c in bench.engine(plan)._engine.choices} == wanted


def test_an_empty_answer_leaves_the_choice_to_the_builder(bench: Workbench, models: Models) -> None:
    free = bench.tactics(bench.build(models.conv_net(), "FP16"))
    assert (
        bench.tactics(bench.build(models.conv_net(), "FP16", prepare=selector(bench, lambda *_: []))) == free
    )


@pytest.mark.parametrize("index", [99, -1])
def test_an_index_that_does_not_exist_fails_the_build(bench: Workbench, models: Models, index: int) -> None:
    assert bench.build(models.identity(), prepare=selector(bench, lambda *_: [index])) is None
    assert f"returned index {index} for node_of_y" in bench.text("ERROR")


def test_an_exception_in_the_selector_fails_the_build(bench: Workbench, models: Models) -> None:
    def explode(*_: object) -> list[int]:
        raise KeyError("boom")

    assert bench.build(models.identity(), prepare=selector(bench, explode)) is None
    assert "Exception caught in select_algorithms(): KeyError: 'boom'" in bench.text("ERROR")


def test_an_exception_in_the_report_fails_the_build(bench: Workbench, models: Models) -> None:
    class Selector(bench.trt.IAlgorithmSelector):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def report_algorithms(self, contexts: Sequence[Made], choices: Sequence[Made]) -> None:
            raise ValueError(f"{len(contexts)} of {len(choices)}")

    def prepare(_: Made, __: Made, config: Made) -> None:
        config.algorithm_selector = Selector()

    assert bench.build(models.identity(), prepare=prepare) is None
    assert "Exception caught in report_algorithms(): ValueError: 1 of 1" in bench.text("ERROR")


def test_a_graph_of_myelin_is_one_choice_that_says_nothing(bench: Workbench, models: Models) -> None:
    seen: dict[str, list[tuple[int, int]]] = {}

    def look(context: Made, choices: Sequence[Made]) -> list[int]:
        variants = [choice.algorithm_variant for choice in choices]
        seen[context.name] = [(variant.implementation, variant.tactic) for variant in variants]
        return []

    bench.build(models.attention(), prepare=selector(bench, look))
    assert seen == {"{ForeignNode[wq...mix]}": [(0x80000023, 0)]}
