"""Myelin: which layers are handed to it, as graphs that the builder sees as one layer each.

A *region* is such a graph. It is convex: no way leads out of it and back in. Which kinds of layers it takes, and which of
them it needs to start a region at all (*anchors*), are data of the personality.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler.fusion import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

KIND = "myelin"
ANY = "*"


def partition(
    layers: Sequence[Layer], rules: Mapping[str, Sequence[str]], visible: frozenset[str]
) -> tuple[Layer, ...]:
    """The layers with regions in place of what Myelin takes, in an order in which they can run."""
    kinds, anchors = rules["kinds"], rules["anchors"]
    takes = [_is_among(layer.kind, kinds) for layer in layers]
    groups = [
        group
        for group in _groups(layers, takes, whole=ANY in kinds)
        if any(_is_among(layers[index].kind, anchors) for index in group)
    ]
    taken = {index for group in groups for index in group}
    units = [([index], layer) for index, layer in enumerate(layers) if index not in taken]
    units += [(group, _region(layers, group, visible)) for group in groups]
    units.sort(key=lambda unit: unit[0][-1])
    return _ordered([layer for _, layer in units]) if groups else tuple(layers)


def _is_among(kind: str, kinds: Sequence[str]) -> bool:
    return kind in kinds or ANY in kinds


def _groups(layers: Sequence[Layer], takes: Sequence[bool], *, whole: bool) -> list[list[int]]:
    """Connected layers that Myelin takes; what lies behind a layer that it does not take is another group."""
    producer = {name: index for index, layer in enumerate(layers) for name in layer.outputs}
    levels: list[int] = []
    for index, layer in enumerate(layers):
        sources = [producer[name] for name in layer.inputs if name in producer]
        levels.append(
            max((levels[source] + (takes[source] != takes[index]) for source in sources), default=0)
        )
    leader = list(range(len(layers)))

    def root(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    seen: dict[tuple[int, str], int] = {}
    for index, layer in enumerate(layers):
        if takes[index]:
            for name in ("",) if whole else (*layer.inputs, *layer.outputs):
                first = seen.setdefault((levels[index], name), index)
                leader[root(index)] = root(first)
    groups: dict[int, list[int]] = {}
    for index in range(len(layers)):
        if takes[index]:
            groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _region(layers: Sequence[Layer], group: Sequence[int], visible: frozenset[str]) -> Layer:
    parts = tuple(layers[index] for index in group)
    members = set(group)
    read_outside = {
        name for index, layer in enumerate(layers) if index not in members for name in layer.inputs
    }
    made = [name for part in parts for name in part.outputs]
    weights = _unique(name for part in parts for name in part.weights)
    nodes = tuple(node for part in parts for node in part.nodes)
    ends = dict.fromkeys((weights[0] if weights else nodes[0].name, nodes[-1].name))
    return Layer(
        name=f"{{ForeignNode[{'...'.join(ends)}]}}",
        kind=KIND,
        nodes=nodes,
        inputs=_unique(name for part in parts for name in part.inputs if name not in made),
        outputs=tuple(name for name in made if name in visible or name in read_outside),
        weights=weights,
        parts=parts,
    )


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _ordered(layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """The same layers, each after all that it reads, otherwise in the order given."""
    producer = {name: index for index, layer in enumerate(layers) for name in layer.outputs}
    waits = [{producer[name] for name in layer.inputs if name in producer} for layer in layers]
    readers: dict[int, list[int]] = {}
    for index, sources in enumerate(waits):
        for source in sources:
            readers.setdefault(source, []).append(index)
    ready = [index for index, sources in enumerate(waits) if not sources]
    heapq.heapify(ready)
    found = []
    while ready:
        index = heapq.heappop(ready)
        found.append(layers[index])
        for reader in readers.get(index, ()):
            waits[reader].discard(index)
            if not waits[reader]:
                heapq.heappush(ready, reader)
    return tuple(found)
