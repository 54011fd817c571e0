"""From TensorRT's algorithms to tactics of the model."""

from __future__ import annotations

from typing import Any

from polygraphy_debug_ext.model import Field, Tactic, TensorInfo

#: What is read of a tensor: what Polygraphy 0.49 and later records.
FIELDS = frozenset(Field) - {Field.TENSOR_FORMAT}


def tactic_of(context: Any, algorithm: Any) -> Tactic:  # noqa: ANN401 - TensorRT has no types
    """Return the tactic that an IAlgorithm stands for."""
    variant = algorithm.algorithm_variant
    count = context.num_inputs + context.num_outputs
    infos = [_tensor_info(algorithm.get_algorithm_io_info(number)) for number in range(count)]
    return Tactic(
        implementation=int(variant.implementation),
        tactic=int(variant.tactic),
        inputs=tuple(infos[: context.num_inputs]),
        outputs=tuple(infos[context.num_inputs :]),
        time_ms=_time(algorithm),
    )


def _tensor_info(info: Any) -> TensorInfo:  # noqa: ANN401
    return TensorInfo(
        dtype=str(info.dtype).rpartition(".")[2],
        strides=tuple(int(stride) for stride in info.strides),
        # Both were added in TensorRT 8.6.
        vectorized_dim=getattr(info, "vectorized_dim", None),
        components_per_element=getattr(info, "components_per_element", None),
    )


def _time(algorithm: Any) -> float | None:  # noqa: ANN401
    """The measured time; TensorRT has -1 where none was measured."""
    value = getattr(algorithm, "timing_msec", None)
    return float(value) if value is not None and value >= 0 else None
