"""The result of `bisect-tactics` as JSON.

    {"schema": "polygraphy-debug-ext/bisect-tactics", "version": 1, "outcome": "CONFIRMED", "sentence": "...",
     "good": "g.json", "bad": "b.json", "builds": 11, "unresolved": 0,
     "ends": {"bad": ARM, "good": ARM}, "rest": ARM or null,
     "culprits": [{"verdict": "CONFIRMED", "probability": 0.99, "inside": ARM, "outside": ARM, "lacking": [ARM, ...],
                   "members": [[LAYER, ...], ...]}],
     "ranked": [{"factors": [...], "probability": 0.5}], "no_tactic": 0.01, "unforceable": [...],
     "rates": {"present": 1.0, "absent": 0.0}}

ARM is {"fails": 2, "passes": 0}; LAYER is {"layer": "...", "bad": TACTIC, "good": TACTIC, "also_at": [...]}, where `also_at` are other
layers of the bad build with the same kernel; TACTIC is {"tactic": "0x..." or null, "implementation": 1 or null, "kernel": "..." or null,
"time_ms": 0.01 or null}. Outcomes are the names of `model.isolation.Outcome`. A newer version may add fields, and changes none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from polygraphy_debug_ext.reports.isolation import sentence

if TYPE_CHECKING:
    from polygraphy_debug_ext.model import Tactic
    from polygraphy_debug_ext.model.isolation import Arm, Culprit
    from polygraphy_debug_ext.reports.isolation import Found

SCHEMA: Final = "polygraphy-debug-ext/bisect-tactics"
VERSION: Final = 1


def document(found: Found) -> str:
    """Return the JSON text."""
    isolation = found.isolation
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "outcome": isolation.outcome.name,
        "sentence": sentence(found),
        "good": found.good.origin,
        "bad": found.bad.origin,
        "builds": isolation.builds,
        "unresolved": isolation.unresolved,
        "ends": {"bad": _arm(isolation.ends.bad), "good": _arm(isolation.ends.good)},
        "rest": None if isolation.rest is None else _arm(isolation.rest),
        "culprits": [_culprit(found, culprit) for culprit in isolation.culprits],
        "ranked": [
            {"factors": list(each.factors), "probability": each.probability} for each in isolation.ranked
        ],
        "no_tactic": isolation.none,
        "unforceable": list(isolation.unforceable),
        "rates": {"present": isolation.present_rate, "absent": isolation.absent_rate},
    }
    return json.dumps(content, indent=4, allow_nan=False) + "\n"


def _culprit(found: Found, culprit: Culprit) -> dict[str, Any]:
    return {
        "verdict": culprit.verdict.name,
        "probability": culprit.probability,
        "inside": _arm(culprit.inside),
        "outside": _arm(culprit.outside),
        "lacking": [_arm(arm) for arm in culprit.lacking],
        "members": [
            [_layer(found, layer) for factor in member for layer in found.layers_of[factor]]
            for member in culprit.members
        ],
    }


def _layer(found: Found, layer: str) -> dict[str, Any]:
    bad = found.bad.layers[layer]
    also_at = [
        name
        for name, tactic in found.bad.layers.items()
        if bad.kernel is not None and tactic.kernel == bad.kernel and name != layer and not tactic.swallowed
    ]
    return {
        "layer": layer,
        "bad": _tactic(bad),
        "good": _tactic(found.good.layers[layer]),
        "also_at": also_at,
    }


def _tactic(tactic: Tactic) -> dict[str, Any]:
    return {
        "tactic": tactic.hex or None,
        "implementation": tactic.implementation,
        "kernel": tactic.kernel,
        "time_ms": tactic.time_ms,
    }


def _arm(arm: Arm) -> dict[str, int]:
    return {"fails": arm.fails, "passes": arm.passes}
