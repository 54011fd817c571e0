"""Tuning: the selector may restrict the candidates of a layer, those that are left are timed, the cheapest wins.

What a neighbour chose counts: bringing a tensor into another layout costs time, and becomes a layer of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from polygraphy_debug_ext.simulator.compiler import kernels
from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance, Candidate, Setting, candidates
from polygraphy_debug_ext.simulator.compiler.foreign import expanded
from polygraphy_debug_ext.simulator.compiler.fusion import Layer
from polygraphy_debug_ext.simulator.compiler.records import Choice, Tensor
from polygraphy_debug_ext.simulator.compiler.stopwatch import Timed
from polygraphy_debug_ext.simulator.compiler.timing import reformat_cost, true_cost
from polygraphy_debug_ext.simulator.errors import BuildFailure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.simulator.compiler.foreign import Foreign, ForeignTuner
    from polygraphy_debug_ext.simulator.compiler.layouts import Layout
    from polygraphy_debug_ext.simulator.compiler.shapes import TensorType
    from polygraphy_debug_ext.simulator.compiler.stopwatch import Stopwatch

# What a choice says of its time before it was timed.
NOT_TIMED = -1.0


class Selector(Protocol):
    """Somebody who may restrict the choices of a layer."""

    def select(self, subject: Subject, choices: Sequence[Timed]) -> Sequence[int]:
        """The indices of the choices that may be used; none at all leaves it to the builder. They are not timed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Precisions that the user set for nodes; `obey` makes them binding."""

    precisions: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    obey: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The layer that is being tuned, under the name that it has in the engine."""

    name: str
    base: str
    setting: Setting
    tensors: tuple[str, ...]


@dataclass(slots=True)
class Held:
    """A tensor of the network as it lies in the engine at the moment: under which name, in which layout."""

    name: str
    layout: Layout


