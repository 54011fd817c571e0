"""The inner layers of a graph that Myelin compiled: which parts of it run as one, and what they are called.

Matrix products (and convolutions and poolings, where Myelin has them) are *ops* that are tuned. All else becomes generated
code (`kgen`), and reshapes vanish into what reads them. An attention block of a fitting size becomes one kernel *after* its
two products were tuned: what was picked for them is then in no engine.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.dtypes import FLOATS, HALVES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from polygraphy_debug_ext.simulator.compiler.catalogue import Setting
    from polygraphy_debug_ext.simulator.compiler.fusion import Layer

TYPES = {"gemm": "gemm", "conv": "correlation", "deconv": "deconvolution", "pool": "avgpool"}
MAX_POOLS = ("MaxPool", "GlobalMaxPool")
GENERATED = "kgen"
ATTENTION = "_gemm_mha_v2"
# Four dimensions: batch, heads, positions, and numbers per head, for which there are kernels in these sizes.
ATTENTION_RANK = 4
HEAD_SIZES = (16, 32, 64, 128)
ABBREVIATIONS = {
    "Reshape": "Resh", "Transpose": "Tran", "Softmax": "MaxrSubExpSumDiv", "LayerNormalization": "MeanSubMulMeanAddSqrtDiv",
    "ReduceMean": "Mean", "GlobalAveragePool": "Mean", "ReduceSum": "Sum", "ReduceMax": "Maxr", "Concat": "Conc",
    "Identity": "Cast", "BatchNormalization": "MulAdd", "Sigmoid": "Sigm", "Unsqueeze": "Resh", "Squeeze": "Resh",
    "Flatten": "Resh", "Gather": "Gath", "Where": "Sele",
}  # fmt: skip
MAX_STEM = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner:
    """One inner layer: `op` is the part that is tuned, `swallowed` those that were tuned in vain."""

    layers: tuple[Layer, ...]
    op: Layer | None = None
    swallowed: tuple[Layer, ...] = ()

    @property
    def stem(self) -> str:
        """The name, without the numbers of graph and position."""
        if self.op is not None:
            return op_name(self.op)
        if self.swallowed:
            return ATTENTION
        text = "".join(
            ABBREVIATIONS.get(node.op, node.op[:4]) for layer in self.layers for node in layer.nodes
        )
        return f"__myl_{text[:MAX_STEM]}"

    @property
    def makes(self) -> tuple[str, ...]:
        """The tensors that its layers make."""
        return tuple(name for layer in self.layers for name in layer.outputs)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it reads from elsewhere."""
        made = set(self.makes)
        return tuple(dict.fromkeys(n for layer in self.layers for n in layer.inputs if n not in made))

    @property
    def type(self) -> str:
        """The layer type that the layer information shows."""
        if self.op is None:
            return GENERATED
        return "maxpool" if self.op.head.op in MAX_POOLS else TYPES[self.op.kind]

    def generated_kernel(self, setting: Callable[[Layer], Setting], precision: str) -> str:
        """The name of generated code: equal code has an equal name, wherever it is used."""
        text = ";".join([precision, *(setting(layer).signature for layer in self.layers)])
        return f"{self.stem}_0x{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def op_name(layer: Layer) -> str:
    """What Myelin calls a tuned op."""
    return layer.head.name


def structure(
    region: Layer, setting: Callable[[Layer], Setting], precision: Callable[[Layer], str]
) -> tuple[Inner, ...]:
    """The inner layers of a region, in an order in which they can run."""
    inners = [
        Inner(layers=(part,), op=part if _is_tuned(part, setting(part)) else None) for part in region.parts
    ]
    inners = _with_attention(region, inners, setting, precision)
    groups = dict(enumerate(inners))
    owner = {layer.name: ident for ident, inner in groups.items() for layer in inner.layers}
    readers: dict[str, list[str]] = {}
    for part in region.parts:
        for name in part.inputs:
            readers.setdefault(name, []).append(part.name)
    for accepts in (_vanishes, _joins):
        for ident in list(groups):
            source = groups[ident]
            target = _only_reader(source, ident, owner, readers, region.outputs)
            if target is not None and accepts(source, groups[target]):
                reader = groups[target]
                groups[target] = replace(reader, layers=(*source.layers, *reader.layers))
                owner.update({layer.name: target for layer in source.layers})
                del groups[ident]
    return tuple(groups.values())


