"""What `bisect-tactics` says: what it is about to do, where it is, and what it proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.isolation import Outcome, Phase
from polygraphy_debug_ext.reports.lines import TAB, Level, Line, count, listed, percent, printable
from polygraphy_debug_ext.reports.verdict import tactic_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polygraphy_debug_ext.model import Assignment, Proposal, Tactic
    from polygraphy_debug_ext.model.isolation import Arm, Culprit, Isolation, Plan, Progress

#: Exit statuses of `bisect-tactics`.
STATUS_INCONCLUSIVE: Final = 3
STATUS_ENDS: Final = 4
STATUS_NO_TACTIC: Final = 5

_STATUS: Final = {
    Outcome.CONFIRMED: 0,
    Outcome.NO_FACTOR: STATUS_NO_TACTIC,
    Outcome.BAD_END_PASSES: STATUS_ENDS,
    Outcome.GOOD_END_FAILS: STATUS_ENDS,
}
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found, and between what: `layers_of` has the layers of each factor, `good` and `bad` are the ends."""

    isolation: Isolation
    layers_of: Mapping[str, tuple[str, ...]]
    good: Assignment
    bad: Assignment

    def layers(self, culprit: Culprit) -> tuple[str, ...]:
        """The layers of a culprit, in the order of the good build."""
        wanted = {layer for factor in culprit.factors for layer in self.layers_of[factor]}
        return tuple(layer for layer in self.good.layers if layer in wanted)


def status(isolation: Isolation) -> int:
    """Return the exit status."""
    return _STATUS.get(isolation.outcome, STATUS_INCONCLUSIVE)


def beginning(found: Found, apart: tuple[str, ...]) -> Iterator[Line]:
    """Yield what is bisected. `apart` are layers that cannot be exchanged."""
    factors = len(found.layers_of)
    yield Line(
        f"Bisecting between {printable(found.good.origin)} (good) and {printable(found.bad.origin)} (bad): they differ at "
        f"{count(factors, 'layer')}."
    )
    if apart:
        yield Line(
            f"{count(len(apart), 'layer')} cannot be exchanged, because only one of the engines has {'it' if len(apart) == 1 else 'them'}: "
            f"{listed(apart, _SHOWN)}. If the fault is there, the ends reproduce, but no tactic explains it.",
            Level.WARNING,
        )


def no_difference(good: str, bad: str) -> Iterator[Line]:
    """Yield that there is nothing to bisect between these files."""
    yield Line(
        f"No tactic explains the failures: {printable(bad)} has the same tactics as {printable(good)}. "
        "Either the check fails now and then for one and the same engine (try --check-repeat), or what differs is not recorded."
    )


def plan(planned: Plan) -> Iterator[Line]:
    """Yield what would be built."""
    lines = [
        f"{count(planned.factors, 'layer')} would be searched. Builds expected (check that never errs, check that errs 1 in 10):"
    ]
    lines += [f"{TAB}{each.phase.value:<20} {each.steady:5.1f} {each.noisy:7.1f}" for each in planned.phases]
    lines.append(f"{TAB}{'in all':<20} {planned.steady:5.1f} {planned.noisy:7.1f}")
    lines.append(f"It gives up after {count(planned.max_builds, 'build')} (--max-builds). Nothing was built.")
    yield Line("\n".join(lines))


def step(proposal: Proposal, progress: Progress) -> Iterator[Line]:
    """Yield where the search is, and what the next build is for."""
    left = f"{count(progress.candidates, 'layer')} left, " if progress.phase is Phase.SEARCH else ""
    yield Line(
        f"Bisecting: {left}{count(progress.builds, 'build')} done of about {progress.expected}. Next: {printable(proposal.purpose)}."
    )


def refused(layers: Mapping[str, str]) -> Iterator[Line]:
    """Yield which forced tactics a build does not have; why is told by who built it."""
    yield Line(
        f"This build does not have all tactics that were asked for ({listed(tuple(layers), 3)}): it counts for what it has."
    )


