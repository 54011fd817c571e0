"""The JSON document keeps to its schema, and says the same as the records it was made from."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from polygraphy_debug_ext import reports
from polygraphy_debug_ext.reports import json_document
from tests.reports.conftest import HOSTILE, documents

if TYPE_CHECKING:
    from collections.abc import Callable

    from polygraphy_debug_ext.reports.document import Document

SCHEMA = json.loads((resources.files(reports) / "diff-tactics.schema.json").read_text())


def strict(schema: object) -> Any:  # noqa: ANN401 - JSON
    """The schema, but with no room for fields that it does not describe."""
    if isinstance(schema, dict):
        closed = {key: strict(value) for key, value in schema.items()}
        if closed.get("additionalProperties") is True:
            closed["additionalProperties"] = False
        return closed
    return [strict(each) for each in schema] if isinstance(schema, list) else schema


def test_the_schema_is_one_and_describes_every_field() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"]["const"] == json_document.SCHEMA
    assert SCHEMA["properties"]["version"]["const"] == json_document.VERSION
    for fields in (SCHEMA["properties"], *(each["properties"] for each in SCHEMA["$defs"].values())):
        for name, field in fields.items():
            assert {"description", "const", "$ref"} & set(field), name


@pytest.mark.parametrize("name", documents())
def test_every_document_keeps_to_the_schema(made: Callable[[str], Document], name: str) -> None:
    jsonschema.Draft202012Validator(strict(SCHEMA)).validate(json.loads(json_document.render(made(name))))


def test_infinite_scores_and_names_survive(made: Callable[[str], Document]) -> None:
    (environment, _) = json.loads(json_document.render(made("hostile")))["environments"]
    (suspect,) = environment["suspects"]
    assert suspect["layers"] == [HOSTILE]
    assert suspect["kernel"] == HOSTILE
    assert suspect["dstar"] == "inf"
    assert environment["environment"] == {"gpu": HOSTILE}


def test_top_cuts_the_suspects_and_says_how_many_there_were(made: Callable[[str], Document]) -> None:
    content = json.loads(json_document.render(made("mixture")))
    assert len(content["environments"][0]["suspects"]) == content["options"]["top"] == 1
    assert content["environments"][0]["suspects_found"] == 3
