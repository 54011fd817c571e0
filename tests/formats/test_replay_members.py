"""Layers that were seen before are found by their bytes; whatever is unusual is left to the reader of whole files."""

from __future__ import annotations

import json

import pytest

from polygraphy_debug_ext.formats.replay_members import Members

TENSOR = {
    "dtype": "DataType.HALF",
    "strides": [64, 1],
    "vectorized_dim": -1,
    "components_per_element": 1,
    "polygraphy_class": "TensorInfo",
}


def layer(tactic: int, **more: object) -> dict[str, object]:
    return {
        "implementation": 7,
        "tactic": tactic,
        "inputs": [TENSOR],
        "outputs": [TENSOR, TENSOR],
        **more,
        "polygraphy_class": "Algorithm",
    }


def text(**layers: dict[str, object]) -> bytes:
    return indented(None, layers)


def indented(indent: str | None, layers: dict[str, dict[str, object]]) -> bytes:
    document = {"replay": layers, "polygraphy_class": "TacticReplayData"}
    return json.dumps(document, indent=indent).encode()


def test_the_layers_end_where_the_rest_begins() -> None:
    data = indented("    ", {"a": layer(1), "b": layer(2)})
    scanned = Members().scan(data)
    assert scanned is not None
    assert list(scanned.layers) == ["a", "b"]
    assert data[scanned.end :].strip().startswith(b',\n    "polygraphy_class"')


def test_equal_layers_are_one_object_however_they_are_indented() -> None:
    members = Members()
    files = [indented(indent, {"a": layer(1), "b": layer(1)}) for indent in (None, "", "    ", "\t")]
    scanned = [members.scan(data) for data in files]
    assert len({id(tactic) for each in scanned if each for tactic in each.layers.values()}) == 1
    assert all(scanned)


def test_a_known_layer_is_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members()
    members.scan(text(a=layer(1), b=layer(2)))
    members.scan(text(a=layer(3), b=layer(4)))
    monkeypatch.setattr(members, "_learn", lambda *_: pytest.fail("it was known"))
    scanned = members.scan(text(a=layer(3), b=layer(2)))
    assert scanned is not None
    assert [tactic.tactic for tactic in scanned.layers.values()] == [3, 2]


def test_layers_that_differ_in_their_times_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members()
    first = members.scan(text(a=layer(1, kernel="k", time_ms=0.25, cache_key=None)))
    monkeypatch.setattr(members, "_learn", lambda *_: pytest.fail("it was known"))
    for time in (1.5e-05, 12, -0.0, 1e22):
        second = members.scan(text(a=layer(1, kernel="k", time_ms=time, cache_key=None)))
        assert first is not None
        assert second is not None
        assert second.layers["a"] is first.layers["a"]
    assert first is not None
    assert first.layers["a"].time_ms is None


def test_a_layer_without_a_time_of_its_own_is_compared_as_a_whole() -> None:
    members = Members()
    sizes = []
    for time in (0.25, 0.5, 0.25):
        assert members.scan(text(a=layer(1, time_ms=None, other={"time_ms": time}))) is not None
        sizes.append(members.size)
    assert sizes[0] < sizes[1] == sizes[2]


@pytest.mark.parametrize("time", ["NaN", "01", "1.", "1e999", "--1", "1.5.5", "1e", "0x1", '"1"'])
def test_a_time_that_is_no_number_is_not_passed_over(time: str) -> None:
    members = Members()
    known = text(a=layer(1, time_ms=0.25))
    assert members.scan(known) is not None
    assert members.scan(known.replace(b"0.25", time.encode())) is None


def test_names_with_escapes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    members = Members()
    name = 'a "quoted" \u00e9 \\ \x1f'
    for _ in range(2):
        scanned = members.scan(text(**{name: layer(1)}))
        assert scanned is not None
        assert list(scanned.layers) == [name]
        monkeypatch.setattr(members, "_learn", lambda *_: pytest.fail("it was known"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b'{"replay": {}}',
        b'{"polygraphy_class": "TacticReplayData", "replay": {"a": {}}}',
        text(a=layer(1))[:-60],
        text(a=layer(1)).replace(b'"Algorithm"}}', b'"Algorithm"},}'),
        text(a=layer(1), b=layer(1)).replace(b'"b"', b'"a"'),
        text(a=layer(1), b=layer(1)).replace(b', "b"', b' "b"'),
        text(a=layer(1), b=layer(1)).replace(b', "b"', b',, "b"'),
        text(a=layer(2**64)),
    ],
)
def test_what_is_unusual_or_wrong_is_left_alone(data: bytes) -> None:
    members = Members()
    members.scan(text(a=layer(1), b=layer(1)))
    assert members.scan(data) is None


def test_what_was_learned_is_forgotten_before_it_fills_the_memory() -> None:
    members = Members(limit=10_000)
    for tactic in range(200):
        scanned = members.scan(text(a=layer(tactic, kernel="k" * 500)))
        assert scanned is not None
        assert scanned.layers["a"].tactic == tactic
        assert members.size < 12_000


def test_files_scanned_together_differ_in_any_way() -> None:
    files = [
        text(a=layer(1), b=layer(2)),
        text(a=layer(1), b=layer(3)),
        text(a=layer(1), b=layer(2), c=layer(4)),
        text(a=layer(1)),
        text(b=layer(2), a=layer(1)),
        text(a=layer(1), b=layer(2))[:-70],
        b"no replay",
        indented("  ", {"a": layer(1), "b": layer(2)}),
        text(a=layer(1, time_ms=0.5), b=layer(2, time_ms=0.25)),
        text(a=layer(1), b=layer(1), c=layer(1)).replace(b'"c"', b'"a"'),
    ]
    for first in range(len(files)):
        turned = files[first:] + files[:first]
        members = Members()
        # Twice: what was learned the first time is known the second time.
        for _ in range(2):
            found = members.scan_all(turned)
            assert found == [Members().scan(data) for data in turned]
            assert sum(each is None for each in found) == 3
    assert Members().scan_all([]) == []


def test_files_scanned_together_share_their_tactics() -> None:
    one, two = Members().scan_all([text(a=layer(1)), text(a=layer(1))])
    assert one is not None
    assert two is not None
    assert one.layers["a"] is two.layers["a"]
