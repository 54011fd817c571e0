"""The answer as JSON: `diff-tactics.schema.json` beside this file describes every field; `version` changes if a field changes its meaning or goes.

Readers must pass over fields that they do not know: new ones may come without a new version. A number that is infinite (D* of a suspect in
every bad build and no good one) is the string "inf". Names are in full and as the files have them, in ASCII with JSON's
escapes, so that they cannot steer a terminal. 64-bit ids are JSON integers; who reads them as floats takes `tactic_hex`.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final

from polygraphy_debug_ext.model.answer import Rank
from polygraphy_debug_ext.reports.verdict import advice, verdict

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.answer import Answer, Suspect
    from polygraphy_debug_ext.model.tactic import Tactic, TensorInfo
    from polygraphy_debug_ext.reports.document import Document, Group, Side

SCHEMA: Final = "polygraphy-debug-ext/diff-tactics"
VERSION: Final = 1

_STOCK: Final = {Rank.STRONG: "strong", Rank.WEAK: "weak", Rank.NOT_SUSPECT: None}


def render(document: Document) -> str:
    """Return the document as JSON text that ends with a newline."""
    options = document.options
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "status": document.status,
        "options": {
            "by": options.view,
            "method": options.method,
            "confidence": options.confidence,
            "rates_prior": options.rates_prior,
            "top": options.top,
        },
        "good": _side(document.good),
        "bad": _side(document.bad),
        "journal": {"complaints": list(document.complaints), "unresolved_trials": document.unresolved},
        "environments": [_group(group, options.top) for group in document.groups],
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _side(side: Side) -> dict[str, Any]:
    content: dict[str, Any] = {
        "place": side.place,
        "kinds": dict(side.kinds),
        "left_out": [{"file": file, "reason": reason} for file, reason in side.skipped],
    }
    if side.unnamed:
        content["left_out_unnamed"] = dict(side.unnamed)
    return content


def _group(group: Group, top: int | None) -> dict[str, Any]:
    answer = group.answer
    return {
        "environment": dict(answer.environment.values),
        "apart": dict(group.apart),
        "mixed": {key: list(values) for key, values in group.mixed},
        "status": group.status,
        **_conclusion(answer),
        "builds": {
            "good": answer.good_builds,
            "bad": answer.bad_builds,
            "unresolved": answer.unresolved_builds,
            "distinct_bad": answer.distinct_bad,
        },
        "layers": {
            "all": answer.layers,
            "varying": answer.varying_layers,
            "opaque": list(answer.opaque_layers),
            "incomparable": list(group.incomparable),
        },
        "not_compared": sorted(field.value for field in answer.not_compared),
        "formats": dict(answer.variants),
        "named": [_suspect(suspect) for suspect in answer.named],
        "suspects_found": len(answer.suspects),
        "suspects": [_suspect(suspect) for suspect in answer.suspects[:top]],
        "telling": [_suspect(suspect) for suspect in answer.telling],
        "potentially_bad": [_suspect(suspect) for suspect in group.stock],
    }


def _conclusion(answer: Answer) -> dict[str, Any]:
    return {
        "conclusion": answer.conclusion.name.lower(),
        "verdict": verdict(answer),
        "advice": list(advice(answer)),
        "probability": answer.probability,
        "no_tactic": answer.no_tactic,
        "confidence": answer.confidence,
        "pair_kind": None if answer.pair_kind is None else answer.pair_kind.name.lower(),
        "further_builds": answer.further_builds,
        "failure_rate_bound": answer.failure_rate_bound,
    }


def _suspect(suspect: Suspect) -> dict[str, Any]:
    counts = suspect.counts
    return {
        "by": suspect.view.value,
        "layers": list(suspect.layers),
        **_tactic(suspect.tactic),
        "probability": suspect.probability,
        "class": suspect.group,
        "bad_with": counts.bad_with,
        "good_with": counts.good_with,
        "bad_without": counts.bad_without,
        "good_without": counts.good_without,
        "stock": _STOCK[suspect.rank],
        "ochiai": suspect.ochiai,
        "dstar": "inf" if math.isinf(suspect.dstar) else suspect.dstar,
        "alternatives": [_tactic(tactic) for tactic in suspect.alternatives],
    }


def _tactic(tactic: Tactic) -> dict[str, Any]:
    return {
        "kernel": tactic.kernel,
        "implementation": tactic.implementation,
        "tactic": tactic.tactic,
        "tactic_hex": tactic.hex or None,
        "cache_key": tactic.cache_key,
        "inputs": [_tensor(info) for info in tactic.inputs],
        "outputs": [_tensor(info) for info in tactic.outputs],
    }


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {
        "dtype": info.dtype,
        "tensor_format": info.tensor_format,
        "strides": None if info.strides is None else list(info.strides),
        "vectorized_dim": info.vectorized_dim,
        "components_per_element": info.components_per_element,
    }
