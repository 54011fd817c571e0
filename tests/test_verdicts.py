"""What diff-tactics concludes from inputs from practice, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from polygraphy_debug_ext.cli.comparison import Evidence, answer
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.model.answer import Conclusion, Rank
from polygraphy_debug_ext.reports import text
from polygraphy_debug_ext.reports.document import (
    STATUS_CANNOT_TELL,
    STATUS_INCONCLUSIVE,
    STATUS_NO_FAILURE,
    Document,
    Options,
)
from polygraphy_debug_ext.reports.lines import percent
from polygraphy_debug_ext.reports.verdict import advice, verdict

if TYPE_CHECKING:
    from polygraphy_debug_ext.model.answer import Answer, Suspect

CASES = Path(__file__).parent / "data" / "cases"


def expected(case: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((CASES / case / "expected.json").read_text())
    return answers


def compared(good: Path, bad: Path) -> Document:
    """The answer for two places, either of which may hold nothing."""
    evidence = Evidence()
    sides = evidence.load(good, Verdict.GOOD), evidence.load(bad, Verdict.BAD)
    options = Options()
    groups = tuple(answer(group, options) for group in evidence.environments.groups())
    return Document(good=sides[0], bad=sides[1], groups=groups, options=options)


def only(document: Document) -> Answer:
    (group,) = document.groups
    return group.answer


def as_expected(suspect: Suspect) -> dict[str, object]:
    return {
        "layer": suspect.layers[0],
        "implementation": suspect.tactic.implementation,
        "tactic": suspect.tactic.tactic,
        "tactic_hex": suspect.tactic.hex,
        "bad_builds": suspect.counts.bad_with,
        "good_builds": suspect.counts.good_with,
        "rank": suspect.rank.value,
    }


def lines(document: Document) -> str:
    return "\n".join(line.text for line in text.render(document))


def test_case_11_five_builds_are_not_enough_and_the_likeliest_is_named() -> None:
    root = CASES / "11-replay-new-format-good-bad"
    wanted = expected(root.name)
    document = compared(root / "replays" / "good", root / "replays" / "bad")
    found = only(document)
    assert (found.good_builds, found.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert [as_expected(each) for each in document.groups[0].stock] == wanted["suspects"]
    assert len(document.good.skipped) + len(document.bad.skipped) == wanted["skipped_files"]
    assert found.conclusion is Conclusion.UNDECIDED
    assert verdict(found).startswith(
        "Not enough evidence: the likeliest suspect, tactic 0xea24cb28a894cea9 at layer node_conv2d_1 + node_relu_1, has a "
        f"probability of {percent(found.suspects[0].probability)}, and 95% is needed; "
    )
    assert found.suspects[0].probability == max(each.probability for each in found.suspects) > 0.5
    assert any(layer in sentence for layer in wanted["opaque_layers"] for sentence in advice(found))
    assert (document.status, document.plain_status) == (STATUS_CANNOT_TELL, 0)


def test_case_12_identical_replays_name_the_layer_that_hides_the_choice() -> None:
    root = CASES / "12-replay-identical-myelin-hides-it"
    document = compared(root / "replays" / "good", root / "replays" / "bad")
    (layer,) = only(document).opaque_layers
    assert layer in expected(root.name)["replays"]["verdict"]
    assert verdict(only(document)) == (
        f"Cannot tell: good and bad builds have the same tactic at every layer, but {layer} is a Myelin graph, whose inner "
        "choices these records cannot show."
    )
    told = lines(document)
    assert "layer information" in told
    assert "Try generating more" not in told
    assert (document.status, document.plain_status) == (STATUS_CANNOT_TELL, STATUS_INCONCLUSIVE)


def test_case_12_layer_information_names_the_kernel_that_the_replays_hide() -> None:
    root = CASES / "12-replay-identical-myelin-hides-it"
    (wanted,) = expected(root.name)["layerinfo"]["suspects"]
    document = compared(root / "layerinfo" / "good", root / "layerinfo" / "bad")
    found = only(document)
    # Four builds may be too few for a culprit; the likeliest is named in either case.
    assert found.conclusion in {Conclusion.CULPRIT, Conclusion.UNDECIDED}
    assert f"kernel {wanted['kernel']} at layer {wanted['onnx_layers'][0]}" in verdict(found)
    assert percent(found.suspects[0].probability) in verdict(found)
    assert found.suspects[0].probability > 0.8
    assert found.suspects[0].rank is Rank.STRONG
    assert [tactic.kernel for tactic in found.suspects[0].alternatives] == wanted["good_kernels"]
    assert document.plain_status == 0


def test_case_14_the_suspect_is_in_one_profile_only() -> None:
    root = CASES / "14-two-profiles-dynamic-shapes"
    (wanted,) = expected(root.name)["suspects"]
    document = compared(root / "good", root / "bad")
    assert (document.good.kinds, document.bad.kinds) == ((("build log", 2),), (("build log", 1),))
    (suspect,) = document.groups[0].stock
    assert suspect.layers == (wanted["layer"],)
    assert suspect.tactic.hex == wanted["tactic"]
    assert suspect.rank.value == wanted["rank"]
    assert [tactic.hex for tactic in suspect.alternatives] == wanted["good_tactics"]
    assert f"{wanted['tactic']}" in verdict(only(document))
    assert f" at layer {wanted['layer']}" in verdict(only(document))


def test_case_14_a_log_of_two_builds_is_one_file_of_evidence() -> None:
    root = CASES / "14-two-profiles-dynamic-shapes"
    evidence = Evidence()
    side = evidence.load(root / "two_builds_in_one.log", Verdict.GOOD)
    assert side.kinds == (("build log", 2),)
    assert evidence.used == [root / "two_builds_in_one.log"]


def test_case_19_all_bad_lists_no_layer_and_says_what_is_likelier() -> None:
    root = CASES / "19-always-bad-not-flaky"
    wanted = expected(root.name)
    document = compared(root / "replays" / "good", root / "replays" / "bad")
    found = only(document)
    assert (found.good_builds, found.bad_builds) == (wanted["good_files"], wanted["bad_files"])
    assert verdict(found) == (
        "Cannot tell: there is no good build, so that every tactic of every layer would be suspect; 3 of 3 builds failed, with 2 "
        "different sets of tactics, so that a fault that is always there (fusion, model, precision, the check itself) is likelier "
        "than a tactic."
    )
    assert not any(layer in lines(document) for layer in wanted["common_to_all_bad"])
    assert list(document.groups[0].stock) == wanted["suspects"]
    assert (document.status, document.plain_status) == (STATUS_CANNOT_TELL, STATUS_INCONCLUSIVE)


def test_case_19_mirrored_bounds_the_failure_rate(tmp_path: Path) -> None:
    document = compared(CASES / "19-always-bad-not-flaky" / "replays" / "bad", tmp_path / "none")
    assert verdict(only(document)) == (
        "No failure was seen in 3 builds: the failure rate is below 63%, with 95% confidence."
    )
    assert (document.status, document.plain_status) == (STATUS_NO_FAILURE, 0)


@pytest.mark.parametrize("version", ["0.29", "0.33", "0.43", "0.47"])
def test_case_10_two_builds_name_a_likeliest_suspect(version: str) -> None:
    root = CASES / "10-replay-old-formats"
    directory = f"polygraphy-{version}"
    document = compared(root / directory / "good", root / directory / "bad")
    wanted = expected(root.name)["suspects_per_dir"][directory]
    found = [as_expected(each) for each in document.groups[0].stock]
    assert [{key: each[key] for key in wanted[0]} for each in found] == wanted
    assert f" at layer {wanted[0]['layer']}, " in verdict(only(document))


def test_case_10_mixed_formats_say_what_was_not_compared(tmp_path: Path) -> None:
    for side in ("good", "bad"):
        for directory in (CASES / "10-replay-old-formats").glob(f"*/{side}"):
            place = tmp_path / side / directory.parent.name
            place.mkdir(parents=True)
            for path in directory.iterdir():
                (place / path.name).write_bytes(path.read_bytes())
    document = compared(tmp_path / "good", tmp_path / "bad")
    (suspect,) = document.groups[0].stock
    assert (suspect.layers, suspect.counts.bad_with) == (("Conv_0 + Relu_1",), 4)
    told = lines(document)
    assert "I/O layout of tensors" in told
    assert "0.29 (2 files)" in told
