"""The graphs of Myelin in a build: each is tuned for the formats that it could have, and becomes inner layers.

Which formats a graph gets does not depend on noise: they follow from what its ops cost at best.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.autotune import Autotuner, Op, Pick
from polygraphy_debug_ext.simulator.compiler.catalogue import Candidate, Setting, native_precision
from polygraphy_debug_ext.simulator.compiler.dtypes import FLOATS, HALVES
from polygraphy_debug_ext.simulator.compiler.inner import Inner, op_name, structure, tuned
from polygraphy_debug_ext.simulator.compiler.kernels import Kernel, fraction
from polygraphy_debug_ext.simulator.compiler.layouts import Layout
from polygraphy_debug_ext.simulator.compiler.log import combination
from polygraphy_debug_ext.simulator.compiler.records import Choice, Tensor
from polygraphy_debug_ext.simulator.compiler.stopwatch import Timed
from polygraphy_debug_ext.simulator.compiler.timing import true_cost
from polygraphy_debug_ext.simulator.errors import BuildFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from polygraphy_debug_ext.simulator.compiler.catalogue import Allowance
    from polygraphy_debug_ext.simulator.compiler.fusion import Layer
    from polygraphy_debug_ext.simulator.compiler.shapes import TensorType
    from polygraphy_debug_ext.simulator.compiler.stopwatch import Stopwatch
    from polygraphy_debug_ext.simulator.compiler.tuner import Constraints

RUNNER = "Myelin"
KERNEL = Kernel(
    name="", runner=RUNNER, tactic=0, precision="ANY", input_format="LINEAR", output_format="LINEAR"
)
GRAPHS, POSITIONS = 8, 3
GENERATED_MS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a graph is in the engine: the suffix of its profile, its number, and the position of its first layer."""

    suffix: str = ""
    graph: int = 0
    offset: int = 0


NOWHERE = Place()


@dataclass(kw_only=True)
class Foreign:
    """A graph of Myelin in one combination of formats. `setting` tells about its parts, `picks` are by the name of a part."""

    region: Layer
    place: Place
    setting: Callable[[Layer], Setting]
    precisions: Mapping[str, str]
    candidate: Candidate
    inners: tuple[Inner, ...]
    picks: dict[str, Pick] = field(default_factory=dict)
    ideal_ms: float = 0.0

    @property
    def timed(self) -> Timed:
        """As the builder sees it: one choice."""
        count = sum(inner.op is None for inner in self.inners)
        total = sum(pick.time_ms for pick in self.picks.values()) + GENERATED_MS * count
        return Timed(candidate=self.candidate, time_ms=float(f"{total:.6g}"))

    def name(self, index: int) -> str:
        """The name of an inner layer."""
        place = self.place
        return f"{self.inners[index].stem}{place.suffix}_myl{place.graph}_{place.offset + index}"

    def precision(self, inner: Inner) -> str:
        """What an inner layer computes in."""
        return self.precisions[inner.layers[-1].name]

    def layout(self, name: str, precision: str) -> Layout:
        """How a tensor lies in memory next to a part that computes in `precision`."""
        dtype = self.setting(self.region).dtype(name)
        return Layout(dtype=precision if dtype == "FLOAT" and precision in HALVES else dtype)

    def op(self, index: int, part: Layer) -> Op:
        """A part that is tuned, and that ends up in the inner layer at `index`."""
        names = (self.name(index), *aliases(self.inners[index], part), self.region.name)
        return Op(
            name=op_name(part) + self.place.suffix,
            region=self.region.name + self.place.suffix,
            setting=self.setting(part),
            precision=self.precisions[part.name],
            names=tuple(dict.fromkeys(names)),
        )


def aliases(inner: Inner, part: Layer | None = None) -> tuple[str, ...]:
    """Names under which an inner layer is known as well: its op, its ONNX nodes, and what it would be called outside."""
    layers = inner.layers if part is None else (part,)
    own = [op_name(layer) for layer in (inner.op, *inner.swallowed) if layer is not None and part is None]
    return (
        *own,
        *(layer.name for layer in layers),
        *(node.name for layer in layers for node in layer.nodes),
    )


class Planner:
    """Says how a graph could be compiled."""

    def __init__(self, allowance: Allowance, constraints: Constraints) -> None:
        self._allowance = allowance
        self._constraints = constraints

    def plans(
        self, region: Layer, types: Mapping[str, TensorType], place: Place = NOWHERE
    ) -> Iterator[Foreign]:
        """The graph in every combination of formats that it could have."""
        setting = Setting(layer=region, types=types)
        yield self._planned(region, types, "FLOAT", place)
        floats = any(setting.dtype(name) == "FLOAT" for part in region.parts for name in part.outputs)
        for half in HALVES:
            if floats and half in self._allowance.precisions:
                yield self._planned(region, types, half, place)

    def _planned(self, region: Layer, types: Mapping[str, TensorType], wanted: str, place: Place) -> Foreign:
        settings: dict[str, Setting] = {}

        def setting(layer: Layer) -> Setting:
            return settings.setdefault(layer.name, Setting(layer=layer, types=types))

        precisions = {
            part.name: self._precision(part, setting(part), wanted, region) for part in region.parts
        }
        inners = structure(region, setting, lambda part: precisions[part.name])
        foreign = Foreign(
            region=region,
            place=place,
            setting=setting,
            precisions=precisions,
            inners=inners,
            candidate=Candidate(kernel=KERNEL, precision=wanted, inputs=(), outputs=(), workspace=0),
        )
        makers = {name: precisions[part.name] for part in region.parts for name in part.outputs}
        foreign.candidate = replace(
            foreign.candidate,
            inputs=tuple(foreign.layout(name, wanted) for name in region.inputs),
            outputs=tuple(self._output(foreign, name, makers[name]) for name in region.outputs),
        )
        return foreign

    def _output(self, foreign: Foreign, name: str, precision: str) -> Layout:
        layout = foreign.layout(name, precision)
        asked = self._constraints.outputs.get(name)
        return Layout(dtype=asked) if asked in FLOATS and layout.dtype in FLOATS else layout

    def _precision(self, part: Layer, setting: Setting, wanted: str, region: Layer) -> str:
        native = native_precision(setting)
        if native in HALVES:
            return native
        for node in part.nodes:
            asked = self._constraints.precisions.get(node.name)
            if asked in self._allowance.precisions and asked in FLOATS:
                return asked
            if asked is not None and self._constraints.obey:
                raise BuildFailure("no_implementation", layer=region.name)
        return wanted


