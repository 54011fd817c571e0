"""The plan: an engine as bytes. A header of JSON and the ONNX model, guarded by a version and a checksum."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from polygraphy_debug_ext.simulator.compiler.layouts import Layout
from polygraphy_debug_ext.simulator.compiler.records import Binding, Choice, Engine, Tensor
from polygraphy_debug_ext.simulator.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polygraphy_debug_ext.simulator.personality import Personality

MAGIC = b"TRTSIM\r\n"
# Serialization version, length of the header, length of the model, SHA-256 of both.
PREFIX = struct.Struct("<8sIQQ32s")


def dump(engine: Engine, personality: Personality) -> bytes:
    """The bytes of an engine."""
    fields = asdict(engine)
    del fields["model"]
    header = json.dumps(fields, separators=(",", ":")).encode()
    digest = hashlib.sha256(header + engine.model).digest()
    prefix = PREFIX.pack(MAGIC, personality.serialization, len(header), len(engine.model), digest)
    return prefix + header + engine.model


def load(data: bytes, personality: Personality) -> Engine:
    """Read what `dump` wrote; `PlanError` says what is wrong in the words of a failed assertion."""
    if len(data) < PREFIX.size or not data.startswith(MAGIC):
        raise PlanError("magicTagRead == kMAGIC_TAG failed. Magic tag does not match.")
    _, version, header_size, model_size, digest = PREFIX.unpack_from(data)
    if version != personality.serialization:
        raise PlanError(
            "stdVersionRead == kSERIALIZATION_VERSION failed. Version tag does not match. "
            f"Note: Current Version: {personality.serialization}, Serialized Engine Version: {version}"
        )
    body = data[PREFIX.size :]
    if len(body) != header_size + model_size:
        raise PlanError(
            f"sizeRead == header.size failed. The engine has {len(body)} bytes where {header_size + model_size} are expected."
        )
    if hashlib.sha256(body).digest() != digest:
        raise PlanError("checksumRead == checksum failed. The engine is damaged.")
    return _engine(json.loads(body[:header_size]), body[header_size:])


def _engine(fields: dict[str, Any], model: bytes) -> Engine:
    bindings = tuple(_binding(binding) for binding in fields.pop("bindings"))
    profiles = tuple(tuple(_choice(choice) for choice in profile) for profile in fields.pop("profiles"))
    return Engine(model=model, bindings=bindings, profiles=profiles, **fields)


def _binding(fields: dict[str, Any]) -> Binding:
    nested: dict[str, Any] = {
        key: tuple(tuple(tuple(numbers) for numbers in profile) for profile in fields.pop(key))
        for key in ("shapes", "values")
    }
    return Binding(**{**fields, "shape": tuple(fields["shape"])}, **nested)


def _choice(fields: dict[str, Any]) -> Choice:
    inputs, outputs = (
        tuple(_tensor(tensor) for tensor in fields.pop(side)) for side in ("inputs", "outputs")
    )
    inner = tuple(_choice(choice) for choice in fields.pop("inner"))
    names = {key: tuple(fields[key]) for key in ("nodes", "aliases")}
    return Choice(**{**fields, **names}, inputs=inputs, outputs=outputs, inner=inner)


def _tensor(fields: Mapping[str, Any]) -> Tensor:
    layout = Layout(**fields["layout"])
    numbers = {key: tuple(fields[key]) for key in ("shape", "optimum")}
    return Tensor(name=fields["name"], value=fields["value"], layout=layout, **numbers)
