"""Prints a kernel that some of the builds in a directory of replays have and others have not, as evenly as can be."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any


def in_use(layer: dict[str, Any]) -> bool:
    """Whether the kernel of a layer is known, and in the engine; the timing cache has others as well."""
    return "kernel" in layer and "engine" in layer.get("witnesses", ["engine"])


def main() -> int:
    """Read the replays; return 1 if all builds have the same kernels."""
    builds = [
        {layer["kernel"] for layer in json.loads(path.read_text())["replay"].values() if in_use(layer)}
        for path in sorted(Path(sys.argv[1]).glob("*.json"))
    ]
    counts = Counter(kernel for build in builds for kernel in build)
    differing = {kernel: count for kernel, count in counts.items() if count < len(builds)}
    if not differing:
        print("All builds have the same kernels: build more often.", file=sys.stderr)
        return 1
    print(min(sorted(differing), key=lambda kernel: abs(differing[kernel] - len(builds) / 2)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
