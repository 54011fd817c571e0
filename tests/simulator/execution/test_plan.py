from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Models, Workbench


def test_an_engine_survives_as_bytes(bench: Workbench, models: Models, image: Array) -> None:
    plan = bench.build(models.conv_net(), "FP16")
    engine = bench.engine(plan)
    again = bench.engine(bytes(engine.serialize()))
    assert again._engine == engine._engine
    first, second = bench.run(engine, x=image), bench.run(again, x=image)
    assert first is not None
    assert second is not None
    assert first["y"].tobytes() == second["y"].tobytes()


@pytest.mark.parametrize(("builder", "reader"), [("8.6", "10.13"), ("10.13", "8.6")])
def test_an_engine_of_another_version_is_refused(
    workbench: Callable[..., Workbench], models: Models, builder: str, reader: str
) -> None:
    plan = workbench(builder).build(models.identity())
    other = workbench(reader)
    assert other.engine(plan) is None
    assert "Error Code 1: Serialization" in other.text("ERROR")
    assert "Version tag does not match" in other.text("ERROR")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda plan: plan[:-1], "expected"),
        (lambda plan: plan[:20], "Magic tag"),
        (lambda _: b"", "Magic tag"),
        (lambda _: b"garbage" * 100, "Magic tag"),
        (lambda plan: plan[:-5] + b"xxxxx", "damaged"),
    ],
)
def test_damaged_bytes_are_refused(
    bench: Workbench, models: Models, damage: Callable[[bytes], bytes], reason: str
) -> None:
    plan = bench.build(models.identity())
    assert plan is not None
    assert bench.engine(damage(plan)) is None
    assert reason in bench.text("ERROR")


def test_an_engine_can_be_read_from_a_stream(bench: Workbench, models: Models) -> None:
    plan = bench.build(models.identity())
    assert plan is not None

    class Reader(bench.trt.IStreamReader):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def __init__(self) -> None:
            self.left: bytes = plan or b""

        def read(self, size: int) -> bytes:
            part, self.left = self.left[: min(size, 100)], self.left[min(size, 100) :]
            return part

    assert bench.trt.Runtime(bench.logger).deserialize_cuda_engine(Reader()).num_layers == 1


def test_host_memory_is_a_buffer_and_a_context_manager(bench: Workbench, models: Models) -> None:
    with bench.engine(bench.build(models.identity())).serialize() as memory:
        assert isinstance(memory, bench.trt.IHostMemory)
        assert memory.nbytes == len(bytes(memory)) == len(memoryview(memory))
