"""Pure functions on tactics and verdicts: no files, no clocks, no processes, no TensorRT."""

from polygraphy_debug_ext.analysis.bounds import failure_rate_bound
from polygraphy_debug_ext.analysis.difference import difference

__all__ = ["difference", "failure_rate_bound"]
