"""The stock rule: a tactic is suspect if a bad build has it and no good build has it at that layer.

It is right only if the check is never wrong and every fault is a tactic; how many builds stand behind each
suspect is counted, so that the reader can tell an accident from a pattern.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from polygraphy_debug_ext.analysis.bounds import failure_rate_bound
from polygraphy_debug_ext.model import Field, Finding, Outcome, Strength, Suspect

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from polygraphy_debug_ext.model import Assignment, Tactic

    Choice = tuple[str, Hashable]


def difference(good: Sequence[Assignment], bad: Sequence[Assignment]) -> Finding:
    """Hold bad assignments against good ones.

    Suspects come strongest first: by the number of bad builds that have them, then in the order of the builds' layers.
    Where the records differ in what they know of a tensor, only what all of them know is compared.
    """
    everything = [*good, *bad]
    fields = frozenset(Field).intersection(*(each.fields for each in everything))
    recorded = frozenset[Field]().union(*(each.fields for each in everything))
    bad_choices = _choices(bad, fields)
    good_choices = _choices(good, fields)
    suspects = _suspects(bad_choices, good_choices, len(bad))
    outcome = _outcome(good, bad, has_suspects=bool(suspects))
    return Finding(
        outcome=outcome,
        good_builds=len(good),
        bad_builds=len(bad),
        suspects=suspects if outcome is Outcome.SUSPECTS else (),
        failure_rate_bound=failure_rate_bound(len(good)) if outcome is Outcome.NO_BAD_BUILD else None,
        distinct_bad=len({_signature(each, fields) for each in bad}),
        variants=tuple(sorted(Counter(each.variant for each in everything).items())),
        opaque_layers=tuple(dict.fromkeys(layer for each in everything for layer in each.opaque_layers)),
        not_compared=recorded - fields,
    )


class _Choices:
    """How many builds made each choice (layer and tactic), with one tactic to show for it."""

    def __init__(self) -> None:
        self.builds: Counter[Choice] = Counter()
        self.tactics: dict[Choice, Tactic] = {}
        self.by_layer: dict[str, dict[Choice, Tactic]] = {}


def _choices(assignments: Iterable[Assignment], fields: frozenset[Field]) -> _Choices:
    choices = _Choices()
    for assignment in assignments:
        for layer, tactic in assignment.layers.items():
            if tactic.swallowed:
                continue
            choice = (layer, tactic.identity(fields))
            choices.builds[choice] += 1
            # A record that knows the name of the kernel says more than one that does not.
            if choice not in choices.tactics or choices.tactics[choice].kernel is None:
                choices.tactics[choice] = tactic
                choices.by_layer.setdefault(layer, {})[choice] = tactic
    return choices


def _suspects(bad: _Choices, good: _Choices, bad_builds: int) -> tuple[Suspect, ...]:
    suspects = [
        Suspect(
            layer=choice[0],
            tactic=bad.tactics[choice],
            bad_builds=count,
            good_builds=0,
            strength=Strength.STRONG if count == bad_builds else Strength.WEAK,
            good_tactics=tuple(good.by_layer.get(choice[0], {}).values()),
        )
        for choice, count in bad.builds.items()
        if choice not in good.builds
    ]
    return tuple(sorted(suspects, key=lambda suspect: -suspect.bad_builds))


def _outcome(good: Sequence[Assignment], bad: Sequence[Assignment], *, has_suspects: bool) -> Outcome:
    if not good and not bad:
        return Outcome.NO_BUILDS
    if not bad:
        return Outcome.NO_BAD_BUILD
    if not good:
        return Outcome.NO_GOOD_BUILD
    if not _layers(good) & _layers(bad):
        return Outcome.NOTHING_IN_COMMON
    return Outcome.SUSPECTS if has_suspects else Outcome.NO_DIFFERENCE


def _layers(assignments: Iterable[Assignment]) -> set[str]:
    return {layer for assignment in assignments for layer in assignment.layers}


def _signature(assignment: Assignment, fields: frozenset[Field]) -> frozenset[Choice]:
    return frozenset((layer, tactic.identity(fields)) for layer, tactic in assignment.layers.items())
