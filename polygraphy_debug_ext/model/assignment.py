"""An assignment: the tactic of every layer of one build, in the order in which the builder reported them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model.layers import CataloguedLayers
from polygraphy_debug_ext.model.tactic import ALL_FIELDS, Field, Tactic

if TYPE_CHECKING:
    from collections.abc import Mapping


class Source(enum.Enum):
    """Who said which tactic each layer got."""

    SELECTOR = "selector"
    REPLAY = "replay"
    LAYER_INFORMATION = "layer information"
    ENGINE = "engine"
    TIMING_CACHE = "timing cache"
    LOG = "build log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Layer name to tactic, of one build.

    `origin` names where it was read from (a path), `variant` the dialect of its format; `fields` are the tensor
    properties that this dialect records. `timing_cache` is the serialized cache of the build, from which its tactics can be
    forced again.
    """

    layers: Mapping[str, Tactic]
    source: Source
    origin: str = ""
    variant: str = ""
    fields: frozenset[Field] = ALL_FIELDS
    metadata: Mapping[str, object] = field(default_factory=dict)
    timing_cache: bytes | None = None

    def __post_init__(self) -> None:
        """Freeze the mappings: the order of the layers is part of the record."""
        if not isinstance(self.layers, CataloguedLayers):
            object.__setattr__(self, "layers", MappingProxyType(dict(self.layers)))
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    @property
    def opaque_layers(self) -> tuple[str, ...]:
        """Layers that stand for a whole Myelin graph: the record does not show the kernels inside."""
        return tuple(name for name, tactic in self.layers.items() if is_opaque(name, tactic))


def is_opaque(layer: str, tactic: Tactic) -> bool:
    """Whether this entry stands for a Myelin graph, whose tactic is always 0 whatever was chosen inside."""
    return layer.startswith("{ForeignNode[") and tactic.tactic == 0
