"""The page as text: what is in it, and that names from files can be nothing else than text. What it does is in tests/browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygraphy_debug_ext.model import Tactic
from polygraphy_debug_ext.model.answer import Answer, Conclusion, Counts, Rank, Suspect, View
from polygraphy_debug_ext.reports.html_page import (
    BEGINNING,
    SHOWN,
    Build,
    Comparison,
    Link,
    Page,
    RunRow,
    TrialRow,
    duration,
    json_for_script,
    prose,
    render,
)

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'<!--"


class Reading(HTMLParser):
    """Tags, and the text of scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.raw: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if ("http-equiv", "Content-Security-Policy") in attrs:
            self.policy = dict(attrs)["content"] or ""

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in {"script", "style"} and data.strip():
            self.raw.append(data)


def suspect(number: int, name: str = "kernel") -> Suspect:
    return Suspect(
        view=View.LAYER,
        layers=(f"{name} layer",),
        tactic=Tactic(implementation=1, tactic=number, kernel=name),
        counts=Counts(bad_with=3, good_with=0, bad_without=0, good_without=4),
        probability=1 / (number + 1),
        group=number,
        rank=Rank.STRONG,
        ochiai=1.0,
        dstar=float("inf"),
    )


def page(text: str = "plain", suspects: int = 2) -> Page:
    """A page where everything that can be a name is `text`."""
    found = tuple(suspect(each, text) for each in range(suspects))
    answer = Answer(
        conclusion=Conclusion.CULPRIT,
        good_builds=4,
        bad_builds=3,
        unresolved_builds=1,
        probability=0.987,
        no_tactic=0.01,
        named=found[:1],
        suspects=found,
    )
    build = Build(label="N0", name=text, bad=True, url="./bad/x.json", trial="trial-0-0")
    trial = TrialRow(
        id="trial-0-0",
        label="N0",
        started=text,
        verdict="bad",
        reason=text,
        build_seconds=1.0,
        check_seconds=(2.0, 3.0),
        check_verdicts=("good", "bad"),
        site=text,
        error=text,
        logs=(Link(text=text, url="./logs/x.log"),),
    )
    run = RunRow(
        stamp=text, started=text, command=text, ended=text, environment=((text, text),), trials=(trial,)
    )
    data = {"texts": [text], "layers": []}
    comparison = Comparison(heading=text, answer=answer, sentences=(text, text), builds=(build,), map=data)
    return Page(title=text, directory=text, made=text, comparisons=(comparison,), runs=(run,), notes=(text,))


def read(data: bytes) -> Reading:
    reading = Reading()
    reading.feed(data.decode())
    return reading


def test_names_add_no_element_and_no_attribute() -> None:
    plain, evil = read(render(page())), read(render(page(EVIL)))
    assert evil.tags == plain.tags
    assert [name for name, _ in evil.attributes] == [name for name, _ in plain.attributes]
    assert json.loads(evil.raw[1])[0]["texts"] == [EVIL]


def test_the_policy_names_the_only_script_and_the_only_style() -> None:
    reading = read(render(page(EVIL)))
    style, data, script = reading.raw
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    assert reading.policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert data.startswith("[{")
    assert reading.tags.count("script") == 2


def test_nothing_is_loaded_from_anywhere() -> None:
    text = render(page()).decode()
    assert "http:" not in text
    assert "https:" not in text
    loading = [value for name, value in read(text.encode()).attributes if name in {"src", "action", "srcset"}]
    assert loading == []


def test_the_page_can_be_told_from_other_files() -> None:
    assert render(page()).startswith(BEGINNING.encode())


def test_suspects_beyond_the_limit_are_counted() -> None:
    text = render(page(suspects=SHOWN + 7)).decode()
    assert text.count('class="name"') == SHOWN
    assert "7 more, each less likely than these" in text
    assert "more, each less likely" not in render(page(suspects=SHOWN)).decode()


def test_a_trial_says_how_long_it_took_and_why_it_is_what_it_is() -> None:
    text = re.sub(r"<[^>]+>", "", render(page("why & where")).decode())
    assert "build 1.00 s, check 5.00 s" in text
    assert "at why &amp; where" in text
    assert "repetitions: good, bad" in text
    assert "1 trial, 1 bad;" in text


def test_text_that_no_encoding_has_is_written_all_the_same() -> None:
    assert b"a?b" in render(page("a\udc80b"))


@given(st.recursive(st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_json_for_a_script_ends_no_element_and_says_the_same(value: object) -> None:
    text = str(json_for_script(value))
    assert not {"<", ">", "&"} & set(text)
    assert json.loads(text) == value


def test_code_in_a_sentence_is_set_as_code() -> None:
    assert prose("run `a <b>` & wait") == "run <code>a &lt;b&gt;</code> &amp; wait"
    assert prose("an odd ` <") == "an odd ` &lt;"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (9.994, "9.99 s"),
        (59.94, "59.9 s"),
        (61, "1 min 01 s"),
        (3599.9, "1 h 00 min"),
        (7260, "2 h 01 min"),
    ],
)
def test_times_are_in_a_unit_that_suits_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text