@dataclass(kw_only=True)
class Tuner:
    """Chooses the layers of one profile; `types` are at its optimum shapes, `symbolic` hold -1 for what is dynamic."""

    layers: Sequence[Layer]
    types: Mapping[str, TensorType]
    symbolic: Mapping[str, TensorType]
    bindings: Mapping[str, Layout]
    allowance: Allowance
    constraints: Constraints
    stopwatch: Stopwatch
    foreign: ForeignTuner
    selector: Selector | None = None
    suffix: str = ""
    outputs: frozenset[str] = frozenset()

    def run(self) -> tuple[Choice, ...]:
        """The engine layers, in order."""
        self._held = {
            name: Held(name + self.suffix, layout)
            for name, layout in self.bindings.items()
            if name not in self.outputs
        }
        self._choices: list[Choice] = []
        for layer in self.layers:
            self._tune(layer)
        return tuple(self._choices)

    def _tune(self, layer: Layer) -> None:
        subject = self._subject(layer)
        if layer.parts:
            self._tune_foreign(subject)
            return
        offered = self._selected(
            subject, self._constrained(layer, candidates(subject.setting, self.allowance))
        )
        costs = [true_cost(candidate, subject.setting) for candidate in offered]
        timed = self._ran(subject, self.stopwatch.time(subject, offered, costs))
        winner = min(timed, key=lambda entry: entry.time_ms + self._entry_cost(subject, entry.candidate))
        self._place(subject, winner)

    def _tune_foreign(self, subject: Subject) -> None:
        """A graph of Myelin: one choice, as far as the selector can see."""
        graphs = self.foreign.tune(subject.setting.layer, self.suffix, self.types)
        best = min(graphs, key=lambda graph: graph.ideal_ms + self._entry_cost(subject, graph.candidate))
        self._selected(subject, (best.candidate,))
        self._place(subject, best.timed, best)

    def _place(self, subject: Subject, winner: Timed, graph: Foreign | None = None) -> None:
        """Put a layer with what it got into the engine, and what reformats its inputs and outputs around it."""
        layer = subject.setting.layer
        inputs = [
            self._reformatted_input(layer, index, layout)
            for index, layout in enumerate(winner.candidate.inputs)
        ]
        outputs: list[Tensor] = []
        late: list[tuple[int, Tensor]] = []
        for index, (name, layout) in enumerate(zip(layer.outputs, winner.candidate.outputs, strict=True)):
            wanted = self.bindings.get(name, layout) if name in self.outputs else layout
            held = Held(name + self.suffix, layout)
            if wanted != layout:
                held.name = f"Reformatted Output Tensor {index} to {layer.name}{self.suffix}"
                late.append((index, self._tensor(name, name + self.suffix, wanted)))
            self._held[name] = held
            outputs.append(self._tensor(name, held.name, layout))
        choice = self._choice(subject, winner, inputs, outputs)
        if graph is not None:
            ends = (*choice.inputs, *choice.outputs)
            inner = expanded(graph, ends, self.symbolic, choice.implementation)
            choice = replace(choice, inner=inner)
        self._choices.append(choice)
        for index, target in late:
            self._reformat(
                f"Reformatting CopyNode for Output Tensor {index} to {layer.name}", outputs[index], target
            )

    def _subject(self, layer: Layer) -> Subject:
        return Subject(
            name=layer.name + self.suffix,
            base=layer.name,
            setting=Setting(layer=layer, types=self.types),
            tensors=(*layer.inputs, *layer.outputs),
        )

    def _constrained(self, layer: Layer, offered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        precisions = {
            self.constraints.precisions[node.name]
            for node in layer.nodes
            if node.name in self.constraints.precisions
        }
        types = {
            index: self.constraints.outputs[name]
            for index, name in enumerate(layer.outputs)
            if name in self.constraints.outputs
        }
        fitting = tuple(
            candidate
            for candidate in offered
            if (not precisions or candidate.precision in precisions)
            and all(candidate.outputs[index].dtype == dtype for index, dtype in types.items())
        )
        if fitting or not (precisions or types):
            return fitting
        if self.constraints.obey:
            raise BuildFailure("no_implementation", layer=layer.name + self.suffix)
        self.stopwatch.log.caution(
            f"Layer {layer.name} has no kernel in the requested precision: the request is ignored, and the fastest one is used."
        )
        return offered

    def _selected(self, subject: Subject, offered: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
        """What the selector allows of the candidates; it is asked before they are timed."""
        if self.selector is None or not offered:
            return offered
        choices = tuple(Timed(candidate=candidate, time_ms=NOT_TIMED) for candidate in offered)
        indices = list(self.selector.select(subject, choices))
        wrong = [index for index in indices if not 0 <= index < len(offered)]
        if wrong:
            raise BuildFailure(
                "internal",
                why=f"the algorithm selector returned index {wrong[0]} for {subject.name}, which has {len(offered)} choices",
            )
        return tuple(offered[index] for index in indices) or offered

    def _ran(self, subject: Subject, timed: tuple[Timed, ...]) -> tuple[Timed, ...]:
        if not timed:
            raise BuildFailure("no_implementation", layer=subject.name)
        return timed

    def _entry_cost(self, subject: Subject, candidate: Candidate) -> float:
        """What it costs to bring the inputs, and the outputs of the network, into other layouts."""
        layer = subject.setting.layer
        cost = sum(
            reformat_cost(self._held[name].layout, layout, subject.setting.shape(name))
            for name, layout in zip(layer.inputs, candidate.inputs, strict=True)
        )
        return cost + sum(
            reformat_cost(layout, self.bindings.get(name, layout), subject.setting.shape(name))
            for name, layout in zip(layer.outputs, candidate.outputs, strict=True)
            if name in self.outputs
        )

    def _reformatted_input(self, layer: Layer, index: int, layout: Layout) -> Tensor:
        name = layer.inputs[index]
        held = self._held[name]
        source = self._tensor(name, held.name, held.layout)
        if held.layout == layout:
            return source
        target = self._tensor(name, f"Reformatted Input Tensor {index} to {layer.name}{self.suffix}", layout)
        self._reformat(f"Reformatting CopyNode for Input Tensor {index} to {layer.name}", source, target)
        return target

    def _reformat(self, name: str, source: Tensor, target: Tensor) -> None:
        layer = Layer(
            name=name, kind="reformat", nodes=(), inputs=(source.value,), outputs=(source.value,), weights=()
        )
        subject = self._subject(layer)
        shape = subject.setting.shape(source.value)
        offered = self._selected(
            subject,
            tuple(
                Candidate(
                    kernel=kernel,
                    precision=target.layout.dtype,
                    inputs=(source.layout,),
                    outputs=(target.layout,),
                    workspace=0,
                )
                for kernel in kernels.of_kind("reformat")
            ),
        )
        base = reformat_cost(source.layout, target.layout, shape)
        costs = [base * (1 + kernels.fraction("reformat", kernel.kernel.name, shape)) for kernel in offered]
        timed = self._ran(subject, self.stopwatch.time(subject, offered, costs))
        winner = min(timed, key=lambda entry: entry.time_ms)
        self._choices.append(replace(self._choice(subject, winner, [source], [target]), origin="REFORMAT"))

    def _tensor(self, value: str, name: str, layout: Layout) -> Tensor:
        known = self.symbolic.get(value)
        shape = known.shape if known is not None and known.shape is not None else ()
        optimum = Setting(layer=self.layers[0], types=self.types).shape(value)
        return Tensor(name=name, value=value, layout=layout, shape=shape, optimum=optimum)

    def _choice(
        self, subject: Subject, winner: Timed, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> Choice:
        kernel = winner.candidate.kernel
        layer = subject.setting.layer
        return Choice(
            name=subject.name,
            kind=layer.kind,
            runner=kernel.runner,
            implementation=self.stopwatch.log.personality.implementation(kernel.runner),
            kernel=kernel.name,
            tactic=kernel.tactic,
            precision=winner.candidate.precision,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            nodes=tuple(node.name for node in layer.nodes),
            time_ms=winner.time_ms,
            workspace=winner.candidate.workspace,
            base=subject.base,
        )
