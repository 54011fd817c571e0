"""Work on ONNX graphs around a change of types: what they hold, and what the converter leaves undone in subgraphs."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, Final

import onnx

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLOAT: Final = onnx.TensorProto.FLOAT
#: Ops that compute nothing.
_MOVES: Final = frozenset(
    {
        "Concat",
        "DepthToSpace",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "SpaceToDepth",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)


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


def say_fillings(graph: Any) -> None:  # noqa: ANN401
    """Give nodes that fill tensors with zeros by default that value: older converters leave it FP32."""
    for each in graphs(graph):
        for node in each.node:
            if node.op_type == "ConstantOfShape" and not node.attribute:
                zero = onnx.helper.make_tensor("", _FLOAT, [1], [0.0])
                node.attribute.append(onnx.helper.make_attribute("value", zero))


def split_shared(graph: Any, blocked: frozenset[str], moves: frozenset[str]) -> None:  # noqa: ANN401
    """Give kept nodes weights of their own where a converted node shares them: those would be rounded for both."""
    inputs = {value.name for value in graph.input}
    weights = {
        tensor.name: tensor
        for tensor in graph.initializer
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in inputs
    }
    everywhere = [node for each in graphs(graph) for node in each.node]
    taken = {name for node in everywhere for name in node.output} | inputs | set(weights)
    converted = {
        name
        for node in everywhere
        if node.op_type not in blocked and node.name not in moves
        for name in node.input
    }
    copies: dict[str, str] = {}
    for node in graph.node:
        if node.op_type not in blocked and node.name not in moves:
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


def moving(model: Any, blocked: frozenset[str]) -> frozenset[str]:  # noqa: ANN401
    """Return names of nodes that only move data from inputs to outputs: in FP16 they would round it, and gain nothing."""
    graph, kinds = model.graph, types(model)
    inner = {name for each in graphs(graph) if each is not graph for node in each.node for name in node.input}
    makers = {name: number for number, node in enumerate(graph.node) for name in node.output}
    numbers = {
        number
        for number, node in enumerate(graph.node)
        if node.op_type in _MOVES and not inner & set(node.output)
    }
    readers: dict[str, set[int]] = {}
    for number, node in enumerate(graph.node):
        for name in _needs(node):
            readers.setdefault(name, set()).add(number)
    kept = {number for number, node in enumerate(graph.node) if node.op_type in blocked}

    def bound(number: int) -> bool:
        node = graph.node[number]
        around = {makers[name] for name in node.input if name in makers and kinds.get(name) == _FLOAT}
        around |= {each for name in node.output for each in readers.get(name, ())}
        return around <= numbers | kept

    while inside := {number for number in numbers if not bound(number)}:
        numbers -= inside
    return frozenset(graph.node[number].name for number in numbers)


def name_nodes(graph: Any) -> frozenset[str]:  # noqa: ANN401
    """Give names to nodes that have none, as TensorRT does; return all names. The converter calls its casts by others."""
    names = set()
    for each in graphs(graph):
        for node in each.node:
            node.name = node.name or f"node_of_{node.output[0]}"
            names.add(node.name)
    return frozenset(names)


def mend(graph: Any, names: frozenset[str]) -> None:  # noqa: ANN401
    """Drop casts that only round, put the others into the graphs where their inputs are, and sort the nodes.

    `names` are those that the nodes had before.
    """
    _move_casts(graph)
    for each in graphs(graph):
        _drop_round_trips(each, graph, names)
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


def _drop_round_trips(graph: Any, main: Any, names: frozenset[str]) -> None:  # noqa: ANN401
    """Let what is FP32 and is used in FP32 not go through FP16 between: the converter casts at each border."""
    casts = [node for node in graph.node if node.op_type == "Cast" and node.name not in names]
    down = {node.output[0]: node for node in casts if _casts_to(node, onnx.TensorProto.FLOAT16)}
    outputs = {value.name for each in graphs(main) for value in each.output}
    made = {name for node in graph.node for name in node.output}
    renamed: dict[str, str] = {}
    for back in casts:
        if back.input[0] not in down or not _casts_to(back, _FLOAT):
            continue
        source, target = down[back.input[0]].input[0], back.output[0]
        if target not in outputs:
            renamed[target] = source
        elif source in made and source not in outputs and source not in renamed:
            renamed[source] = target
        else:
            continue
        graph.node.remove(back)
    for node in [node for each in graphs(main) for node in each.node]:
        for ends in (node.input, node.output):
            for number, name in enumerate(ends):
                ends[number] = _final(name, renamed)
    used = {name for node in graph.node for name in _needs(node)} | outputs
    for name, node in down.items():
        if name not in used:
            graph.node.remove(node)


def _casts_to(node: Any, kind: int) -> bool:  # noqa: ANN401
    return any(attribute.name == "to" and attribute.i == kind for attribute in node.attribute)


def _final(name: str, renamed: dict[str, str]) -> str:
    while name in renamed:
        name = renamed[name]
    return name


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
