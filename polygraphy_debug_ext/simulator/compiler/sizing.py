"""Shapes where plain inference gives up: reshapes whose target is computed from other shapes.

With concrete sizes such targets are constant: folding them shows the shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import shapes
from polygraphy_debug_ext.simulator.compiler.folding import fold
from polygraphy_debug_ext.simulator.compiler.shapes import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import onnx

MADE_UP = (64, 96)


def concrete(
    model: onnx.ModelProto,
    sizes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, Sequence[int]] | None = None,
) -> dict[str, TensorType]:
    """The types of all tensors for inputs of these shapes, and with these values where they hold shapes."""
    types = shapes.infer(model, sizes, values)
    if _unknown(types, model):
        skeleton = shapes.skeleton_of(model, sizes or {}, values or {})
        fold(skeleton)
        known = shapes.infer(skeleton)
        types.update({name: found for name, found in known.items() if found.shape is not None})
    return types


def symbolic(model: onnx.ModelProto) -> dict[str, TensorType]:
    """The types of all tensors with the inputs as declared, -1 for what is dynamic.

    Where inference gives up, two inferences with made-up sizes tell more: where they agree the size is fixed.
    """
    types = shapes.infer(model)
    constants = {tensor.name for tensor in model.graph.initializer}
    dynamic = {
        value.name: types[value.name].shape or ()
        for value in model.graph.input
        if value.name not in constants and -1 in (types[value.name].shape or ())
    }
    unknown = _unknown(types, model)
    if not dynamic or not unknown:
        return types
    first, second = (
        concrete(
            model,
            {name: [size if size >= 0 else filler for size in shape] for name, shape in dynamic.items()},
        )
        for filler in MADE_UP
    )
    for name in unknown:
        one, other = (known[name].shape if name in known else None for known in (first, second))
        if one is not None and other is not None and len(one) == len(other):
            shape = tuple(a if a == b else -1 for a, b in zip(one, other, strict=True))
            types[name] = TensorType(elem_type=first[name].elem_type, shape=shape)
    return types


def _unknown(types: Mapping[str, TensorType], model: onnx.ModelProto) -> list[str]:
    """The tensors whose shape is not known at all."""
    outputs = [name for node in model.graph.node for name in node.output if name]
    return [name for name in outputs if name not in types or types[name].shape is None]