def tuned(inners: Sequence[Inner]) -> Iterator[tuple[int, Layer]]:
    """All parts that are tuned, with the place of the inner layer that they end up in."""
    for index, inner in enumerate(inners):
        for part in (inner.op,) if inner.op is not None else inner.swallowed:
            yield index, part


def _is_tuned(part: Layer, setting: Setting) -> bool:
    return part.kind in TYPES and all(setting.dtype(name) in FLOATS for name in part.outputs)


def _vanishes(source: Inner, _: Inner) -> bool:
    return all(layer.kind == "shuffle" for layer in source.layers)


def _joins(source: Inner, reader: Inner) -> bool:
    return not any((source.op, source.swallowed, reader.op, reader.swallowed))


def _only_reader(
    source: Inner,
    ident: int,
    owner: Mapping[str, int],
    readers: Mapping[str, Sequence[str]],
    visible: Sequence[str],
) -> int | None:
    """The inner layer that alone reads what this one makes, if nobody outside of the region sees it."""
    made = {name for layer in source.layers for name in layer.outputs}
    if source.op is not None or source.swallowed or made.intersection(visible):
        return None
    targets = {owner[reader] for name in made for reader in readers.get(name, ())} - {ident}
    return targets.pop() if len(targets) == 1 else None


def _with_attention(
    region: Layer,
    inners: Sequence[Inner],
    setting: Callable[[Layer], Setting],
    precision: Callable[[Layer], str],
) -> list[Inner]:
    """Scores, softmax and mix of one attention block as one inner layer."""
    by_output = {name: inner.layers[0] for inner in inners for name in inner.layers[0].outputs}
    readers: dict[str, int] = {}
    for part in region.parts:
        for name in part.inputs:
            readers[name] = readers.get(name, 0) + 1
    blocks: dict[str, tuple[Layer, ...]] = {}
    for inner in inners:
        chain = _chain(inner.layers[0], by_output)
        private = [name for part in chain[:-1] for name in part.outputs]
        hidden = all(readers.get(name) == 1 and name not in region.outputs for name in private)
        if chain and hidden and _fits(chain, setting, precision):
            blocks[chain[-1].name] = chain
    gone = {part.name for chain in blocks.values() for part in chain[:-1]}
    found = []
    for inner in inners:
        part = inner.layers[0]
        if part.name in blocks:
            chain = blocks[part.name]
            found.append(Inner(layers=chain, swallowed=(chain[0], chain[-1])))
        elif part.name not in gone:
            found.append(inner)
    return found


def _chain(mix: Layer, by_output: dict[str, Layer]) -> tuple[Layer, ...]:
    """Scores, an optional scaling, softmax, mix: the parts before `mix`, if that is what they are."""
    chain = [mix]
    for wanted in (("softmax",), ("pointwise", "gemm"), ("gemm",)):
        source = by_output.get(chain[0].inputs[0]) if chain[0].inputs else None
        if source is None or source.kind not in wanted or (source.kind != "gemm" and len(source.inputs) != 1):
            return ()
        chain.insert(0, source)
        if source.kind == "gemm":
            break
    return tuple(chain) if mix.kind == "gemm" else ()


def _fits(
    chain: Sequence[Layer], setting: Callable[[Layer], Setting], precision: Callable[[Layer], str]
) -> bool:
    scores = chain[0]
    operands = [setting(scores).shape(name) for name in scores.inputs]
    return (
        len(operands) > 1
        and all(len(shape) == ATTENTION_RANK for shape in operands)
        and operands[0][-1] in HEAD_SIZES
        and precision(scores) in HALVES
        and len({precision(part) for part in chain}) == 1
    )
