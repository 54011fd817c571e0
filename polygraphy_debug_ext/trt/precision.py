"""`--fp16` and its like for strongly typed networks: TensorRT 11 and TensorRT-RTX have no others, and no flags for types.

Polygraphy drops these options there without a word. Here `--fp16` converts the network itself, and what cannot be had so is
refused with what to do instead.
"""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from polygraphy import util
from polygraphy.logger import G_LOGGER
from polygraphy.tools.args import ModelArgs, OnnxLoadArgs, TrtConfigArgs, TrtLoadNetworkArgs
from polygraphy.tools.args import util as args_util

from polygraphy_debug_ext.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.trt.capabilities import Capabilities
    from polygraphy_debug_ext.trt.precision_onnx import Converted

#: Options that ask the builder for types, by group: attribute and option.
_WEAK: Final[dict[type, tuple[tuple[str, str], ...]]] = {
    TrtConfigArgs: (
        ("int8", "--int8"),
        ("fp8", "--fp8"),
        ("calibration_cache", "--calibration-cache"),
        ("calibration_base_class", "--calibration-base-class"),
        ("_quantile", "--quantile"),
        ("_regression_cutoff", "--regression-cutoff"),
        ("quantization_flags", "--quantization-flags"),
        ("precision_constraints", "--precision-constraints"),
    ),
    TrtLoadNetworkArgs: (
        ("layer_precisions", "--layer-precisions"),
        ("tensor_datatypes", "--tensor-datatypes"),
    ),
}
#: Polygraphy does not pass these on to TensorRT-RTX, and does not say so.
_NOT_ON_RTX: Final = (("use_dla", "--use-dla"), ("allow_gpu_fallback", "--allow-gpu-fallback"))
_QUANTIZED: Final = frozenset(
    {
        "--int8",
        "--fp8",
        "--calibration-cache",
        "--calibration-base-class",
        "--quantile",
        "--regression-cutoff",
        "--quantization-flags",
    }
)
_NAMES_SHOWN: Final = 5


def take_off(groups: Mapping[type, Any], capabilities: Capabilities) -> bool:
    """Take `--fp16` off the options of a strongly typed network; return whether to convert the network instead.

    Raises:
        UsageError: if something was asked for that a strongly typed network cannot have from the builder.
    """
    config = groups[TrtConfigArgs]
    asked = getattr(groups[TrtLoadNetworkArgs], "strongly_typed", None)
    if not (capabilities.strongly_typed_only or asked):
        return False
    types_are_its_own = (
        f"{capabilities} builds strongly typed networks only"
        if capabilities.strongly_typed_only
        else "with --strongly-typed a network has the types that it says"
    )
    _refuse_weak(groups, types_are_its_own)
    if capabilities.is_rtx:
        given = [option for attribute, option in _NOT_ON_RTX if _is_given(config, attribute)]
        if given:
            raise UsageError(f"{', '.join(given)}: {capabilities} has no DLA", "Leave it out.")
    if config.bf16:
        raise UsageError(
            f"--bf16: {types_are_its_own}, and there is no converter to BF16 here",
            "Convert the network, for example with ModelOpt (python -m modelopt.onnx.autocast --onnx_path MODEL "
            "--keep_io_types --low_precision_type bf16), and leave --bf16 out; or use --fp16.",
        )
    wanted, config.fp16 = bool(config.fp16), None
    return wanted


def load_network(groups: Mapping[type, Any], *, to_fp16: bool) -> tuple[Any, Any]:
    """Load the network; return the builder and the network.

    Args:
        groups: Polygraphy's argument groups, after parsing.
        to_fp16: Whether to convert it to FP16 first.

    Raises:
        UsageError: if it cannot be converted.
        PolygraphyException: if it cannot be loaded.
    """
    model = _converted(groups) if to_fp16 else None
    if model is None:
        return _parsed(groups[TrtLoadNetworkArgs])
    from polygraphy_debug_ext.trt.precision_onnx import save  # noqa: PLC0415 - onnx takes its time

    with TemporaryDirectory(prefix="polygraphy_debug_") as directory:
        path = Path(directory) / "fp16.onnx"
        save(model, path)
        return _parsed(_reading(groups, path))


