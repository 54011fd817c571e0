"""Work on ONNX graphs around a change of types: what they hold, and what the converter leaves undone in subgraphs."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import onnx

if TYPE_CHECKING:
    from collections.abc import Iterator


def graphs(graph: Any) -> Iterator[Any]:  # noqa: ANN401 - onnx has no types
    """Yield a graph, and the subgraphs of its nodes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from graphs(inner)


def subgraphs(node: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the graphs in the attributes of a node."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        yield from attribute.graphs


def constants(graph: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Yield the tensors that a graph holds, by the names that nodes use."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield node.output[0], attribute.t


def types(model: Any) -> dict[str, int]:  # noqa: ANN401
    """Return the types of all tensors as far as they are known."""
    found: dict[str, int] = {}
    for graph in graphs(model.graph):
        for value in (*graph.value_info, *graph.input, *graph.output):
            found[value.name] = value.type.tensor_type.elem_type
        found.update({name: tensor.data_type for name, tensor in constants(graph)})
    return found


def inline_functions(model: Any) -> Any:  # noqa: ANN401
    """Put the bodies of local functions where they are called: the converter does not look into them."""
    if not model.functions:
        return model
    from onnx import inliner  # noqa: PLC0415 - onnx 1.15 has it, but few networks need it

    return inliner.inline_local_functions(model)


def split_shared(graph: Any, blocked: frozenset[str]) -> None:  # noqa: ANN401
    """Give kept nodes weights of their own where a converted node shares them: those would be rounded for both."""
    inputs = {value.name for value in graph.input}
    weights = {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in inputs
    }
    everywhere = [node for each in graphs(graph) for node in each.node]
    taken = {name for node in everywhere for name in node.output} | inputs | set(weights)
    converted = {name for node in everywhere if node.op_type not in blocked for name in node.input}
    copies: dict[str, str] = {}
    for node in graph.node:
        if node.op_type not in blocked:
            continue
        for number, name in enumerate(node.input):
            if name not in weights or name not in converted:
                continue
            if name not in copies:
                copies[name] = _unused(f"{name}_fp32", taken)
                copy = graph.initializer.add()
                copy.CopyFrom(weights[name])
                copy.name = copies[name]
            node.input[number] = copies[name]


def mend(graph: Any) -> None:  # noqa: ANN401
    """Put casts into the graphs where their inputs are, and nodes after those that they need."""
    _move_casts(graph)
    for each in graphs(graph):
        _sort(each)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _move_casts(graph: Any) -> None:  # noqa: ANN401
    """The converter puts all casts into the main graph, but those for a subgraph belong there."""
    inner = [each for each in graphs(graph) if each is not graph]
    home = {name: each for each in inner for name in _defined(each)}
    known = _defined(graph)
    stray = [
        node
        for node in graph.node
        if node.op_type == "Cast" and node.input[0] not in known and node.input[0] in home
    ]
    for node in stray:
        target = home[node.input[0]]
        target.node.add().CopyFrom(node)
        graph.node.remove(node)


def _defined(graph: Any) -> set[str]:  # noqa: ANN401
    names = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    names |= {tensor.values.name for tensor in graph.sparse_initializer}
    return names | {name for node in graph.node for name in node.output}


def _needs(node: Any) -> set[str]:  # noqa: ANN401
    """Names that a node reads, those that its subgraphs take from outside included."""
    names = set(node.input)
    for inner in subgraphs(node):
        names |= {name for each in inner.node for name in _needs(each)}
        names |= {value.name for value in inner.output}
        names -= _defined(inner)
    return names


def _sort(graph: Any) -> None:  # noqa: ANN401
    """Sort the nodes; those that need not move keep their order."""
    nodes = list(graph.node)
    made_by = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    needs = [{made_by[name] for name in _needs(node) if name in made_by} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for number, each in enumerate(needs):
        for maker in each:
            readers[maker].append(number)
    ready = [number for number, each in enumerate(needs) if not each]
    order = []
    while ready:
        number = heapq.heappop(ready)
        order.append(number)
        for reader in readers[number]:
            needs[reader].discard(number)
            if not needs[reader]:
                heapq.heappush(ready, reader)
    # What runs in a circle was wrong before, and the checker says so.
    if len(order) < len(nodes) or order == sorted(order):
        return
    copies = [onnx.NodeProto.FromString(nodes[number].SerializeToString()) for number in order]
    del graph.node[:]
    graph.node.extend(copies)
