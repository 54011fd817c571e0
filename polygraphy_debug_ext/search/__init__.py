"""Which trial comes next: strategies that propose trials and are told their verdicts. No I/O, no clocks."""

from polygraphy_debug_ext.search.sampling import Deciding, Sampling

__all__ = ["Deciding", "Sampling"]
