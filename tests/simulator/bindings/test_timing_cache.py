"""Editable timing caches: every rule of keys, values and entries, and what builds make of what was changed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from tests.simulator.conftest import Made, Models, Workbench

EDITABLE = ["10.13", "11.4"]
INVALID = 2**64 - 1
ABSENT = "0x" + "ab" * 16
FLAGS = ("EDITABLE_TIMING_CACHE", "DISABLE_COMPILATION_CACHE")


@dataclass
class Session:
    """Builds of one network with timing caches."""

    bench: Workbench
    model: onnx.ModelProto
    flags: tuple[str, ...] = FLAGS
    config: Made = field(default=None)

    def cache(self, blob: bytes = b"", *, ignore: bool = False, flags: tuple[str, ...] = ()) -> Made:
        builder, network = self.bench.network(self.model)
        self.builder, self.network = builder, network
        self.config = self.bench.config(builder, *self.flags, *flags)
        cache = self.config.create_timing_cache(blob)
        self.accepted = self.config.set_timing_cache(cache, ignore)
        return cache

    def build(self) -> bytes | None:
        self.bench.lines.clear()
        plan = self.builder.build_serialized_network(self.network, self.config)
        return None if plan is None else bytes(plan)

    def key(self, text: str) -> Made:
        return self.bench.trt.TimingCacheKey.parse(text)

    def value(self, tag: int, time: float) -> Made:
        return self.bench.trt.TimingCacheValue(tag, time)


def tables(bench: Workbench) -> dict[str, list[tuple[str, str]]]:
    """Kernel and hash of all candidates by key, from the log."""
    found: dict[str, list[tuple[str, str]]] = {}
    key = ""
    for line in bench.text("VERBOSE").splitlines():
        if "(key: " in line:
            key = line.partition("(key: ")[2].partition(")")[0]
            found[key] = []
        elif line.count(", ") >= 5 and "0x" in line and line.startswith(" (foreignNode)   "):
            row = line.removeprefix(" (foreignNode) ").split(",")
            found[key].append((row[4].strip(), row[5].strip()))
    return found


@pytest.fixture(params=EDITABLE)
def session(request: pytest.FixtureRequest, workbench: Callable[..., Workbench], models: Models) -> Session:
    return Session(workbench(request.param, noise=0.1), models.attention())


@pytest.mark.parametrize("trt", EDITABLE)
@pytest.mark.parametrize(
    ("text", "reason"),
    [("0x1", "exactly 34"), ("11" * 17, "prefix"), ("0x" + "g" * 32, "invalid content")],
)
def test_a_key_is_0x_and_32_hexadecimal_digits(
    workbench: Callable[..., Workbench], trt: str, text: str, reason: str
) -> None:
    parse = workbench(trt).trt.TimingCacheKey.parse
    assert str(parse("0X" + "AB" * 16)) == "0x" + "ab" * 16
    with pytest.raises(ValueError, match=reason):
        parse(text)


def test_keys_have_no_constructor_and_no_equality(session: Session) -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        session.bench.trt.TimingCacheKey()
    assert session.key(ABSENT) != session.key(ABSENT)


def test_values_hold_64_bits_and_a_short_float(session: Session) -> None:
    value = session.value(INVALID, 0.01)
    assert value.tacticHash == INVALID
    assert value.timingMSec == pytest.approx(0.01)
    assert value.timingMSec != 0.01
    with pytest.raises(TypeError):
        session.value(-1, 1.0)


def test_what_is_absent_cannot_be_updated_and_is_answered_with_the_invalid_value(session: Session) -> None:
    cache = session.cache()
    assert cache.queryKeys() == []
    for time in (1.0, math.nan):
        assert not cache.update(session.key(ABSENT), session.value(1, time))
    answer = cache.query(session.key(ABSENT))
    assert (answer.tacticHash, answer.timingMSec) == (INVALID, -1.0)


def test_valid_values_replace_and_invalid_ones_are_refused(session: Session) -> None:
    cache = session.cache()
    session.build()
    key = cache.queryKeys()[0]
    assert cache.update(key, session.value(0x123, 0.5))
    for tag, time in ((INVALID, 1.0), (1, -1.0)):
        assert not cache.update(key, session.value(tag, time))
    assert (cache.query(key).tacticHash, cache.query(key).timingMSec) == (0x123, 0.5)
    assert cache.update(key, session.value(INVALID, math.nan))
    assert cache.query(key).tacticHash == INVALID


def test_keys_are_stable_and_hashes_have_13_digits(session: Session) -> None:
    texts = []
    for _ in range(2):
        cache = session.cache()
        session.build()
        texts.append([str(key) for key in cache.queryKeys()])
        assert all(len(f"{cache.query(key).tacticHash:x}") == 13 for key in cache.queryKeys())
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 5


def test_a_loaded_cache_repeats_the_build_without_timing(session: Session) -> None:
    first = session.cache()
    wanted = session.bench.tactics(session.build())
    blob = bytes(first.serialize())
    for _ in range(3):
        again = session.cache(blob)
        assert session.bench.tactics(session.build()) == wanted
        assert "Autotuning op" not in session.bench.text()
        assert bytes(again.serialize()) == blob


def test_every_candidate_of_every_op_can_be_forced(session: Session) -> None:
    blob = bytes(session.cache().serialize())
    cache = session.cache(blob)
    session.build()
    offered, blob = tables(session.bench), bytes(cache.serialize())
    assert len(offered) == 5
    for key, rows in offered.items():
        for kernel, tag in rows:
            cache = session.cache(blob)
            assert cache.update(session.key(key), session.value(int(tag, 16), 1.0))
            plan = session.build()
            kernels = [layer["TacticName"] for layer in session.bench.information(plan)["Layers"]]
            assert kernel in kernels
            assert cache.query(session.key(key)).tacticHash == int(tag, 16)


def test_a_deleted_entry_frees_its_op_alone(session: Session) -> None:
    cache = session.cache()
    session.build()
    blob = bytes(cache.serialize())
    cache = session.cache(blob)
    key = cache.queryKeys()[3]
    assert cache.update(key, session.value(1, math.nan))
    assert session.build() is not None
    assert list(tables(session.bench)) == [str(key)]
    assert cache.query(key).tacticHash != INVALID


def test_a_hash_that_the_op_cannot_use_fails_the_next_build_and_names_the_op(session: Session) -> None:
    cache = session.cache()
    session.build()
    cache = session.cache(bytes(cache.serialize()))
    key = cache.queryKeys()[0]
    assert cache.update(key, session.value(0x1234567890ABC, 1.0))
    assert session.build() is None
    wanted = rf"0x1234567890abc in the timing cache cannot be used for op \w+ \(key: {key}\)"
    assert re.search(wanted, session.bench.text("ERROR"))


def test_a_missing_op_can_be_an_error(session: Session) -> None:
    cache = session.cache()
    session.build()
    cache = session.cache(bytes(cache.serialize()), flags=("ERROR_ON_TIMING_CACHE_MISS",))
    assert session.build() is not None
    key = cache.queryKeys()[0]
    assert cache.update(key, session.value(1, math.nan))
    assert session.build() is None
    assert re.search(rf"op \w+ \(key: {key}\) is missing in the timing cache", session.bench.text("ERROR"))


def test_without_the_flag_the_cache_is_opaque_until_it_is_loaded_with_it(session: Session) -> None:
    session.flags = ()
    opaque = session.cache()
    session.build()
    with pytest.raises(RuntimeError, match="EDITABLE_TIMING_CACHE"):
        opaque.queryKeys()
    session.flags = FLAGS
    assert len(session.cache(bytes(opaque.serialize())).queryKeys()) == 5


def test_a_cache_of_another_device_is_used_only_if_that_is_asked_for(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    there = Session(workbench("10.13", gpu="NVIDIA L4"), models.attention())
    first = there.cache()
    there.build()
    blob = bytes(first.serialize())
    here = Session(workbench("10.13"), models.attention())
    cache = here.cache(blob)
    assert not here.accepted
    assert "The timing cache will not be used!" in here.bench.text("WARNING")
    assert here.build() is not None
    assert "Local timing cache in use" in here.bench.text()
    assert "Autotuning op" in here.bench.text()
    assert here.config.get_timing_cache() is None
    assert not here.config.create_timing_cache(b"").combine(cache, False)
    here.cache(blob, ignore=True)
    assert here.accepted
    here.build()
    assert "Autotuning op" not in here.bench.text()


def test_combining_skips_what_is_there_and_refuses_other_versions(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    session = Session(workbench("10.13"), models.attention())
    full = session.cache()
    session.build()
    part = session.config.create_timing_cache(bytes(full.serialize()))
    key, other = full.queryKeys()[:2]
    assert part.update(key, session.value(0x42, 1.0))
    assert part.update(other, session.value(1, math.nan))
    assert part.combine(full, False)
    assert part.query(key).tacticHash == 0x42
    assert part.query(other).tacticHash == full.query(other).tacticHash
    newer = Session(workbench("11.4"), models.attention())
    foreign = newer.cache()
    newer.build()
    assert not part.combine(foreign, True)


def test_cask_layers_are_in_the_cache_but_have_no_keys(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    session = Session(workbench("10.13", noise=0.3), models.conv_net(), ("FP16", *FLAGS))
    cache = session.cache()
    wanted = session.bench.tactics(session.build())
    # The fully connected layer, in two combinations of formats.
    assert len(cache.queryKeys()) == 2
    blob = bytes(cache.serialize())
    for _ in range(4):
        session.cache(blob)
        assert session.bench.tactics(session.build()) == wanted
    assert "conv1 + relu1 [" in session.bench.text()
    assert "got cached result" in session.bench.text()


def test_saving_says_what_was_saved(session: Session) -> None:
    cache = session.cache()
    session.build()
    cache.serialize()
    text = session.bench.text()
    assert "Serializing timing cache. UUID = GPU-" in text
    assert "Serialized 5 timing cache entries" in text
    assert "Serialized 0 bytes of compilation cache." in text


def test_compiled_code_makes_equal_caches_different(session: Session) -> None:
    session.flags = FLAGS[:1]
    cache = session.cache()
    session.build()
    blob = bytes(cache.serialize())
    cache = session.cache(blob)
    session.build()
    assert bytes(cache.serialize()) != blob