class ForeignTuner:
    """Tunes the graphs of one build."""

    def __init__(self, stopwatch: Stopwatch, allowance: Allowance, constraints: Constraints) -> None:
        self._watch = stopwatch
        self._planner = Planner(allowance, constraints)
        self._autotuner = Autotuner(stopwatch, allowance)
        self._graph = int(GRAPHS * fraction(stopwatch.dice.root, "graph"))

    def tune(self, region: Layer, suffix: str, types: Mapping[str, TensorType]) -> tuple[Foreign, ...]:
        """The graph in every combination of formats that it could have."""
        log, runner = self._watch.log, self._watch.log.runner(RUNNER)
        log.verbose(f"=============== Computing costs for {region.name}{suffix}")
        if "foreign" in log.personality.messages:
            origins = "\n".join(f"[ONNX Layer: {node.name}]" for node in region.nodes)
            log.message("foreign", layer=region.name + suffix, origins=origins)
        offset = int(POSITIONS * fraction(self._watch.dice.root, "position", self._graph))
        place = Place(suffix=suffix, graph=self._graph, offset=offset)
        self._graph += 1
        found = []
        for foreign in self._planner.plans(region, types, place):
            setting = foreign.setting(region)
            shapes = [setting.shape(name) for name in (*region.inputs, *region.outputs)]
            text = combination(foreign.candidate.inputs, foreign.candidate.outputs, shapes)
            log.verbose(f"*************** Autotuning format combination: {text} ***************")
            log.verbose(f"--------------- Timing Runner: {region.name}{suffix} ({runner})")
            self._pick(foreign)
            log.verbose(f">>>>>>>>>>>>>>> Chose Runner Type: {RUNNER} Tactic: 0x{0:016x}")
            found.append(foreign)
        return tuple(found)

    def _pick(self, foreign: Foreign) -> None:
        for index, part in tuned(foreign.inners):
            pick = self._autotuner.pick(foreign.op(index, part))
            foreign.picks[part.name] = pick
            foreign.ideal_ms += pick.ideal_ms
        for inner in foreign.inners:
            if inner.op is None and not inner.swallowed:
                # Generated code costs what the heaviest of its layers costs.
                foreign.ideal_ms += max(_generated_cost(foreign, layer) for layer in inner.layers)


def _generated_cost(foreign: Foreign, layer: Layer) -> float:
    precision = foreign.precisions[layer.name]
    candidate = Candidate(kernel=KERNEL, precision=precision, inputs=(), outputs=(), workspace=0)
    return true_cost(candidate, foreign.setting(layer))


def expanded(
    foreign: Foreign, ends: Sequence[Tensor], symbolic: Mapping[str, TensorType], implementation: int
) -> tuple[Choice, ...]:
    """The inner layers of the chosen combination; `ends` are the inputs and outputs of the graph as the engine has them."""
    held = {tensor.value: tensor for tensor in ends}
    readers: dict[str, set[int]] = {}
    for index, inner in enumerate(foreign.inners):
        for value in inner.reads:
            readers.setdefault(value, set()).add(index)
    setting = foreign.setting(foreign.region)
    found = []
    for index, inner in enumerate(foreign.inners):
        shown = [
            value
            for value in inner.makes
            if value in foreign.region.outputs or readers.get(value, set()) - {index}
        ]
        for value in shown:
            if value not in held:
                known = symbolic.get(value)
                held[value] = Tensor(
                    name=f"__myln_k_arg__bb1_{len(held)}{foreign.place.suffix}_myl{foreign.place.graph}",
                    value=value,
                    layout=foreign.layout(value, foreign.precision(inner)),
                    shape=known.shape if known is not None and known.shape is not None else (),
                    optimum=setting.shape(value),
                )
        tensors = tuple(tuple(held[value] for value in values) for values in (inner.reads, shown))
        found.append(_choice(foreign, index, tensors, implementation))
    return tuple(found)


def _choice(
    foreign: Foreign, index: int, tensors: tuple[tuple[Tensor, ...], ...], implementation: int
) -> Choice:
    inner, precision = foreign.inners[index], foreign.precision(foreign.inners[index])
    generated = Pick(kernel=inner.generated_kernel(foreign.setting, precision), hash=0, time_ms=GENERATED_MS)
    pick = foreign.picks[inner.op.name] if inner.op is not None else generated
    return Choice(
        name=foreign.name(index),
        kind=inner.op.kind if inner.op is not None else "generated",
        runner=inner.type,
        implementation=implementation,
        kernel=pick.kernel,
        tactic=pick.hash,
        precision=precision,
        inputs=tensors[0],
        outputs=tensors[1],
        nodes=tuple(node.name for layer in inner.layers for node in layer.nodes),
        time_ms=pick.time_ms,
        base=inner.stem,
        region=foreign.region.name + foreign.place.suffix,
        aliases=tuple(dict.fromkeys((*aliases(inner), foreign.region.name))),
    )
