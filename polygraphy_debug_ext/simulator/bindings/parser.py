"""The ONNX parser: fills a network, or says which node is to blame."""
# ruff: noqa: SLF001 - what starts with an underscore is hidden from users, not from the rest of the surface

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.bindings.base import Bound, Stored, View
from polygraphy_debug_ext.simulator.compiler import graph as graphs
from polygraphy_debug_ext.simulator.compiler.dtypes import of_binding
from polygraphy_debug_ext.simulator.compiler.lowering import has_brain
from polygraphy_debug_ext.simulator.errors import GraphError
from polygraphy_debug_ext.simulator.lazy import LazyModule

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx

    from polygraphy_debug_ext.simulator.bindings.config import IBuilderConfig
    from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
    from polygraphy_debug_ext.simulator.bindings.network import INetworkDefinition
    from polygraphy_debug_ext.simulator.compiler.graph import Graph
else:
    onnx = LazyModule("onnx")


class ParserError(Bound):
    """Why a model could not be parsed."""

    def __init__(self, code: str, error: GraphError) -> None:
        self._code = code
        self._error = error

    def code(self) -> BoundEnum:
        """The kind of error."""
        return self._api.enum("ErrorCode", self._code)

    def desc(self) -> str:
        """What happened."""
        return self._error.message

    def file(self) -> str:
        """The source file that noticed it."""
        return __file__

    def func(self) -> str:
        """The function that noticed it."""
        return "importNode"

    def line(self) -> int:
        """The source line that noticed it; not known here."""
        return 0

    def node(self) -> int:
        """The index of the node, -1 if it is none of them."""
        return self._error.node

    def node_name(self) -> str:
        """The name of the node."""
        return self._error.name

    def node_operator(self) -> str:
        """The operator of the node."""
        return self._error.operator

    def __str__(self) -> str:
        if self._error.node < 0:
            return f"{self._code}: {self._error.message}"
        return (
            f"In node {self._error.node} with name: {self._error.name} and operator: {self._error.operator} "
            f"(importNode): {self._code}: {self._error.message}"
        )


class OnnxParser(Bound):
    """Parses ONNX models into a network."""

    def __init__(self, network: INetworkDefinition, logger: object) -> None:
        self._network = network
        self._sink = self._api.sink(logger)
        self._errors: list[ParserError] = []

    flags = Stored(0)
    num_errors = View(lambda parser: len(parser._errors))

    def get_error(self, index: int) -> ParserError:
        """An error of the last parse."""
        return self._errors[index]

    def clear_errors(self) -> None:
        """Forget the errors."""
        self._errors.clear()

    def get_flag(self, flag: BoundEnum) -> bool:
        """Whether a flag is set."""
        return bool(self.flags & (1 << int(flag)))

    def set_flag(self, flag: BoundEnum) -> None:
        """Set a flag."""
        self.flags |= 1 << int(flag)

    def clear_flag(self, flag: BoundEnum) -> None:
        """Clear a flag."""
        self.flags &= ~(1 << int(flag))

    def set_builder_config(self, builder_config: IBuilderConfig) -> bool:
        """Tell the configuration: nothing that is parsed here depends on it."""
        del builder_config
        return True

    def supports_operator(self, op_name: str) -> bool:
        """Whether there is an importer for this operator."""
        return bool(onnx.defs.has(op_name))

    def parse(self, model: bytes, path: str | None = None) -> bool:
        """Parse a serialized model; `path` is where weights in files of their own are looked for."""
        data = bytes(memoryview(model))
        return self._parse(lambda: _from_bytes(data, path))

    def parse_from_file(self, model: str) -> bool:
        """Parse a model file."""
        return self._parse(lambda: onnx.load(model))

    def _parse(self, load: Callable[[], onnx.ModelProto]) -> bool:
        self._errors.clear()
        try:
            model = load()
        except Exception as error:  # noqa: BLE001 - onnx and protobuf raise their own types
            return self._fail("MODEL_DESERIALIZE_FAILED", GraphError(f"the model cannot be read: {error}"))
        if has_brain(model) and not self._api.personality.has("DataType", "BF16"):
            return self._fail(
                "INVALID_GRAPH", GraphError("The model has BFLOAT16, which this TensorRT lacks.")
            )
        try:
            graph = graphs.load(model)
            self._check_bindings(graph)
        except GraphError as error:
            return self._fail("UNSUPPORTED_NODE" if error.node >= 0 else "INVALID_GRAPH", error)
        self._network._populate(graph)
        self._sink("VERBOSE", f"Parsed {len(graph.nodes)} nodes of the ONNX graph {graph.model.graph.name!r}")
        return True

    def _check_bindings(self, graph: Graph) -> None:
        available = frozenset(self._api.personality.enums["DataType"])
        for name in graph.inputs:
            elem_type = graph.types[name].elem_type
            if of_binding(elem_type, available) is None:
                text = onnx.TensorProto.DataType.Name(elem_type)
                raise GraphError(f"Input {name} has the data type {text}, which TensorRT does not support.")
            if elem_type == onnx.TensorProto.INT64 and of_binding(elem_type, available) != "INT64":
                self._sink(
                    "WARNING",
                    f"Input {name} is INT64, which this TensorRT lacks: it becomes INT32.",
                )

    def _fail(self, code: str, error: GraphError) -> bool:
        problem = self._api.new(ParserError, code, error)
        self._errors.append(problem)
        self._sink("ERROR", str(problem))
        return False


def _from_bytes(data: bytes, path: str | None) -> onnx.ModelProto:
    model = onnx.load_from_string(data)
    if path:
        onnx.load_external_data_for_model(model, str(Path(path).parent))
    return model
