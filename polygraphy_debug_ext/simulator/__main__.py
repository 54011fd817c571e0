"""`python -m polygraphy_debug_ext.simulator` is `polygraphy-trt-sim`, for when the script is not on PATH."""

import sys

from polygraphy_debug_ext.simulator.launch import main

sys.exit(main())
