"""What a number of builds without a failure says about the failure rate."""

from __future__ import annotations


def failure_rate_bound(builds: int, confidence: float = 0.95) -> float:
    """Return the highest failure rate, 0 to 1, that is still in line with `builds` builds of which none failed.

    A rate p gives no failure in n independent builds with probability (1 - p)^n; the bound is the p for which this is
    1 - confidence (the exact one-sided Clopper-Pearson bound for zero failures; about 3/n at 95 %, the "rule of three").

    Raises:
        ValueError: if `builds` is negative or `confidence` is not between 0 and 1.
    """
    if builds < 0 or not 0 < confidence < 1:
        raise ValueError(
            f"builds {builds} must not be negative, confidence {confidence} must be between 0 and 1"
        )
    return 1.0 if builds == 0 else 1 - (1 - confidence) ** (1 / builds)
