"""How a search is to be made."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.search.belief import EXPECTED, Belief

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A confidence must be better than a coin.
_CHANCE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to search.

    `confidence` is the posterior that a culprit must reach, `max_builds` counts unresolved ones as well, `weights` are prior
    weights of factors (1 if not named), `innocent` the factors whose third value is known to be harmless.
    """

    confidence: float = 0.99
    max_builds: int = 200
    rates: Belief = EXPECTED
    seed: int = 0
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    innocent: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        if not _CHANCE < self.confidence < 1:
            raise ValueError(f"confidence {self.confidence} must be between {_CHANCE} and 1")
        if self.max_builds < 1:
            raise ValueError(f"max_builds {self.max_builds} must be positive")
        if any(not weight > 0 for weight in self.weights.values()):
            raise ValueError("weights of factors must be positive")
