"""What `diff-tactics` says: Polygraphy's own lines where it has them, then the evidence, then what to do next."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import Field, Outcome, Strength
from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, listed, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polygraphy_debug_ext.model import Finding, Suspect, Tactic

_UNDETERMINED = "Could not determine potentially bad tactics"

_MYELIN = "A Myelin graph is one layer in a replay, which does not show the kernels chosen inside"

#: How a tensor property is called in messages.
_WORDS = {
    Field.DTYPE: "data types",
    Field.TENSOR_FORMAT: "tensor formats",
    Field.STRIDES: "strides",
    Field.VECTORIZED_DIM: "vectorized dimensions",
    Field.COMPONENTS: "components per element",
}


def before_the_counts(finding: Finding) -> Iterator[Line]:
    """Yield what is to be known of the evidence before its summary."""
    if finding.not_compared:
        properties = ", ".join(_WORDS[field] for field in Field if field in finding.not_compared)
        variants = ", ".join(f"{variant} ({count(number, 'file')})" for variant, number in finding.variants)
        yield Line(
            f"The replays are in the formats of several Polygraphy versions: {variants}. Not all of them have the same "
            f"I/O layout of tensors, so it was not compared in full ({properties} were left out).",
            Level.WARNING,
        )
    if finding.outcome is Outcome.NO_BAD_BUILD and finding.failure_rate_bound is not None:
        yield Line(
            f"No failure was seen in {count(finding.good_builds, 'build')}: the failure rate is below "
            f"{finding.failure_rate_bound:.0%}, with 95% confidence."
        )


def counts(finding: Finding) -> Iterator[Line]:
    """Yield how many replays there are, in Polygraphy's words."""
    yield Line(f"Loaded {finding.good_builds} good tactic replays.")
    yield Line(f"Loaded {finding.bad_builds} bad tactic replays.")


def answer(finding: Finding) -> Iterator[Line]:
    """Yield the suspects; or that there are none, and why."""
    if finding.outcome is Outcome.SUSPECTS:
        yield from _suspects(finding)
    elif finding.outcome is Outcome.NO_BAD_BUILD:
        yield Line(f"{_UNDETERMINED}. Try generating more tactic replay files?")
    elif finding.outcome is Outcome.NO_GOOD_BUILD:
        yield from _no_good_build(finding)
    elif finding.outcome is Outcome.NO_DIFFERENCE:
        yield from _no_difference(finding)


def _suspects(finding: Finding) -> Iterator[Line]:
    yield Line("Found potentially bad tactics:")
    # Suspects are in the order of their strength, so a layer's first one decides where the layer stands.
    order = list(dict.fromkeys(suspect.layer for suspect in finding.suspects))
    by_layer = sorted(finding.suspects, key=lambda suspect: order.index(suspect.layer))
    for layer, group in groupby(by_layer, key=lambda suspect: suspect.layer):
        suspects = list(group)
        algorithms = [str(suspect.tactic) for suspect in suspects]
        lines = [f"Layer: {printable(layer)}", f"{TAB}Algorithms: {algorithms}"]
        lines += [f"{TAB}{_evidence(suspect, finding)}" for suspect in suspects]
        yield Line("\n".join(lines))
    if finding.opaque_layers:
        yield Line(f"{_MYELIN}: {listed(finding.opaque_layers)}.")
    yield from _conclusion(finding)


def _evidence(suspect: Suspect, finding: Finding) -> str:
    others = tuple(tactic.hex or tactic.kernel or "" for tactic in suspect.good_tactics)
    instead = f"; good builds have {listed(others, 3)}" if others else "; no good build has this layer"
    return (
        f"{_name(suspect.tactic)}: in {suspect.bad_builds} of {count(finding.bad_builds, 'bad build')}, "
        f"in {suspect.good_builds} of {count(finding.good_builds, 'good build')} ({suspect.strength.value}){instead}"
    )


def _conclusion(finding: Finding) -> Iterator[Line]:
    strong = [suspect for suspect in finding.suspects if suspect.strength is Strength.STRONG]
    if len(strong) == 1:
        suspect = strong[0]
        yield Line(
            f"Prime suspect: {_name(suspect.tactic)} at layer {printable(suspect.layer)}: it is in every bad build "
            "and in no good build."
        )
    elif strong:
        yield Line(
            f"{len(strong)} tactics are in every bad build and in no good build: these builds cannot tell them apart. "
            "Generate more tactic replay files."
        )
    else:
        yield Line(
            "No suspect is in every bad build: there may be several faults, or failures that have nothing to do with "
            "tactics. Generate more tactic replay files."
        )


def _no_good_build(finding: Finding) -> Iterator[Line]:
    yield Line(
        f"{_UNDETERMINED}: all of {count(finding.bad_builds, 'build')} failed, so every tactic of every layer would be "
        "suspect."
    )
    if finding.distinct_bad > 1:
        yield Line(
            f"They failed with {finding.distinct_bad} different sets of tactics: a fault that is always there (network, "
            "fusion, precision, the check itself) is likelier than a tactic. Run the check on an engine built "
            "without reduced precision, and compare layer by layer."
        )
    else:
        yield Line(
            "They all have the same tactics: generate more tactic replay files until one build passes, or look for a "
            "fault that is always there (network, fusion, precision, the check itself)."
        )


def _no_difference(finding: Finding) -> Iterator[Line]:
    yield Line(f"{_UNDETERMINED}: every tactic of the bad builds is in some good build as well.")
    if finding.opaque_layers:
        yield Line(
            f"{_MYELIN}: {listed(finding.opaque_layers)}. More replays will not help there: collect the "
            "detailed layer information of good and bad engines (`polygraphy inspect model ENGINE --show layers "
            "attrs`), or verbose build logs, and compare those.",
            Level.WARNING,
        )
    else:
        yield Line(
            "Either the check fails now and then for engines that are right (run it several times on one engine), or "
            "the fault is not in a single tactic."
        )


def _name(tactic: Tactic) -> str:
    if tactic.tactic is None:
        return f"kernel {printable(tactic.kernel or '')}"
    return f"tactic {tactic.hex}" + (f" ({printable(tactic.kernel)})" if tactic.kernel else "")
