"""What a build came to: the choices of every layer, and all that an engine needs to be run and described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.simulator.compiler.layouts import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One input or output of an engine layer: `value` is the tensor of the network that it holds.

    `shape` has -1 where a size is dynamic; `optimum` is the shape for which the layer was tuned.
    """

    name: str
    value: str
    layout: Layout
    shape: tuple[int, ...]
    optimum: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What one engine layer got. `nodes` are the ONNX nodes that it runs; a reformat layer has none.

    A graph that Myelin compiled is one choice for the builder; `inner` are the layers that it became, each of which names the
    graph as its `region`. `aliases` are further names under which a fault finds the layer.
    """

    name: str
    kind: str
    runner: str
    implementation: int
    kernel: str
    tactic: int
    precision: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    nodes: tuple[str, ...] = ()
    time_ms: float = 0.0
    workspace: int = 0
    base: str = ""
    origin: str = ""
    region: str = ""
    aliases: tuple[str, ...] = ()
    inner: tuple[Choice, ...] = ()

    @property
    def tactic_text(self) -> str:
        """The tactic id as the log prints it."""
        return f"0x{self.tactic:016x}"

    @property
    def layers(self) -> tuple[Choice, ...]:
        """What runs: the layer itself, or those that Myelin made of it."""
        return self.inner or (self,)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which a fault finds the layer."""
        return (self.name, self.base, *self.aliases)


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """An input or output of the engine: `shapes` holds min, opt and max of each profile (inputs only).

    `values` holds the same for the values of an input that says how large other tensors are. A debug tensor is no output:
    its values go to the debug listener.
    """

    name: str
    is_input: bool
    dtype: str
    format: str
    shape: tuple[int, ...]
    is_shape: bool = False
    is_debug: bool = False
    shapes: tuple[tuple[tuple[int, ...], ...], ...] = ()
    values: tuple[tuple[tuple[int, ...], ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine, ready to be written as a plan: `model` is the plain ONNX model, `profiles` the choices for each profile."""

    name: str
    model: bytes
    bindings: tuple[Binding, ...]
    profiles: tuple[tuple[Choice, ...], ...]
    scales: Mapping[str, float]
    nonce: str
    verbosity: str
    properties: Mapping[str, int]

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What the builder chose for all profiles: a graph of Myelin is one layer."""
        return tuple(choice for profile in self.profiles for choice in profile)

    @property
    def layers(self) -> tuple[Choice, ...]:
        """The layers of all profiles as they run."""
        return tuple(layer for choice in self.choices for layer in choice.layers)
