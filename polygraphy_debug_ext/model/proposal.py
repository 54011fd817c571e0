"""A proposal: which trial comes next."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """The next trial of a run; `index` counts from 0."""

    index: int
