"""Replay files: every dialect is read, what we write is read by us and by Polygraphy, and damage is named."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Field, Source, Tactic, TensorInfo, Witness

if TYPE_CHECKING:
    from tests.conftest import MakeAssignment

DATA = Path(__file__).parent.parent / "data" / "cases"
OLD = DATA / "10-replay-old-formats"
NEW = DATA / "11-replay-new-format-good-bad" / "replays" / "good" / "replay_08-12-26_10-00-11_N0.json"
EXPECTED_OLD: dict[str, Any] = json.loads((OLD / "expected.json").read_text())["files"]


@pytest.mark.parametrize("name", EXPECTED_OLD)
def test_every_dialect_is_read(name: str) -> None:
    expected = EXPECTED_OLD[name]
    read = replay.read(OLD / name)
    assert read.variant == expected["format"]
    assert {layer: tactic.tactic for layer, tactic in read.layers.items()} == expected["tactics"]
    assert list(read.layers) == list(expected["tactics"])


@pytest.mark.parametrize(
    ("variant", "missing"),
    [
        ("0.29", {Field.STRIDES, Field.VECTORIZED_DIM, Field.COMPONENTS}),
        ("0.33", {Field.STRIDES, Field.VECTORIZED_DIM, Field.COMPONENTS}),
        ("0.43", {Field.VECTORIZED_DIM, Field.COMPONENTS}),
        ("0.47", set()),
    ],
)
def test_a_dialect_says_what_it_does_not_record(variant: str, missing: set[Field]) -> None:
    read = replay.read(OLD / f"polygraphy-{variant}" / "good" / "replay_good_0.json")
    assert set(Field) - read.fields == missing
    info = read.layers["Conv_0 + Relu_1"].outputs[0]
    assert {field for field in Field if getattr(info, field.value) is None} == missing
    assert (info.dtype, info.tensor_format) == ("HALF", "CHW16")


def test_the_new_dialect_has_no_tensor_format() -> None:
    read = replay.read(NEW)
    assert read.variant == "0.49"
    assert read.source is Source.REPLAY
    assert set(Field) - read.fields == {Field.TENSOR_FORMAT}
    assert read.layers["node_conv2d + node_relu"].inputs == (
        TensorInfo(dtype="FLOAT", strides=(3072, 1024, 32, 1), vectorized_dim=-1, components_per_element=1),
    )


def test_what_is_written_is_read_back_whole(tmp_path: Path) -> None:
    info = TensorInfo(dtype="HALF", strides=(64, 1), vectorized_dim=-1, components_per_element=1)
    written = Assignment(
        layers={
            "b, with -> arrow": Tactic(
                implementation=0x80000009, tactic=-5, inputs=(info,), outputs=(info, info)
            ),
            "a": Tactic(
                implementation=0x80000028, tactic=28, kernel="sm80_x", time_ms=0.25, cache_key="0x" + 32 * "1"
            ),
        },
        source=Source.SELECTOR,
        metadata={"tensorrt": "10.13.3.9"},
    )
    replay.write(tmp_path / "replay.json", written)
    read = replay.read(tmp_path / "replay.json")
    assert read.layers == written.layers
    assert list(read.layers) == ["b, with -> arrow", "a"]
    assert read.source is Source.SELECTOR
    assert read.metadata == {"tensorrt": "10.13.3.9"}


def test_what_the_timing_cache_source_records_is_read_back_whole(tmp_path: Path) -> None:
    layers = {
        "fc": Tactic(
            implementation=0x80000023,
            tactic=0x665DED9ABBF88,
            cache_key="0x" + 32 * "2",
            witnesses=frozenset(Witness),
        ),
        "kgen": Tactic(
            implementation=None, tactic=None, kernel="__myl_Add_0x1", witnesses=frozenset({Witness.ENGINE})
        ),
        "conv": Tactic(implementation=None, tactic=5, kernel="sm80_x", witnesses=frozenset({Witness.ENGINE})),
    }
    written = Assignment(layers=layers, source=Source.TIMING_CACHE, timing_cache=bytes(range(256)) * 10)
    replay.write(tmp_path / "replay.json", written)
    read = replay.read(tmp_path / "replay.json")
    assert read.layers == layers
    assert read.timing_cache == written.timing_cache
    assert read.source is Source.TIMING_CACHE


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        ('"eJw"', "timing_cache: "),
        ('"AAAA"', r"timing_cache: damaged"),
        (json.dumps(base64.b64encode(zlib.compress(b"x" * 100)[:-6]).decode()), "timing_cache: truncated"),
        (
            json.dumps(base64.b64encode(zlib.compress(b"x" * 5000)).decode()),
            "timing_cache: more than the limit of 4096",
        ),
    ],
)
def test_a_damaged_timing_cache_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: str, message: str
) -> None:
    monkeypatch.setattr(replay, "TIMING_CACHE_LIMIT", 4096)
    path = tmp_path / "replay.json"
    path.write_text(f'{{"replay": {{}}, "timing_cache": {cache}, "polygraphy_class": "TacticReplayData"}}')
    with pytest.raises(FormatError, match=message):
        replay.read(path)


def test_writing_over_a_file_leaves_nothing_beside_it(tmp_path: Path, assignment: MakeAssignment) -> None:
    for number in (1, 2):
        replay.write(tmp_path / "replay.json", assignment(conv=number))
    assert [path.name for path in tmp_path.iterdir()] == ["replay.json"]
    assert replay.read(tmp_path / "replay.json").layers == assignment(conv=2).layers


@pytest.mark.parametrize("length", [*range(1, 60), 500, 3000, 6618])
def test_a_truncated_replay_is_an_error_that_says_where_it_ends(tmp_path: Path, length: int) -> None:
    path = tmp_path / "replay.json"
    path.write_bytes(NEW.read_bytes()[:length])
    with pytest.raises(FormatError, match=r"truncated tactic replay \(line \d+, column \d+") as caught:
        replay.read(path)
    assert not isinstance(caught.value, NotThisFormatError)
    assert str(path) in caught.value.problem


def layer_with(**changes: object) -> bytes:
    layer = {
        "implementation": 1,
        "tactic": 2,
        "inputs": [],
        "outputs": [],
        "polygraphy_class": "Algorithm",
        **changes,
    }
    document = {"replay": {"conv1": layer}, "polygraphy_class": "TacticReplayData"}
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (layer_with(tactic="x"), r"layer 'conv1': tactic: Expected 'int', got 'str'"),
        (layer_with(tactic=2**64), r"layer 'conv1': tactic 18446744073709551616 is out of range"),
        (layer_with(tactic=-(2**63) - 1), "out of range"),
        (
            layer_with(cache_key="0x12"),
            r"layer 'conv1': cache_key '0x12' is not 0x and 32 hexadecimal digits",
        ),
        (layer_with(implementation=1.5), r"layer 'conv1': implementation: Expected 'int', got 'float'"),
        (layer_with(implementation=None), "implementation: Expected 'int', got 'null'"),
        (
            layer_with(inputs=[["TensorFormat.LINEAR"]]),
            r"layer 'conv1': a tensor is \['TensorFormat.LINEAR'\]",
        ),
        (
            layer_with(inputs=[{"dtype": 3}]),
            r"layer 'conv1': inputs\[0\]\.dtype: Expected 'str', got 'int'",
        ),
        (layer_with(inputs=[{}]), r"inputs\[0\]: Object missing required field 'dtype'"),
        (
            layer_with(
                inputs=[["TensorFormat.LINEAR", "DataType.HALF"], {"dtype": "DataType.HALF", "strides": [1]}]
            ),
            "dialects of several Polygraphy versions",
        ),
        (b'{"replay": [], "polygraphy_class": "TacticReplayData"}', "replay: Expected 'object', got 'array'"),
        (b'{"replay": {"conv1" 1}}', r"damaged tactic replay \(line 1, column 21: expected ':'\)"),
        (b'{"replay": {"conv1": ' + b"[" * 2_000_000, "nested too deeply"),
        (b'{"replay": {"conv\xff": 1}}', "damaged tactic replay"),
        (b"", "empty"),
        (
            layer_with().replace(
                b'"replay": {',
                b'"replay": {"conv1": {"implementation": 1, "tactic": 3, "inputs": [], "outputs": []}, ',
            ),
            "layer 'conv1' occurs twice",
        ),
        (
            layer_with().replace(
                b'"polygraphy_class": "TacticReplayData"',
                b'"replay": {}, "polygraphy_class": "TacticReplayData"',
            ),
            "'replay' occurs twice",
        ),
        (
            b'{"replay": {}, "metadata": {"format_version": 99}, "polygraphy_class": "TacticReplayData"}',
            r"metadata.format_version is 99, but this version reads up to 1",
        ),
        (
            b'{"replay": {}, "metadata": {"format_version": 1, "source": "x"}, "polygraphy_class": "TacticReplayData"}',
            "metadata.source 'x' is unknown",
        ),
        ('{"replay": {}}'.encode("utf-16"), "UTF-16 text, but UTF-8 is expected"),
    ],
)
def test_damage_is_named_with_file_layer_and_field(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "replay.json"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=message) as caught:
        replay.read(path)
    assert not isinstance(caught.value, NotThisFormatError)
    assert str(path) in caught.value.problem
    assert caught.value.remedy


@pytest.mark.parametrize(
    "data",
    [
        b"hello",
        b'{"Layers": ["a"',
        b'{"Layers": ["a"]}',
        b"[]",
        b'{"replay": {}}',
        b'{"replay": {}, "polygraphy_class": "TensorInfo"}',
        b"\x7fELF\x02\x01",
        b"\x00" * 100,
    ],
)
def test_a_file_of_another_kind_is_told_from_a_damaged_replay(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(data)
    with pytest.raises(NotThisFormatError, match="not a tactic replay"):
        replay.read(path)


def test_a_byte_order_mark_is_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "replay.json"
    path.write_bytes(b"\xef\xbb\xbf" + NEW.read_bytes())
    assert replay.read(path).layers == replay.read(NEW).layers
