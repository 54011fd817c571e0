"""Algorithm selectors: what users implement, and how the tuner talks to one."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

from polygraphy_debug_ext.simulator.bindings.base import Api, Bound, Dims, View
from polygraphy_debug_ext.simulator.errors import BuildFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.compiler.layouts import Layout
    from polygraphy_debug_ext.simulator.compiler.log import Sink
    from polygraphy_debug_ext.simulator.compiler.records import Choice
    from polygraphy_debug_ext.simulator.compiler.stopwatch import Timed
    from polygraphy_debug_ext.simulator.compiler.tuner import Subject

T = TypeVar("T")
SIGN_BIT = 1 << 63


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """A layout with the shape of its tensor."""

    layout: Layout
    shape: tuple[int, ...]


class IAlgorithmIOInfo(Bound):
    """How an algorithm wants one of its tensors."""

    def __init__(self, placed: _Placed) -> None:
        self._placed = placed

    vectorized_dim = View(lambda info: info._placed.layout.vectorized_axis)
    components_per_element = View(lambda info: info._placed.layout.components)

    @property
    def dtype(self) -> BoundEnum:
        """The data type."""
        return self._api.enum("DataType", self._placed.layout.dtype)

    @property
    def tensor_format(self) -> BoundEnum:
        """The format."""
        return self._api.enum("TensorFormat", self._placed.layout.format)

    @property
    def strides(self) -> Dims:
        """The strides in elements."""
        return self._api.new(Dims, self._placed.layout.strides(self._placed.shape))


class IAlgorithmVariant(Bound):
    """What identifies an algorithm: the id of its implementation (unsigned), and its tactic (signed)."""

    def __init__(self, implementation: int, tactic: int) -> None:
        self._implementation, self._tactic = implementation, tactic

    implementation = View(lambda variant: variant._implementation)
    tactic = View(lambda variant: variant._tactic - 2 * (variant._tactic & SIGN_BIT))


class IAlgorithm(Bound):
    """One choice for a layer."""

    def __init__(
        self, variant: IAlgorithmVariant, placed: Sequence[_Placed], time_ms: float, workspace: int
    ) -> None:
        self._variant, self._placed, self._time_ms, self._workspace = variant, placed, time_ms, workspace

    algorithm_variant = View(lambda algorithm: algorithm._variant)
    timing_msec = View(lambda algorithm: algorithm._time_ms)
    workspace_size = View(lambda algorithm: algorithm._workspace)

    def get_algorithm_io_info(self, index: int) -> IAlgorithmIOInfo:
        """How it wants a tensor: the inputs come first, then the outputs."""
        return self._api.new(IAlgorithmIOInfo, self._placed[index])


class IAlgorithmContext(Bound):
    """The layer that is to be decided."""

    def __init__(self, name: str, inputs: int, shapes: Sequence[tuple[int, ...]]) -> None:
        self._name, self._inputs, self._shapes = name, inputs, shapes

    name = View(lambda context: context._name)
    num_inputs = View(lambda context: context._inputs)
    num_outputs = View(lambda context: len(context._shapes) - context._inputs)

    def get_shape(self, index: int) -> list[Dims]:
        """The shapes of a tensor; minimum and maximum are given as the optimum, for which the layer is tuned."""
        return [self._api.new(Dims, self._shapes[index]) for _ in range(3)]


class IAlgorithmSelector(Bound):
    """What users implement to restrict the choices of each layer, and to hear what was chosen."""

    def select_algorithms(self, context: IAlgorithmContext, choices: list[IAlgorithm]) -> list[int]:
        """Restrict the choices of a layer; all of them, if a subclass does not say otherwise."""
        del context
        return list(range(len(choices)))

    def report_algorithms(self, contexts: list[IAlgorithmContext], choices: list[IAlgorithm]) -> None:
        """Hear what was chosen for all layers."""


class _UserSelector(Protocol):
    def select_algorithms(self, context: IAlgorithmContext, choices: list[IAlgorithm]) -> Sequence[int]: ...
    def report_algorithms(self, contexts: list[IAlgorithmContext], choices: list[IAlgorithm]) -> None: ...


class SelectorAdapter:
    """Puts the questions of the tuner to the selector of a user."""

    def __init__(self, api: Api, selector: object, sink: Sink) -> None:
        self._api = api
        self._selector = cast("_UserSelector", selector)
        self._sink = sink

    def select(self, subject: Subject, choices: Sequence[Timed]) -> Sequence[int]:
        """The indices that the selector allows."""
        layer = subject.setting.layer
        shapes = [subject.setting.shape(name) for name in subject.tensors]
        context = self._api.new(IAlgorithmContext, subject.name, len(layer.inputs), shapes)
        algorithms = []
        for timed in choices:
            kernel = timed.candidate.kernel
            variant = self._api.new(
                IAlgorithmVariant, self._api.personality.implementation(kernel.runner), kernel.tactic
            )
            layouts = (*timed.candidate.inputs, *timed.candidate.outputs)
            placed = [
                _Placed(layout=layout, shape=shape) for layout, shape in zip(layouts, shapes, strict=True)
            ]
            algorithms.append(
                self._api.new(IAlgorithm, variant, placed, timed.time_ms, timed.candidate.workspace)
            )
        return self._asked(
            "select_algorithms",
            lambda: [int(index) for index in self._selector.select_algorithms(context, algorithms)],
        )

    def report(self, choices: Sequence[Choice]) -> None:
        """Tell the selector what was chosen."""
        contexts, algorithms = [], []
        for choice in choices:
            tensors = (*choice.inputs, *choice.outputs)
            shapes = [tensor.optimum for tensor in tensors]
            contexts.append(self._api.new(IAlgorithmContext, choice.name, len(choice.inputs), shapes))
            variant = self._api.new(IAlgorithmVariant, choice.implementation, choice.tactic)
            placed = [_Placed(layout=tensor.layout, shape=tensor.optimum) for tensor in tensors]
            algorithms.append(self._api.new(IAlgorithm, variant, placed, choice.time_ms, choice.workspace))
        self._asked("report_algorithms", lambda: self._selector.report_algorithms(contexts, algorithms))

    def _asked(self, method: str, call: Callable[[], T]) -> T:
        """Call the user's code; what it raises ends the build, as C++ cannot pass it on."""
        try:
            return call()
        except Exception as error:  # the user's code is the other side of the language border
            self._sink("ERROR", f"Exception caught in {method}(): {type(error).__name__}: {error}")
            raise BuildFailure("internal", why=f"the algorithm selector failed in {method}") from error
