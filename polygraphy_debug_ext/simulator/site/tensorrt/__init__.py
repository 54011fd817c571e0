"""What `import tensorrt` finds when `polygraphy-trt-sim` asked for the simulator."""

import sys as _sys
from pathlib import Path as _Path

try:
    import polygraphy_debug_ext.simulator as _simulator
except ImportError:
    # Started from a checkout that is not installed: the package is above this file.
    _sys.path.append(str(_Path(__file__).resolve().parents[4]))
    import polygraphy_debug_ext.simulator as _simulator

from polygraphy_debug_ext.simulator import shim as _shim

globals().update(_shim.contents())
del _sys, _Path, _simulator, _shim