class _PlainOnnx:
    """In the place of OnnxLoadArgs, whose options the converted network has behind it."""

    def must_use_onnx_loader(self, **_: object) -> bool:
        """Whether the network has to be changed before it is parsed."""
        return False


def _parsed(options: Any) -> tuple[Any, Any]:  # noqa: ANN401 - Polygraphy has no types
    builder, network, _ = util.unpack_args(options.load_network(), 3)
    return builder, network


def _reading(groups: Mapping[type, Any], path: Path) -> Any:  # noqa: ANN401
    """The options with which to load a network, of another file."""
    options, model = copy.copy(groups[TrtLoadNetworkArgs]), copy.copy(groups[ModelArgs])
    model.path = str(path)
    options.arg_groups = {**options.arg_groups, ModelArgs: model, OnnxLoadArgs: _PlainOnnx()}
    return options


def _converted(groups: Mapping[type, Any]) -> Any:  # noqa: ANN401 - onnx has no types
    """Return the network in FP16; None if it can be loaded as it is."""
    if not groups[ModelArgs].model_type.is_onnx():
        raise UsageError(
            "--fp16: only ONNX networks can be converted to FP16, and a strongly typed one takes no flag for it",
            "Give the network FP16 types where it is made, and leave --fp16 out.",
        )
    from polygraphy_debug_ext.trt.precision_onnx import convert, typed  # noqa: PLC0415 - onnx takes its time

    model = args_util.run_script(
        lambda script: groups[OnnxLoadArgs].add_to_script(script, disable_custom_outputs=True)
    )()
    kind = typed(model)
    if kind is not None:
        G_LOGGER.warning(f"--fp16: the network has {kind} types of its own already, and is left as it is.")
        return None
    converted = convert(model)
    if typed(converted.model) is None:
        G_LOGGER.warning(
            "--fp16: nothing in the network would be computed in FP16 (it only moves data, or has ops that stay in FP32): it is "
            "left as it is."
        )
        return None
    _tell(converted)
    return converted.model


def _tell(converted: Converted) -> None:
    G_LOGGER.info(
        "--fp16: the types of a strongly typed network are its own. It was converted to FP16; its inputs and outputs keep "
        "their types."
    )
    for op_type, names in converted.kept.items():
        G_LOGGER.warning(
            f"Kept in FP32: {op_type} ({_some(names)}), because the converter or ONNX has no FP16 for it."
        )
    if converted.moves:
        G_LOGGER.info(
            f"Left in FP32: {_some(converted.moves)}, which only move data from FP32 inputs to FP32 outputs."
        )
    for fate, counts in (
        ("above 65504 in size were clamped", {each.name: each.large for each in converted.out_of_range}),
        (
            "below 6e-08 in size were raised to that",
            {each.name: each.small for each in converted.out_of_range},
        ),
    ):
        named = tuple(f"{name} ({count})" for name, count in sorted(counts.items(), key=_by_count) if count)
        if named:
            total = sum(counts.values())
            G_LOGGER.warning(f"Out of the range of FP16: {total} value(s) {fate}: {_some(named)}.")


def _by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def _some(names: tuple[str, ...]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _refuse_weak(groups: Mapping[type, Any], types_are_its_own: str) -> None:
    given = [
        option
        for group, options in _WEAK.items()
        for attribute, option in options
        if _is_given(groups[group], attribute)
    ]
    if not given:
        return
    remedy = (
        "Quantize the network instead (Q/DQ nodes, for example with ModelOpt: python -m modelopt.onnx.quantization)"
        if _QUANTIZED & set(given)
        else "Give the network the types that you want, for example with Cast nodes"
    )
    raise UsageError(
        f"{', '.join(given)}: {types_are_its_own}: types cannot be asked of the builder",
        f"{remedy}, and leave {'this option' if len(given) == 1 else 'these options'} out.",
    )


def _is_given(group: Any, attribute: str) -> bool:  # noqa: ANN401
    """Whether an option is set; an empty list is one (`--quantization-flags` without a value)."""
    value = getattr(group, attribute, None)
    return value is not None and value is not False and value != {}
