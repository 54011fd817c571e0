"""An output of any length is kept in bounded memory; patterns are found wherever they are."""

from __future__ import annotations

import re

import pytest

from polygraphy_debug_ext.trials.capture import Ends, Scan


def test_a_short_output_is_kept_whole() -> None:
    ends = Ends(4)
    assert [ends.feed(chunk) for chunk in (b"ab", b"cdef", b"gh")] == [b"ab", b"cd", b""]
    assert ends.whole
    assert ends.text() == "abcdefgh"


def test_of_a_long_output_the_ends_are_kept_and_the_gap_is_told() -> None:
    ends = Ends(4)
    for number in range(1000):
        ends.feed(b"%04d" % number)
    assert not ends.whole
    assert ends.text() == "0000\n[... 3992 bytes left out ...]\n0999"


def test_bytes_that_are_no_text_are_replaced() -> None:
    ends = Ends()
    ends.feed(b"a\xffb")
    assert ends.text() == "a\N{REPLACEMENT CHARACTER}b"


def found(pattern: str, text: str, *, flags: int = 0, chunk: int = 1000) -> bool:
    scan = Scan([re.compile(pattern, flags)], block=5000)
    data = text.encode()
    for start in range(0, len(data), chunk):
        scan.feed(data[start : start + chunk])
    scan.feed(b"", final=True)
    return scan.matched


FILLER = "line of filler\n" * 40_000


@pytest.mark.parametrize("before", [0, 10, 999, 1000, 4990, 70_000, 300_000])
def test_a_pattern_is_found_anywhere(before: int) -> None:
    assert found("needle in a.haystack", FILLER[:before] + "needle in a\nhaystack" + FILLER, flags=re.DOTALL)


def test_a_pattern_that_is_not_there_is_not_found() -> None:
    assert not found("needle", FILLER)


def test_the_pieces_have_no_beginning_and_no_end_of_their_own() -> None:
    assert not found("^of", FILLER)
    assert not found("filler line$", FILLER.replace("\n", " "))
    assert not found(r"\Aline of filler\Z", FILLER)
    assert found("^line", FILLER)
    assert found("the end$", FILLER + "the end\n")


def test_a_character_cut_in_two_is_whole() -> None:
    assert found("caf\N{LATIN SMALL LETTER E WITH ACUTE}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}", chunk=1)
