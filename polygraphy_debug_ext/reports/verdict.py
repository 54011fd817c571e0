"""The verdict in one sentence, and what to do next: the same words in every format.

Names are made printable here. A sentence says what was found, how sure that is, and on how many builds it rests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.answer import Conclusion, PairKind, View
from polygraphy_debug_ext.reports.lines import count, listed, percent, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polygraphy_debug_ext.model.answer import Answer, Counts, Suspect
    from polygraphy_debug_ext.model.tactic import Tactic

_NAMED: Final = 3

_BISECT: Final = "`polygraphy debug bisect-tactics MODEL --good GOOD --bad BAD --check COMMAND`"
_LOOK_INSIDE: Final = (
    "collect the detailed layer information of good and bad engines (`polygraphy inspect model ENGINE --show layers "
    "attrs`), or verbose build logs, and compare those"
)


def verdict(answer: Answer) -> str:
    """Return the verdict in one sentence."""
    return _SENTENCES[answer.conclusion](answer)


def advice(answer: Answer) -> Iterator[str]:
    """Yield what to know beside the verdict and what to do next, a sentence or two each."""
    if answer.conclusion in _ADVICE:
        yield _ADVICE[answer.conclusion](answer)
    if answer.opaque_layers and answer.good_builds and answer.bad_builds:
        yield _opaque(answer)
    if answer.unresolved_builds:
        yield (
            f"{count(answer.unresolved_builds, 'trial')} ended without a verdict (unresolved) and "
            f"{'is' if answer.unresolved_builds == 1 else 'are'} no evidence for or against a tactic."
        )


def tactic_name(tactic: Tactic) -> str:
    """Return what a tactic is called: its id, and its kernel where it is known."""
    kernel = printable(tactic.kernel or "")
    if tactic.tactic is None:
        return f"kernel {kernel or '(unknown)'}"
    return f"tactic {tactic.hex}" + (f" ({kernel})" if kernel else "")


def suspect_name(suspect: Suspect) -> str:
    """Return what a suspect is called, with where it is."""
    if suspect.view is View.KERNEL:
        name = (
            f"kernel {printable(suspect.tactic.kernel)}"
            if suspect.tactic.kernel
            else tactic_name(suspect.tactic)
        )
        if len(suspect.layers) > 1:
            return f"{name} (at {len(suspect.layers)} layers: {listed(suspect.layers, _NAMED)})"
        return f"{name} at layer {listed(suspect.layers)}"
    return f"{tactic_name(suspect.tactic)} at layer {listed(suspect.layers)}"


def has_it(counts: Counts) -> str:
    """Return how many builds of each verdict have a suspect."""
    bad, good = counts.bad_with + counts.bad_without, counts.good_with + counts.good_without
    return f"in {counts.bad_with} of {count(bad, 'bad build')} and in {counts.good_with} of {count(good, 'good build')}"


def _names(answer: Answer) -> str:
    names = [suspect_name(suspect) for suspect in answer.named[:_NAMED]]
    more = len(answer.named) - len(names)
    return "; ".join(names) + (f"; and {more} more" if more else "")


def _sure(answer: Answer) -> str:
    return "" if answer.probability is None else f" (probability {percent(answer.probability)})"


def _culprit(answer: Answer) -> str:
    (suspect,) = answer.named
    return f"The culprit{_sure(answer)} is {suspect_name(suspect)}: it is {has_it(suspect.counts)}."


def _alike(answer: Answer) -> str:
    return (
        f"One of {len(answer.named)} suspects is the culprit{_sure(answer)}, but each build has all of them or none, so that these "
        f"builds cannot tell them apart: {_names(answer)}."
    )


def _pair(answer: Answer) -> str:
    how = (
        "either of them makes a build fail"
        if answer.pair_kind is PairKind.EITHER
        else "a build fails if it has both"
    )
    return f"Two tactics explain the failures together{_sure(answer)}; {how}: {_names(answer)}."


def _no_tactic(answer: Answer) -> str:
    if not answer.varying_layers:
        return _same_everywhere(answer)
    return (
        f"No {'recorded ' if answer.opaque_layers else ''}tactic explains the failures{_sure(answer)}: whether a build fails does not "
        f"depend on any single choice ({count(answer.bad_builds, 'bad build')}, {count(answer.good_builds, 'good build')})."
    )


def _same_everywhere(answer: Answer) -> str:
    """The sentence for good and bad builds whose records do not differ."""
    if answer.opaque_layers:
        return (
            "Cannot tell: good and bad builds have the same tactic at every layer, but "
            f"{_myelin(answer)}, whose inner choices these records cannot show."
        )
    return (
        "Good and bad builds have the same tactic at every layer: no recorded choice explains the failures."
    )


def _undecided(answer: Answer) -> str:
    if not answer.varying_layers:
        return _same_everywhere(answer)
    return f"Not enough evidence: {_best(answer)}; {_wanted(answer)}."


def _best(answer: Answer) -> str:
    """The likeliest explanation so far."""
    needed = f"and {answer.confidence * 100:.4g}% is needed"
    if not answer.suspects:
        return "no tactic is more often in bad builds than in good ones"
    first = max(answer.suspects, key=lambda suspect: suspect.probability)
    alike = [suspect for suspect in answer.suspects if suspect.group == first.group]
    name, probability = suspect_name(first), sum(suspect.probability for suspect in alike)
    if len(alike) > 1:
        others = "another" if len(alike) == 2 else f"one of {len(alike) - 1} others"  # noqa: PLR2004 - itself and another
        name = f"{name} or {others} that the same builds have"
    if answer.no_tactic is not None and answer.no_tactic > probability:
        return (
            f"that no tactic explains the failures has a probability of {percent(answer.no_tactic)}, the likeliest suspect "
            f"({name}) one of {percent(probability)}, {needed}"
        )
    return f"the likeliest suspect, {name}, has a probability of {percent(probability)}, {needed}"


def _wanted(answer: Answer) -> str:
    if answer.further_builds is None:
        return "not even 1000 further builds like these are expected to decide it"
    return f"about {count(answer.further_builds, 'further build')} {'is' if answer.further_builds == 1 else 'are'} expected to decide it"


def _no_good_build(answer: Answer) -> str:
    start = "Cannot tell: there is no good build, so that every tactic of every layer would be suspect; "
    failed = f"{answer.bad_builds} of {count(answer.bad_builds, 'build')} failed"
    if answer.distinct_bad > 1:
        return (
            f"{start}{failed}, with {answer.distinct_bad} different sets of tactics, so that a fault that is always there "
            "(fusion, model, precision, the check itself) is likelier than a tactic."
        )
    same = "" if answer.bad_builds == 1 else ", all with the same tactics"
    return f"{start}{failed}{same}."


def _no_bad_build(answer: Answer) -> str:
    if answer.failure_rate_bound is None:
        return f"No failure was seen in {count(answer.good_builds, 'build')}."
    return (
        f"No failure was seen in {count(answer.good_builds, 'build')}: the failure rate is below "
        f"{answer.failure_rate_bound:.0%}, with 95% confidence."
    )


def _nothing_in_common(_: Answer) -> str:
    return "Cannot tell: good and bad builds have no layer in common: they are of different networks."


def _no_builds(_: Answer) -> str:
    return "Cannot tell: there are no builds."


_SENTENCES: Final[dict[Conclusion, Callable[[Answer], str]]] = {
    Conclusion.CULPRIT: _culprit,
    Conclusion.ALIKE: _alike,
    Conclusion.PAIR: _pair,
    Conclusion.NO_TACTIC: _no_tactic,
    Conclusion.UNDECIDED: _undecided,
    Conclusion.NO_GOOD_BUILD: _no_good_build,
    Conclusion.NO_BAD_BUILD: _no_bad_build,
    Conclusion.NOTHING_IN_COMMON: _nothing_in_common,
    Conclusion.NO_BUILDS: _no_builds,
}


def _myelin(answer: Answer) -> str:
    graphs = "is a Myelin graph" if len(answer.opaque_layers) == 1 else "are Myelin graphs"
    return f"{listed(answer.opaque_layers)} {graphs}"


def _opaque(answer: Answer) -> str:
    it = "it" if len(answer.opaque_layers) == 1 else "they"
    if answer.conclusion is Conclusion.NO_TACTIC or not answer.varying_layers:
        return (
            f"{_myelin(answer)}: more builds like these will not show what {it} chose inside; {_LOOK_INSIDE}."
        )
    return f"{_myelin(answer)}: the kernels inside are not compared."


def _confirm(_: Answer) -> str:
    return f"Builds only show what goes together. To prove it, build with and without it: {_BISECT}."


def _part(_: Answer) -> str:
    return (
        f"To tell them apart, force one at a time: {_BISECT}. More free builds help only where TensorRT can choose one without the "
        "others."
    )


def _elsewhere(answer: Answer) -> str:
    if not answer.varying_layers and answer.opaque_layers:
        return "The fault may be inside, or not in a tactic at all."
    return (
        "Run the check several times on one engine (`--check-repeat` of `debug build`): if it fails now and then, the fault is in the "
        "check, the data or the device. If it never does, look at what else differs between builds."
    )


def _more(answer: Answer) -> str:
    if not answer.varying_layers:
        return _elsewhere(answer)
    if not answer.telling:
        return f"Generate more tactic replay files with `debug build`, or force builds: {_BISECT}."
    names = "; ".join(suspect_name(suspect) for suspect in answer.telling[:_NAMED])
    return f"Builds that differ in these would tell most: {names}. `debug build` makes more builds; {_BISECT} forces them."


def _always(answer: Answer) -> str:
    if answer.distinct_bad > 1:
        return "Run the check on an engine built without reduced precision, and compare layer by layer."
    return (
        "Generate more tactic replay files until one build passes, or look for a fault that is always there (network, fusion, "
        "precision, the check itself)."
    )


_ADVICE: Final[dict[Conclusion, Callable[[Answer], str]]] = {
    Conclusion.CULPRIT: _confirm,
    Conclusion.ALIKE: _part,
    Conclusion.PAIR: _confirm,
    Conclusion.NO_TACTIC: _elsewhere,
    Conclusion.UNDECIDED: _more,
    Conclusion.NO_GOOD_BUILD: _always,
    Conclusion.NOTHING_IN_COMMON: lambda _: "Compare builds of one network, built with the same options.",
}
