"""Which layers of several sources are one: a log may name an op of a Myelin graph, where the engine names the ONNX layers in it.

Sources of one kind see the same layers; a build of a kind that never tells of a layer says nothing about it.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def same_layers(names: Sequence[str], seen: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return for each layer the number of the one that it is called by: mostly its own.

    Args:
        names: The names of the layers.
        seen: Which kinds of sources tell of which layers (bool, kinds x layers).

    "fc" of one kind is "flatten + fc" of another if the one has no "flatten + fc", the other no "fc", and nothing else of
    either would fit.
    """
    own = np.arange(len(names), dtype=np.int32)
    if len(seen) <= 1:
        return own
    partial = [int(layer) for layer in np.nonzero(~seen.all(axis=0) & seen.any(axis=0))[0]]
    parts = {layer: frozenset(names[layer].split(" + ")) for layer in partial}
    having: dict[str, list[int]] = {}
    for layer, each in parts.items():
        for part in each:
            having.setdefault(part, []).append(layer)
    pairs = [
        (short, long)
        for short in partial
        for long in having[next(iter(parts[short]))]
        if parts[short] < parts[long] and not (seen[:, short] & seen[:, long]).any()
    ]
    met = Counter(layer for pair in pairs for layer in pair)
    for short, long in pairs:
        if met[short] == met[long] == 1:
            own[short] = long
    return own


def seen_by_all(seen: NDArray[np.bool_], called: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which layers every kind of source tells of (bool, layers), by the names that they are called by."""
    everything = np.zeros_like(seen)
    for kind, row in enumerate(seen):
        everything[kind, called[row]] = True
    result: NDArray[np.bool_] = np.asarray(everything.all(axis=0))
    return result
