"""JUnit XML keeps to the grammar of Ant's task, and fails where a CI job is to fail."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
import xmlschema

from polygraphy_debug_ext.reports import junit
from tests.reports.conftest import answers, document, documents, suspect

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.reports.document import Document

TIME = "2026-12-01T12:00:00"


@pytest.fixture(scope="module")
def schema() -> xmlschema.XMLSchema:
    return xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")


@pytest.mark.parametrize("name", documents())
def test_every_document_keeps_to_the_grammar(
    made: Callable[[str], Document], schema: xmlschema.XMLSchema, name: str
) -> None:
    text = junit.render(made(name), TIME)
    schema.validate(text)
    for suite in ET.fromstring(text):  # noqa: S314 - written by ourselves
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        for kind in ("failure", "error"):
            assert int(suite.attrib[f"{kind}s"]) == len(suite.findall(f"testcase/{kind}"))


def test_the_grammar_refuses_what_is_no_result(schema: xmlschema.XMLSchema) -> None:
    assert not schema.is_valid('<testsuites><testsuite name="x"/></testsuites>')


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("culprit", "failure"),
        ("alike", "failure"),
        ("pair", "failure"),
        ("no_tactic", "failure"),
        ("undecided", "error"),
        ("no_good_build", "error"),
        ("opaque", "error"),
        ("nothing_in_common", "error"),
        ("no_bad_build", None),
    ],
)
def test_the_case_of_the_tactics_has_the_outcome_of_the_verdict(
    made: Callable[[str], Document], name: str, outcome: str | None
) -> None:
    root = ET.fromstring(junit.render(made(name), TIME))  # noqa: S314 - written by ourselves
    case = root.findall("testsuite/testcase")[0]
    assert case.attrib["name"] == "tactics"
    assert [each.tag for each in case] == ([] if outcome is None else [outcome])


def test_only_probable_suspects_are_cases_of_their_own(made: Callable[[str], Document]) -> None:
    root = ET.fromstring(junit.render(made("culprit"), TIME))  # noqa: S314 - written by ourselves
    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert len(names) == 2
    assert names[1].endswith(" at layer conv1 + relu1")


def test_a_thousand_suspects_make_no_thousand_cases() -> None:
    many = tuple(suspect(f"conv{number}", number, (5, 0, 0, 8), probability=0.06) for number in range(1000))
    answer = dataclasses.replace(answers()["undecided"], suspects=many)
    assert junit.render(document(answer), TIME).count("<testcase") == 51
