"""Polygraphy's option groups that every subtool has that builds: the network, the builder, the engine."""

from __future__ import annotations

from typing import Any

from polygraphy.tools.args import (
    DataLoaderArgs,
    ModelArgs,
    OnnxInferShapesArgs,
    OnnxLoadArgs,
    TrtConfigArgs,
    TrtLoadEngineBytesArgs,
    TrtLoadNetworkArgs,
    TrtLoadPluginsArgs,
    TrtOnnxFlagArgs,
    TrtSaveEngineBytesArgs,
)


def builder_groups() -> list[Any]:
    """Return the groups, as stock `debug build` has them."""
    return [
        ModelArgs(model_opt_required=True, input_shapes_opt_name=False),
        OnnxInferShapesArgs(),
        OnnxLoadArgs(outputs_opt_prefix=False),
        DataLoaderArgs(),
        TrtConfigArgs(precision_constraints_default=None),
        TrtLoadPluginsArgs(),
        TrtOnnxFlagArgs(),
        TrtLoadNetworkArgs(),
        TrtLoadEngineBytesArgs(),
        TrtSaveEngineBytesArgs(output_opt=False),
    ]
