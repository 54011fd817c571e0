from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.conftest import Array, Made, Models, Workbench


def calibrator(bench: Workbench, batches: list[Array], cache: bytes | None = None) -> Made:
    class Calibrator(bench.trt.IInt8EntropyCalibrator2):  # type: ignore[misc,name-defined]  # a class of a module made at run time
        def __init__(self) -> None:
            self.left = list(batches)
            self.written = b""

        def get_batch_size(self) -> int:
            return 1

        def get_batch(self, names: list[str]) -> list[int] | None:
            assert names == ["x"]
            return [self.left.pop().ctypes.data] if self.left else None

        def read_calibration_cache(self) -> bytes | None:
            return cache

        def write_calibration_cache(self, cache: memoryview) -> None:
            self.written = cache.tobytes()

    return Calibrator()


def prepared(found: Made) -> Callable[[Made, Made, Made], None]:
    def prepare(_: Made, __: Made, config: Made) -> None:
        config.int8_calibrator = found

    return prepare


def test_a_calibrated_network_runs_in_int8(
    bench: Workbench, models: Models, image: Array, reference: Callable[..., Array]
) -> None:
    model, found = models.conv_net(), calibrator(bench, [image])
    engine = bench.engine(bench.build(model, "INT8", prepare=prepared(found)))
    assert "INT8" in {choice.precision for choice in engine._engine.choices}
    assert found.written.startswith(b"TRT-101339-EntropyCalibration2\n")
    outputs = bench.run(engine, x=image)
    assert outputs is not None
    wanted = reference(model, x=image)
    assert 0 < np.abs(outputs["y"] - wanted).max() < 0.2


def test_a_calibration_cache_takes_the_place_of_data(bench: Workbench, models: Models, image: Array) -> None:
    model, first = models.conv_net(), calibrator(bench, [image])
    plan = bench.build(model, "INT8", prepare=prepared(first))
    second = calibrator(bench, [], first.written)
    again = bench.build(model, "INT8", prepare=prepared(second))
    assert second.written == b""
    assert bench.engine(again)._engine.scales == pytest.approx(bench.engine(plan)._engine.scales)


def test_a_calibrator_without_data_fails_the_build(bench: Workbench, models: Models) -> None:
    assert bench.build(models.conv_net(), "INT8", prepare=prepared(calibrator(bench, []))) is None
    assert "the calibrator gave no data" in bench.text("ERROR")


def test_without_scales_there_is_no_int8(bench: Workbench, models: Models) -> None:
    engine = bench.engine(bench.build(models.conv_net(), "INT8"))
    assert {choice.precision for choice in engine._engine.choices} == {"FLOAT"}
    assert "INT8 is enabled without a calibrator" in bench.text("WARNING")


def test_ranges_can_be_set_by_hand(bench: Workbench, models: Models) -> None:
    def prepare(_: Made, network: Made, __: Made) -> None:
        for layer in network:
            for tensor in (layer.get_input(0), layer.get_output(0)):
                tensor.set_dynamic_range(-4.0, 4.0)

    engine = bench.engine(bench.build(models.conv_net(), "INT8", prepare=prepare))
    assert "INT8" in {choice.precision for choice in engine._engine.choices}
