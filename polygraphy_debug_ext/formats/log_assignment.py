"""The tactics of one build, from what its log says: the final list decides, everything else only adds to it.

Kernel names come from the timing lines, by the tactic id, where it is a hash that stands for one kernel. What ops of a Myelin
graph got is in autotuning tables, which the builder prints for every combination of formats that it tries. An op is
told where the list shows which combination the engine has, and the log what the op got in it; the log does not tell whether
a fusion swallowed the op later. Where a tool printed the details of the engine as well, nothing is left to infer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from polygraphy_debug_ext.formats import autotuning, log_lines
from polygraphy_debug_ext.formats.autotuning import MYELIN, TunedOp
from polygraphy_debug_ext.formats.layer_information import EngineLayer, stable_names, tactics
from polygraphy_debug_ext.formats.log_lines import NO_TACTIC, Format, LayerLine, formats
from polygraphy_debug_ext.model import Tactic

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Kernels whose names are kept; a TensorRT has some thousands.
_KERNELS_LIMIT: Final = 200_000

_PROFILE: Final = " [profile "


class Kernels:
    """The names of kernels by the hash that stands for them."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._names: dict[int, str | None] = {}

    def add(self, found: set[bytes]) -> None:
        """Take what lines say (see `log_lines.kernels`)."""
        new = found - self._seen
        if not new or len(self._seen) > _KERNELS_LIMIT:
            return
        self._seen |= new
        for written in new:
            if kernel := log_lines.kernel(written):
                name, tactic = kernel
                # A hash under two names stands for neither.
                self._names[tactic] = name if self._names.get(tactic, name) == name else None

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


class PickLines(NamedTuple):
    """The lines of a table that count, as they are: the choice, and the row of what was chosen."""

    choice: bytes
    row: bytes

    @classmethod
    def of(cls, rows: bytes, choice: bytes) -> PickLines:
        """Find the row."""
        begin = choice.find(b"0x")
        chosen = b", " + choice[begin : choice.find(b",", begin) + 1]
        at = rows.find(chosen) if begin >= 0 else -1
        return cls(choice, rows[rows.rfind(b"\n", 0, at) + 1 : at + len(chosen)] if at >= 0 else b"")

    def read(self, line: bytes) -> Pick | None:
        """What they say of the op that `line` names."""
        selected = autotuning.selected(self.choice.decode(errors="replace"))
        if selected is None:
            return None
        tactic, cost = selected
        candidate = autotuning.row(self.row.decode(errors="replace"))
        op = autotuning.begin(
            line.decode(errors="replace"), () if candidate is None else (candidate,), tactic
        )
        return None if op is None else Pick(op=op, tactic=tactic, cost_ms=cost)


#: The picks of one section of the log, by the line of the op.
Section: TypeAlias = "dict[bytes, PickLines | Pick | None]"


class Picks:
    """The picks of one attempt at a network, by what was timed, by formats and by op; all as lines of the log until they are asked for."""

    def __init__(self) -> None:
        self._found: dict[tuple[bytes, bytes], Section] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, graph: bytes, combination: bytes, op: bytes, pick: PickLines) -> None:
        """Keep a pick; the lines say what was timed, for which formats, and for which op."""
        self._found.setdefault((graph, combination), {})[op] = pick

    def all(self) -> list[Pick]:
        """All of them, in the order of the log."""
        return [pick for section in self._found.values() for pick in _read(section)]

    def by_graph(self) -> dict[str, list[tuple[tuple[Format, ...], Section]]]:
        """For each layer that was timed, the sections of the log that have picks, by their formats."""
        graphs: dict[str, list[tuple[tuple[Format, ...], Section]]] = defaultdict(list)
        for (graph, combination), section in self._found.items():
            if graph and combination:
                graphs[log_lines.place(graph)[0]].append((log_lines.combination(combination), section))
        return graphs


def _read(section: Section) -> list[Pick]:
    """Read the lines of a section, once."""
    for op, lines in section.items():
        if isinstance(lines, PickLines):
            section[op] = lines.read(op)
    return [pick for pick in section.values() if isinstance(pick, Pick)]


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
    if picks:
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
    graphs = picks.by_graph()
    known: list[tuple[Pick, str]] = []
    for line in lines:
        graph = line.name.decode(errors="replace")
        wanted = formats(line.tensors)
        fitting = [section for found, section in graphs.get(graph, ()) if wanted and found == wanted]
        if len(fitting) != 1:
            continue
        of_graph = _read(fitting[0])
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