def conclusion(found: Found) -> Iterator[Line]:
    """Yield what was proved, the evidence, and what to do next."""
    isolation = found.isolation
    yield Line(sentence(found))
    for culprit in isolation.culprits:
        yield Line(
            "\n".join([f"{_verdict_word(culprit)}:", *(f"{TAB}{line}" for line in _evidence(found, culprit))])
        )
    if isolation.ends.bad.builds or isolation.ends.good.builds:
        yield Line(
            f"The ends: with all bad tactics {_failed(isolation.ends.bad)}, with all good ones {_failed(isolation.ends.good)}. "
            f"{count(isolation.builds, 'build')} in all"
            + (f", {isolation.unresolved} of them unresolved." if isolation.unresolved else ".")
        )
    if isolation.unforceable:
        yield Line(
            f"Could not be forced, so that nothing is known of them: {listed(isolation.unforceable, _SHOWN)}.",
            Level.WARNING,
        )
    if not isolation.outcome.names_culprit and isolation.ranked and not isolation.outcome.acquits_all:
        lines = [
            f"{TAB}{percent(each.probability):>6}  {listed(each.factors, _SHOWN)}"
            for each in isolation.ranked[:_SHOWN]
        ]
        yield Line("\n".join(["Likeliest so far:", *lines, f"{TAB}{percent(isolation.none):>6}  no tactic"]))
    if (advice := _advice(isolation)) is not None:
        yield Line(advice)


def sentence(found: Found) -> str:
    """Return the outcome in one sentence."""
    isolation = found.isolation
    if not isolation.culprits:
        return f"{_HEADS[isolation.outcome]}: {isolation.outcome.value}."
    names = [_culprit_name(found, culprit) for culprit in isolation.culprits]
    return f"{_HEADS[isolation.outcome]}: {'; and '.join(names)}: {isolation.outcome.value}."


_HEADS: Final = {
    Outcome.CONFIRMED: "Confirmed",
    Outcome.SUFFICIENT_ONLY: "Sufficient, not necessary",
    Outcome.NEEDS_PARTNER: "Necessary, not sufficient",
    Outcome.NOT_CONFIRMED: "Not confirmed",
    Outcome.NO_FACTOR: "No tactic explains it",
    Outcome.BAD_END_PASSES: "The failure does not reproduce",
    Outcome.GOOD_END_FAILS: "The good build fails as well",
    Outcome.INCONCLUSIVE: "Inconclusive",
}


def _culprit_name(found: Found, culprit: Culprit) -> str:
    layers = found.layers(culprit)
    named = [
        f"{tactic_name(found.bad.layers[layer])} at layer {printable(layer)}" for layer in layers[:_SHOWN]
    ]
    more = len(layers) - len(named)
    together = " together with " if len(culprit.members) > 1 else " and "
    return together.join(named) + (f" and {more} more" if more else "")


def _verdict_word(culprit: Culprit) -> str:
    return f"{_HEADS[culprit.verdict]} (posterior {percent(culprit.probability)})"


def _evidence(found: Found, culprit: Culprit) -> Iterator[str]:
    layers = found.layers(culprit)
    alone = "them" if len(layers) > 1 else "it"
    yield f"With {alone} alone, and good tactics everywhere else: {_failed(culprit.inside)}."
    yield f"Without {alone}, and bad tactics everywhere else: {_failed(culprit.outside)}."
    for member, arm in zip(culprit.members, culprit.lacking, strict=False):
        yield f"The set without {listed(member, _SHOWN)}: {_failed(arm)}."
    for layer in layers:
        bad, good = found.bad.layers[layer], found.good.layers[layer]
        yield f"Layer {printable(layer)}: {tactic_name(bad)}{_time(bad)} fails, {tactic_name(good)}{_time(good)} takes its place."
        others = tuple(
            other
            for other, tactic in found.bad.layers.items()
            if bad.kernel is not None
            and tactic.kernel == bad.kernel
            and other not in layers
            and not tactic.swallowed
        )
        if others:
            yield f"The bad build has the same kernel at {listed(others, _SHOWN)} as well."


def _time(tactic: Tactic) -> str:
    return "" if tactic.time_ms is None else f" [{tactic.time_ms:.4g} ms]"


def _failed(arm: Arm) -> str:
    return f"{arm.fails} of {count(arm.builds, 'build')} failed"


def _advice(isolation: Isolation) -> str | None:
    if isolation.outcome is Outcome.CONFIRMED:
        return (
            "To build without it: `polygraphy debug build MODEL --avoid-tactics AVOID --until good --check COMMAND`, with the list "
            "that --save-avoid writes."
        )
    if isolation.outcome is Outcome.BAD_END_PASSES:
        return (
            "The failure was not in the tactics that were recorded, or the check fails now and then on its own: run the check "
            "several times on one engine, or record more bad builds."
        )
    if isolation.outcome is Outcome.GOOD_END_FAILS or (
        isolation.outcome is Outcome.NO_FACTOR and isolation.ends.good.fails > isolation.ends.good.passes
    ):
        return "The good build passed by luck, or the check fails on its own: take another one with --good, or look at the check."
    if isolation.outcome is Outcome.INCONCLUSIVE:
        return "Go on with --resume and a larger --max-builds, or take another pair of builds."
    return None
