"""The contents of the module that is imported as `tensorrt`, and what else has to be in place then."""

from __future__ import annotations

from polygraphy_debug_ext.simulator import settings
from polygraphy_debug_ext.simulator.errors import UsageError
from polygraphy_debug_ext.simulator.execution import cuda
from polygraphy_debug_ext.simulator.module import build_module

KEPT = ("__name__", "__spec__", "__loader__", "__package__")


def contents() -> dict[str, object]:
    """The names of the module, by the settings of this process."""
    try:
        chosen = settings.current()
    except UsageError as error:
        # Importers report an ImportError as one line.
        raise ImportError(str(error)) from None
    cuda.install()
    module = build_module(chosen.trt)
    return {name: value for name, value in vars(module).items() if name not in KEPT}
