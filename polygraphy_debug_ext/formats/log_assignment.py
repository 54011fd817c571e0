"""The tactics of one build, from what its log says: the final list decides, everything else only adds to it.

Kernel names come from the timing lines, by the tactic id, where it is a hash that stands for one kernel. What ops of a Myelin
graph got is in autotuning tables, which the builder prints for every combination of formats that it tries. An op is
told where the list shows which combination the engine has, and the log what the op got in it; the log does not tell whether
a fusion swallowed the op later. Where a tool printed the details of the engine as well, nothing is left to infer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.formats.autotuning import MYELIN, TunedOp
from polygraphy_debug_ext.formats.layer_information import EngineLayer, stable_names, tactics
from polygraphy_debug_ext.formats.log_lines import NO_TACTIC, Format, LayerLine, formats, kernel_id
from polygraphy_debug_ext.model import Tactic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Kernels whose names are kept; a TensorRT has some thousands.
_KERNELS_LIMIT: Final = 200_000

_PROFILE: Final = " [profile "


class Kernels:
    """The names of kernels by the hash that stands for them."""

    def __init__(self) -> None:
        self._seen: set[tuple[bytes, bytes]] = set()
        self._names: dict[int, str | None] = {}

    def add(self, pairs: set[tuple[bytes, bytes]]) -> None:
        """Take kernels and tactics as they are written."""
        new = pairs - self._seen
        if not new or len(self._seen) > _KERNELS_LIMIT:
            return
        self._seen |= new
        for written, tactic in new:
            number = kernel_id(tactic)
            if number is not None:
                name = written.decode(errors="replace")
                # A hash under two names stands for neither.
                self._names[number] = name if self._names.get(number, name) == name else None

    def name(self, tactic: int) -> str | None:
        """The kernel of a tactic, if it is known."""
        return self._names.get(tactic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What an op got: `op` holds the tactic that was selected as its only candidate, if its kernel is known."""

    op: TunedOp
    tactic: int
    cost_ms: float

    def as_tactic(self) -> Tactic:
        """What a replay says of it."""
        return Tactic(
            implementation=MYELIN,
            tactic=self.tactic,
            kernel=self.op.selected_kernel,
            time_ms=self.cost_ms,
            cache_key=self.op.key,
        )


@dataclass(slots=True)
class Picks:
    """The picks of one attempt at a network: by graph, combination of formats (as it is written), op and key."""

    found: dict[str, dict[bytes, dict[tuple[str, str], Pick]]] = field(default_factory=dict)
    formats: dict[bytes, tuple[Format, ...]] = field(default_factory=dict)

    def all(self) -> tuple[Pick, ...]:
        """All of them."""
        return tuple(
            pick for graph in self.found.values() for section in graph.values() for pick in section.values()
        )

    def of(self, graph: str, wanted: tuple[Format, ...]) -> Iterable[Pick]:
        """Those of the one combination that has these formats."""
        fitting = [
            section
            for written, section in self.found.get(graph, {}).items()
            if wanted and self.formats[written] == wanted
        ]
        return fitting[0].values() if len(fitting) == 1 else ()


def listed(lines: Sequence[LayerLine], kernels: Kernels, picks: Picks) -> dict[str, Tactic]:
    """Return the tactics by layer: those of the final list, then those of the ops in its Myelin graphs."""
    found: dict[str, Tactic] = {}
    known: dict[int, Tactic] = {}
    for line, name in zip(lines, _unique([line.name for line in lines]), strict=True):
        tactic = known.get(line.tactic)
        if tactic is None:
            tactic = Tactic(implementation=None, tactic=line.tactic, kernel=kernels.name(line.tactic))
            known[line.tactic] = tactic
        if line.tactic != NO_TACTIC:
            found[name] = tactic
    if picks.found:
        for name, tactic in _inner(lines, picks).items():
            found.setdefault(name, tactic)
    return found


def detailed(layers: tuple[EngineLayer, ...], picks: Iterable[Pick]) -> dict[str, Tactic]:
    """Return the tactics by layer, where the log shows all layers of the engine: a pick counts if one of them runs its kernel."""
    names = stable_names(layers)
    found = tactics(layers)
    free: dict[str, list[int]] = defaultdict(list)
    for number, layer in enumerate(layers):
        if layer.in_myelin and layer.kernel is not None:
            free[layer.kernel].append(number)
    for pick in picks:
        for number in free.get(pick.op.selected_kernel or "", ()):
            layer = layers[number]
            if layer.op == pick.op.op or set(pick.op.onnx_layers) & set(layer.onnx_layers):
                found[names[number]] = pick.as_tactic()
                free[str(layer.kernel)].remove(number)
                break
    return found


def _inner(lines: Sequence[LayerLine], picks: Picks) -> dict[str, Tactic]:
    """What is known of the ops in Myelin graphs, by the names of their ONNX layers."""
    known: list[tuple[Pick, str]] = []
    for line in lines:
        graph = line.name.decode(errors="replace")
        if graph in picks.found:
            of_graph = list(picks.of(graph, formats(line.tensors)))
            times = Counter(pick.op.op for pick in of_graph)
            _, mark, number = graph.rpartition(_PROFILE)
            # Which of several picks for one op the engine has is not told.
            known += [(pick, mark + number if mark else "") for pick in of_graph if times[pick.op.op] == 1]
    names = [(" + ".join(pick.op.onnx_layers) or pick.op.op) + profile for pick, profile in known]
    times = Counter(names)
    # ONNX layers that stand for several ops do not tell them apart; the names of the ops do.
    names = [
        name if times[name] == 1 else pick.op.op + profile
        for name, (pick, profile) in zip(names, known, strict=True)
    ]
    times = Counter(names)
    return {name: pick.as_tactic() for name, (pick, _) in zip(names, known, strict=True) if times[name] == 1}


def _unique(names: Iterable[bytes]) -> list[str]:
    """Names of the list as text; equal ones are numbered, as those of layer information are."""
    seen: Counter[str] = Counter()
    unique = []
    for written in names:
        name = written.decode(errors="replace")
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return unique
