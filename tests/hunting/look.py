"""A check: fails if what was recorded of the engine has all kernels that are named. Arguments: replay, then layer and kernel each."""

import json
import sys

with open(sys.argv[1]) as file:  # noqa: PTH123 - pathlib takes as long to import as all the rest
    layers = json.load(file)["replay"]
wanted = zip(sys.argv[2::2], sys.argv[3::2], strict=True)
sys.exit(all(layers.get(layer, {}).get("kernel") == kernel for layer, kernel in wanted))
