from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.simulator import personality

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Models, Workbench


def timed(
    bench: Workbench, models: Models, blob: bytes | None, *flags: str
) -> tuple[dict[str, str] | None, bytes]:
    """Build with a timing cache: the tactics, and the cache afterwards."""
    builder, network = bench.network(models.conv_net())
    compiled = "DISABLE_COMPILATION_CACHE"
    fixed = [compiled] if hasattr(bench.trt.BuilderFlag, compiled) else []
    config = bench.config(builder, "FP16", *fixed, *flags)
    if blob is not None:
        assert config.set_timing_cache(config.create_timing_cache(blob), False)
    plan = builder.build_serialized_network(network, config)
    cache = config.get_timing_cache()
    return (None if plan is None else bench.tactics(bytes(plan))), (
        b"" if cache is None else bytes(cache.serialize())
    )


def test_a_build_with_a_full_cache_repeats(workbench: Callable[..., Workbench], models: Models) -> None:
    bench = workbench(noise=0.3)
    first, blob = timed(bench, models, b"")
    for _ in range(3):
        again, kept = timed(bench, models, blob)
        assert again == first
        assert kept == blob
    assert "got cached result" in bench.text()


def test_a_disabled_cache_is_neither_read_nor_written(
    workbench: Callable[..., Workbench], models: Models
) -> None:
    bench = workbench(noise=0.3)
    _, empty = timed(bench, models, b"", "DISABLE_TIMING_CACHE")
    assert bytes(bench.config(bench.trt.Builder(bench.logger)).create_timing_cache(b"").serialize()) == empty
    assert "got cached result" not in bench.text()


@pytest.mark.parametrize("blob", [b"garbage", b"TRTSIM-TIMING-CACHE\n", b"TRTSIM-TIMING-CACHE\nnot json\n{}"])
def test_garbage_is_replaced_by_an_empty_cache(bench: Workbench, blob: bytes) -> None:
    cache = bench.trt.Builder(bench.logger).create_builder_config().create_timing_cache(blob)
    assert "The timing cache will not be used!" in bench.text("WARNING")
    assert cache._cache.times == {}


def test_a_cache_of_another_version_is_not_used(workbench: Callable[..., Workbench], models: Models) -> None:
    old, new = workbench("8.6"), workbench("10.13")
    _, blob = timed(old, models, b"")
    config = new.trt.Builder(new.logger).create_builder_config()
    assert config.create_timing_cache(blob)._cache.times == {}
    assert "Current Version: 10.13.3.9, Serialized Version: 8.6.1" in new.text("WARNING")
    foreign = old.trt.Builder(old.logger).create_builder_config().create_timing_cache(blob)
    assert not config.set_timing_cache(foreign, True)


def test_a_changed_cache_is_refused(bench: Workbench, models: Models) -> None:
    _, blob = timed(bench, models, b"")
    config = bench.trt.Builder(bench.logger).create_builder_config()
    assert config.create_timing_cache(blob[:-3] + b"9.9"[:2] + b"}")._cache.times == {}


def test_combining_keeps_what_is_there(bench: Workbench, models: Models) -> None:
    _, blob = timed(bench, models, b"")
    config = bench.trt.Builder(bench.logger).create_builder_config()
    full, empty = config.create_timing_cache(blob), config.create_timing_cache(b"")
    assert empty.combine(full, False)
    assert bytes(empty.serialize()) == blob
    assert empty.reset()
    assert empty._cache.times == {}


def test_a_miss_can_be_an_error(bench: Workbench, models: Models) -> None:
    _, blob = timed(bench, models, b"")
    assert timed(bench, models, blob, "ERROR_ON_TIMING_CACHE_MISS")[0] is not None
    assert timed(bench, models, b"", "ERROR_ON_TIMING_CACHE_MISS")[0] is None
    assert "is missing in the timing cache" in bench.text("ERROR")


@pytest.mark.parametrize("name", personality.names())
def test_flags_are_kept_and_reset(workbench: Callable[..., Workbench], name: str) -> None:
    bench = workbench(name)
    config, flag = bench.trt.Builder(bench.logger).create_builder_config(), bench.trt.BuilderFlag
    assert config.get_flag(flag.TF32)
    config.clear_flag(flag.TF32)
    config.set_flag(flag.REFIT)
    assert config.flags == 1 << int(flag.REFIT)
    config.builder_optimization_level = 1
    config.set_memory_pool_limit(bench.trt.MemoryPoolType.WORKSPACE, 1024)
    config.reset()
    assert not config.get_flag(flag.REFIT)
    assert config.builder_optimization_level == 3
    assert config.get_memory_pool_limit(bench.trt.MemoryPoolType.WORKSPACE) > 1024


def test_shapes_of_a_profile_have_to_be_ordered(bench: Workbench) -> None:
    profile = bench.trt.Builder(bench.logger).create_optimization_profile()
    with pytest.raises(ValueError, match="not ordered"):
        profile.set_shape("x", (2,), (1,), (3,))
