"""What others say of a suspect, from its counts: Polygraphy's rule, and two scores of spectrum-based fault localization."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model.answer import Rank

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.answer import Counts


def stock_rank(counts: Counts) -> Rank:
    """Return what Polygraphy's rule says: suspect is what a bad build has and no good one."""
    if counts.good_with or not counts.bad_with:
        return Rank.NOT_SUSPECT
    return Rank.WEAK if counts.bad_without else Rank.STRONG


def ochiai(counts: Counts) -> float:
    """Return bad_with / sqrt(bad * builds with it), 0 to 1 (R. Abreu et al., An evaluation of similarity coefficients, PRDC 2006)."""
    bad, having = counts.bad_with + counts.bad_without, counts.bad_with + counts.good_with
    return counts.bad_with / math.sqrt(bad * having) if counts.bad_with else 0.0


def dstar(counts: Counts) -> float:
    """Return bad_with^2 / (good_with + bad_without), infinite if that is 0 (W. E. Wong et al., The DStar method, 2014)."""
    wrong = counts.good_with + counts.bad_without
    if not wrong:
        return math.inf if counts.bad_with else 0.0
    return counts.bad_with**2 / wrong
