"""The catalogue: which candidates a layer has, given its tensors and what the builder is allowed to use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import kernels
from polygraphy_debug_ext.simulator.compiler.dtypes import FLOATS, HALVES, from_onnx
from polygraphy_debug_ext.simulator.compiler.layouts import IMAGE_RANK, Layout

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polygraphy_debug_ext.simulator.compiler.fusion import Layer
    from polygraphy_debug_ext.simulator.compiler.kernels import Kernel
    from polygraphy_debug_ext.simulator.compiler.shapes import TensorType

# Candidates per precision at each builder optimization level.
PER_LEVEL = (1, 2, 3, 12, 12, 12)
MAX_CANDIDATES = 12
SHARE_OFFERED = 0.7
MIN_OFFERED = 2
EXPLICIT = ("quantize", "dequantize", "cast")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A kernel that a layer could use, computing in `precision`, with the layouts of the layer's inputs and outputs."""

    kernel: Kernel
    precision: str
    inputs: tuple[Layout, ...]
    outputs: tuple[Layout, ...]
    workspace: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the configuration allows: `precisions` beyond FLOAT, and the tensors for which INT8 scales are known."""

    precisions: frozenset[str] = frozenset({"FLOAT"})
    quantized: frozenset[str] = frozenset()
    level: int = 3
    sources: frozenset[str] = frozenset({"CUBLAS"})


# Without slots: the signature is kept once it is known.
@dataclass(frozen=True, kw_only=True)
class Setting:
    """A layer with the concrete types of its tensors (at the optimum shapes of one profile)."""

    layer: Layer
    types: Mapping[str, TensorType]

    def dtype(self, tensor: str) -> str:
        """The data type of a tensor of the network."""
        known = self.types.get(tensor)
        return from_onnx(known.elem_type) if known is not None else "FLOAT"

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Its shape; what is not known counts as 1."""
        known = self.types.get(tensor)
        if known is None or known.shape is None:
            return (1,)
        return tuple(1 if size < 0 else size for size in known.shape)

    @cached_property
    def signature(self) -> str:
        """What decides about speed: operators, attributes and shapes, but not names."""
        parts = []
        for node in self.layer.nodes:
            attributes = [
                f"{attribute.name}={attribute.SerializeToString(deterministic=True).hex()}"
                for attribute in node.proto.attribute
                if attribute.type not in {attribute.TENSOR, attribute.GRAPH, attribute.GRAPHS}
            ]
            parts.append(f"{node.op}({','.join(sorted(attributes))})")
        tensors = (*self.layer.inputs, *self.layer.weights, *self.layer.outputs)
        parts.extend(f"{self.dtype(name)}{list(self.shape(name))}" for name in tensors)
        return ";".join(parts)


def candidates(setting: Setting, allowance: Allowance) -> tuple[Candidate, ...]:
    """All candidates of a layer, in a stable order; there is always one."""
    native = native_precision(setting)
    signature = setting.signature
    found: list[Candidate] = []
    for precision in _precisions(setting, allowance, native):
        matching = [
            kernel
            for kernel in kernels.of_kind(setting.layer.kind)
            if kernel.precision in {precision, "ANY"}
            and (not kernel.source or kernel.source in allowance.sources)
        ]
        usable = [candidate for kernel in matching for candidate in _candidate(kernel, precision, setting)]
        found.extend(offered(usable, signature, PER_LEVEL[allowance.level]))
    return tuple(_capped(found, signature))


def native_precision(setting: Setting) -> str:
    """What the network itself asks for: HALF or BF16 if its floats are that already."""
    if setting.layer.kind in EXPLICIT:
        return "FLOAT"
    floats = (setting.dtype(name) for name in (*setting.layer.outputs, *setting.layer.inputs))
    return next((dtype for dtype in floats if dtype in HALVES), "FLOAT")


def _precisions(setting: Setting, allowance: Allowance, native: str) -> Iterator[str]:
    layer = setting.layer
    is_float = any(setting.dtype(name) in FLOATS for name in (*layer.outputs, *layer.inputs))
    if native in HALVES or not is_float or layer.kind in EXPLICIT:
        yield native
        return
    yield "FLOAT"
    yield from (half for half in HALVES if half in allowance.precisions)
    floats = [name for name in (*layer.inputs, *layer.outputs) if setting.dtype(name) in FLOATS]
    if "INT8" in allowance.precisions and all(name in allowance.quantized for name in floats):
        yield "INT8"


def _candidate(kernel: Kernel, precision: str, setting: Setting) -> Iterator[Candidate]:
    layer = setting.layer
    if precision == "INT8" and kernel.precision == "ANY":
        return
    floats = [name for name in (*layer.inputs, *layer.outputs) if setting.dtype(name) in FLOATS]
    images = all(len(setting.shape(name)) == IMAGE_RANK for name in floats)
    if kernel.input_format == "HWC" and not images:
        return

    def layout(name: str, wanted: str) -> Layout:
        dtype = setting.dtype(name)
        if dtype not in FLOATS or layer.kind in EXPLICIT:
            return Layout(dtype=dtype)
        return Layout(dtype=precision, format=wanted if images else "LINEAR")

    if kernel.input_format == "HWC8" and kernel.runner == "PointWiseV2" and not images:
        return
    yield Candidate(
        kernel=kernel,
        precision=precision,
        inputs=tuple(layout(name, kernel.input_format) for name in layer.inputs),
        outputs=tuple(layout(name, kernel.output_format) for name in layer.outputs),
        workspace=_workspace(kernel, setting),
    )


def _workspace(kernel: Kernel, setting: Setting) -> int:
    """Scratch memory: none for most, a share of the output for some."""
    if not kernel.named_in_log or kernels.fraction("workspace", kernel.name) < SHARE_OFFERED:
        return 0
    return 512 * (1 + sum(len(setting.shape(name)) for name in setting.layer.outputs))


def offered(usable: list[Candidate], signature: str, limit: int) -> list[Candidate]:
    """A layer is never offered every kernel: which ones depends on the kernel and on the layer's signature."""
    ranked = sorted(usable, key=lambda candidate: kernels.fraction("offer", candidate.kernel.name, signature))
    chosen = {
        id(candidate)
        for rank, candidate in enumerate(ranked)
        if rank < MIN_OFFERED or kernels.fraction("offer", candidate.kernel.name, signature) < SHARE_OFFERED
    }
    return [candidate for candidate in usable if id(candidate) in chosen][:limit]


def _capped(found: list[Candidate], signature: str) -> list[Candidate]:
    """At most `MAX_CANDIDATES`, every precision kept."""
    if len(found) <= MAX_CANDIDATES:
        return found
    firsts = {candidate.precision: id(candidate) for candidate in reversed(found)}
    ranked = sorted(found, key=lambda candidate: kernels.fraction("cap", candidate.kernel.name, signature))
    kept = set(firsts.values())
    for candidate in ranked:
        if len(kept) < MAX_CANDIDATES:
            kept.add(id(candidate))
    return [candidate for candidate in found if id(candidate) in kept]
