"""Pure functions on tactics and verdicts: no files, no clocks, no processes, no TensorRT."""

from polygraphy_debug_ext.analysis.bounds import failure_rate_bound
from polygraphy_debug_ext.analysis.ranking import rank

__all__ = ["failure_rate_bound", "rank"]
