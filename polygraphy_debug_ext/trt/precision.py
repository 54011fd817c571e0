"""`--fp16` and its like for strongly typed networks: TensorRT 11 and TensorRT-RTX have no others, and no flags for types.

Polygraphy drops these options there without a word. Here `--fp16` and `--bf16` convert the network itself, and what cannot be had
so is refused with what to do instead.
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
    from polygraphy_debug_ext.trt.precision_onnx import Converted, Half

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
#: What became of constants that are out of range, by type: of the large ones, and of the small ones.
_FATES: Final[dict[Half, tuple[str, str]]] = {
    "FP16": ("above 65504 in size were clamped", "below 6e-08 in size were raised to that"),
    "BF16": ("above 3.39e+38 in size were clamped", ""),
}
_WHY_KEPT: Final[dict[Half, str]] = {
    "FP16": "because the converter or ONNX has no FP16 for it",
    "BF16": "because the converter or TensorRT has no BF16 for it",
}


def take_off(groups: Mapping[type, Any], capabilities: Capabilities) -> Half | None:
    """Take `--fp16` or `--bf16` off the options of a strongly typed network; return what to convert the network to instead.

    Raises:
        UsageError: if something was asked for that the builder cannot do, or that a strongly typed network cannot have from it.
    """
    config = groups[TrtConfigArgs]
    asked = getattr(groups[TrtLoadNetworkArgs], "strongly_typed", None)
    if not (capabilities.strongly_typed_only or asked):
        if config.bf16 and "BF16" not in capabilities.weak_types:
            raise UsageError(
                f"--bf16: {capabilities} has no BF16", "It came with TensorRT 9. Leave it out, or use --fp16."
            )
        return None
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
    wanted: list[Half] = [
        *(("FP16",) if config.fp16 else ()),
        *(("BF16",) if config.bf16 else ()),
    ]
    if len(wanted) > 1:
        raise UsageError(
            f"--fp16, --bf16: {types_are_its_own}: the builder cannot choose between the two",
            "Leave one of them out: FP16 rounds less, BF16 has the range of FP32.",
        )
    config.fp16 = config.bf16 = None
    return wanted[0] if wanted else None


def load_network(groups: Mapping[type, Any], half: Half | None = None) -> tuple[Any, Any]:
    """Load the network; return the builder and the network.

    Args:
        groups: Polygraphy's argument groups, after parsing.
        half: What to convert it to first, if anything.

    Raises:
        UsageError: if it cannot be converted.
        PolygraphyException: if it cannot be loaded.
    """
    model = None if half is None else _converted(groups, half)
    if model is None:
        return _parsed(groups[TrtLoadNetworkArgs])
    from polygraphy_debug_ext.trt.precision_onnx import save  # noqa: PLC0415 - onnx takes its time

    with TemporaryDirectory(prefix="polygraphy_debug_") as directory:
        path = Path(directory) / "converted.onnx"
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


def _converted(groups: Mapping[type, Any], half: Half) -> Any:  # noqa: ANN401 - onnx has no types
    """Return the network in a type of 16 bits; None if it can be loaded as it is."""
    option = f"--{half.lower()}"
    if not groups[ModelArgs].model_type.is_onnx():
        raise UsageError(
            f"{option}: only ONNX networks can be converted to {half}, and a strongly typed one takes no flag for it",
            f"Give the network {half} types where it is made, and leave {option} out.",
        )
    from polygraphy_debug_ext.trt.precision_onnx import convert, typed  # noqa: PLC0415 - onnx takes its time

    model = args_util.run_script(
        lambda script: groups[OnnxLoadArgs].add_to_script(script, disable_custom_outputs=True)
    )()
    kind = typed(model)
    if kind is not None:
        G_LOGGER.warning(f"{option}: the network has {kind} types of its own already, and is left as it is.")
        return None
    converted = convert(model, half)
    if typed(converted.model) is None:
        G_LOGGER.warning(
            f"{option}: nothing in the network would be computed in {half} (it only moves data, or has ops that stay in FP32): "
            "it is left as it is."
        )
        return None
    _tell(converted, half)
    return converted.model


def _tell(converted: Converted, half: Half) -> None:
    G_LOGGER.info(
        f"--{half.lower()}: the types of a strongly typed network are its own. It was converted to {half}; its inputs and outputs "
        "keep their types."
    )
    for op_type, names in converted.kept.items():
        G_LOGGER.warning(f"Kept in FP32: {op_type} ({_some(names)}), {_WHY_KEPT[half]}.")
    if converted.moves:
        G_LOGGER.info(
            f"Left in FP32: {_some(converted.moves)}, which only move data from FP32 inputs to FP32 outputs."
        )
    large = {each.name: each.large for each in converted.out_of_range}
    small = {each.name: each.small for each in converted.out_of_range}
    for fate, counts in zip(_FATES[half], (large, small), strict=True):
        named = tuple(f"{name} ({count})" for name, count in sorted(counts.items(), key=_by_count) if count)
        if named:
            total = sum(counts.values())
            G_LOGGER.warning(f"Out of the range of {half}: {total} value(s) {fate}: {_some(named)}.")


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
