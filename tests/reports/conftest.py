"""Documents made by hand, one for each conclusion and for what makes reports difficult."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import pytest

from polygraphy_debug_ext.model import Field, Tactic, TensorInfo
from polygraphy_debug_ext.model.answer import (
    Answer,
    Conclusion,
    Counts,
    Environment,
    PairKind,
    Rank,
    Suspect,
    View,
)
from polygraphy_debug_ext.reports.document import Document, Group, Options, Side

if TYPE_CHECKING:
    from collections.abc import Callable

MYELIN = "{ForeignNode[attn.0.q.weight.../attn/3/proj/Add]}"
LONG = "Reformatting CopyNode for Input Tensor 0 to /model/layers.11/self_attn/q_proj/MatMul + /model/layers.11/self_attn/q_proj/Add [profile 1]"
KERNEL = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_tensor16x8x16"
HOSTILE = "conv|`<b>1</b>`\x1b[2J\x00&\r\n]]>\"'@team #1 \u202ezil $x$"


def tactic(number: int, kernel: str | None = None) -> Tactic:
    """A tactic that differs from another by its number."""
    info = TensorInfo(dtype="HALF", strides=(1024, 32, 1), vectorized_dim=1, components_per_element=8)
    return Tactic(implementation=0x80000009, tactic=number, inputs=(info,), outputs=(info,), kernel=kernel)


def suspect(layer: str, number: int, counts: tuple[int, int, int, int], **other: object) -> Suspect:
    """A suspect: its layer, the number of its tactic, and bad with, good with, bad without and good without it."""
    bad_with, good_with, bad_without, good_without = counts
    precision = bad_with / (bad_with + good_with)
    rank = Rank.NOT_SUSPECT if good_with or not bad_with else Rank.WEAK if bad_without else Rank.STRONG
    values: dict[str, Any] = {
        "view": View.LAYER,
        "layers": (layer,),
        "tactic": tactic(number, KERNEL if number < 0 else None),
        "counts": Counts(
            bad_with=bad_with, good_with=good_with, bad_without=bad_without, good_without=good_without
        ),
        "probability": 0.01,
        "group": 0,
        "rank": rank,
        "ochiai": math.sqrt(precision * bad_with / (bad_with + bad_without)),
        "dstar": bad_with**2 / (good_with + bad_without) if good_with + bad_without else math.inf,
        "alternatives": (tactic(7), tactic(8)),
    }
    return Suspect(**{**values, **other})


FIRST = suspect("conv1 + relu1", -3, (5, 0, 0, 8), probability=0.974)
SECOND = suspect(LONG, 12, (2, 0, 3, 8), probability=0.012, group=1)
THIRD = suspect("fc", 4, (3, 4, 2, 4), probability=0.002, group=2)
EVIDENCE: dict[str, Any] = {
    "good_builds": 8,
    "bad_builds": 5,
    "distinct_bad": 4,
    "layers": 40,
    "varying_layers": 17,
    "variants": (("0.49", 13),),
}


def answers() -> dict[str, Answer]:
    """An answer of each kind."""
    suspects = (FIRST, SECOND, THIRD)
    twin = dataclasses.replace(FIRST, layers=("conv2 + relu2",), probability=0.486)
    alike = (dataclasses.replace(FIRST, probability=0.486), twin)
    kernel = dataclasses.replace(FIRST, view=View.KERNEL, layers=("conv1 + relu1", "conv2", "conv3", "conv4"))
    unsure = tuple(
        dataclasses.replace(each, probability=0.3 - 0.1 * number) for number, each in enumerate(suspects)
    )
    return {
        "culprit": Answer(
            conclusion=Conclusion.CULPRIT,
            probability=0.974,
            no_tactic=0.008,
            named=(FIRST,),
            suspects=suspects,
            **EVIDENCE,
        ),
        "culprit_kernel": Answer(
            conclusion=Conclusion.CULPRIT,
            probability=0.9999,
            no_tactic=0.0,
            named=(kernel,),
            suspects=(kernel,),
            **EVIDENCE,
        ),
        "alike": Answer(
            conclusion=Conclusion.ALIKE,
            probability=0.972,
            no_tactic=0.01,
            named=alike,
            suspects=(*alike, SECOND),
            **EVIDENCE,
        ),
        "pair": Answer(
            conclusion=Conclusion.PAIR,
            probability=0.96,
            named=(FIRST, SECOND),
            pair_kind=PairKind.EITHER,
            suspects=suspects,
            **EVIDENCE,
        ),
        "pair_both": Answer(
            conclusion=Conclusion.PAIR,
            probability=0.96,
            named=(dataclasses.replace(kernel, tactic=tactic(4)), SECOND),
            pair_kind=PairKind.BOTH,
            suspects=suspects,
            **EVIDENCE,
        ),
        "no_tactic_opaque": Answer(
            conclusion=Conclusion.NO_TACTIC,
            probability=0.97,
            no_tactic=0.97,
            suspects=(THIRD,),
            opaque_layers=(MYELIN, "{ForeignNode[b]}"),
            **EVIDENCE,
        ),
        "no_variation": Answer(
            conclusion=Conclusion.NO_TACTIC,
            probability=1.0,
            no_tactic=1.0,
            **{**EVIDENCE, "varying_layers": 0},
        ),
        "no_good_build_alike": Answer(
            conclusion=Conclusion.NO_GOOD_BUILD,
            **{**EVIDENCE, "good_builds": 0, "bad_builds": 3, "distinct_bad": 1},
        ),
        "no_tactic": Answer(
            conclusion=Conclusion.NO_TACTIC, probability=0.97, no_tactic=0.97, suspects=(THIRD,), **EVIDENCE
        ),
        "undecided": Answer(
            conclusion=Conclusion.UNDECIDED,
            no_tactic=0.25,
            suspects=unsure,
            further_builds=12,
            telling=(FIRST, SECOND),
            unresolved_builds=2,
            **EVIDENCE,
        ),
        "undecided_alike": Answer(
            conclusion=Conclusion.UNDECIDED,
            no_tactic=0.25,
            suspects=tuple(dataclasses.replace(each, probability=0.3) for each in alike),
            further_builds=1,
            **EVIDENCE,
        ),
        "undecided_none": Answer(
            conclusion=Conclusion.UNDECIDED, no_tactic=0.8, suspects=(THIRD,), confidence=0.999, **EVIDENCE
        ),
        "no_good_build": Answer(
            conclusion=Conclusion.NO_GOOD_BUILD,
            **{**EVIDENCE, "good_builds": 0, "bad_builds": 3, "distinct_bad": 2},
        ),
        "no_bad_build": Answer(
            conclusion=Conclusion.NO_BAD_BUILD,
            failure_rate_bound=0.632,
            **{**EVIDENCE, "good_builds": 3, "bad_builds": 0, "distinct_bad": 0},
        ),
        "opaque": Answer(
            conclusion=Conclusion.UNDECIDED, opaque_layers=(MYELIN,), **{**EVIDENCE, "varying_layers": 0}
        ),
        "nothing_in_common": Answer(conclusion=Conclusion.NOTHING_IN_COMMON, **EVIDENCE),
    }


def document(answer: Answer, **other: object) -> Document:
    """The document of one environment."""
    stock = tuple(
        each for each in answer.suspects if each.rank is not Rank.NOT_SUSPECT and each.view is View.LAYER
    )
    values: dict[str, Any] = {
        "good": Side(place="replays/good", kinds=(("tactic replay", answer.good_builds),)),
        "bad": Side(place="replays/bad", kinds=(("tactic replay", answer.bad_builds),)),
        "groups": (Group(answer=answer, stock=stock),),
    }
    return Document(**{**values, **other})


def hostile() -> Document:
    """A document whose names from files try to be something else."""
    named = suspect(HOSTILE, 5, (5, 0, 0, 8), probability=0.97, tactic=tactic(5, HOSTILE))
    answer = Answer(
        conclusion=Conclusion.CULPRIT,
        probability=0.97,
        named=(named,),
        suspects=(named,),
        opaque_layers=(HOSTILE,),
        not_compared=frozenset({Field.STRIDES}),
        environment=Environment(values=(("gpu", HOSTILE),)),
        **{**EVIDENCE, "variants": ((HOSTILE, 13),)},
    )
    return Document(
        good=Side(place=HOSTILE, kinds=((HOSTILE, 8),), skipped=((HOSTILE, HOSTILE),)),
        bad=Side(place=HOSTILE, kinds=(("build log", 5),)),
        groups=(
            Group(
                answer=answer,
                stock=(named,),
                incomparable=(HOSTILE,),
                apart=(("gpu", HOSTILE),),
                mixed=(("driver", (HOSTILE, "b")),),
            ),
        )
        * 2,
        unresolved=2,
        complaints=(HOSTILE,),
    )


def environments() -> Document:
    """A document of two environments, one of which has failures."""
    made = answers()
    values = (("tensorrt", "8.6.1"), ("gpu", "NVIDIA A100"))
    culprit = dataclasses.replace(made["culprit"], environment=Environment(values=values))
    other = dataclasses.replace(
        made["no_bad_build"], environment=Environment(values=(("tensorrt", "10.13.3.9"),))
    )
    return document(
        culprit,
        groups=(
            Group(
                answer=culprit,
                stock=(FIRST,),
                apart=(("tensorrt", "8.6.1"), ("gpu", "NVIDIA A100")),
                mixed=(("driver", ("535.54", "550.90")),),
            ),
            Group(answer=other, apart=(("tensorrt", "10.13.3.9"), ("gpu", ""))),
        ),
    )


def documents() -> dict[str, Document]:
    """All documents, by name."""
    made = {name: document(answer) for name, answer in answers().items()}
    kernel = made["culprit_kernel"]
    return {
        **made,
        "culprit_kernel": dataclasses.replace(
            kernel,
            options=Options(view="kernel"),
            groups=(dataclasses.replace(kernel.groups[0], stock=(FIRST,)),),
        ),
        "hostile": hostile(),
        "environments": environments(),
        "mixture": dataclasses.replace(
            document(dataclasses.replace(made["culprit"].groups[0].answer, unresolved_builds=1)),
            good=Side(place="replays/good", kinds=(("build log", 2), ("tactic replay", 6))),
            bad=Side(
                place="replays/bad",
                kinds=(("layer information", 5),),
                skipped=(("notes.txt", "not a tactic replay (not JSON)"),),
            ),
            options=Options(top=1),
            unresolved=1,
            complaints=("bad/replay_N3.json: was changed after it was filed",),
        ),
    }


@pytest.fixture(scope="session")
def made() -> Callable[[str], Document]:
    """Return the document of a name."""
    every = documents()
    return every.__getitem__
