"""The simulator has nothing that the real module of the same version lacks."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from polygraphy_debug_ext.simulator import personality
from polygraphy_debug_ext.simulator.bindings.enums import BoundEnum
from polygraphy_debug_ext.simulator.module import build_module

INVENTORIES = Path(__file__).parents[1] / "data" / "tensorrt-api"
PERSONALITIES = [("8.6", "8.6.1"), ("10.13", "10.13.3.9"), ("11.4", "11.4.0.106")]
# What every class of Python or every enum of pybind11 has; the inventories leave it out.
COMMON = {"name", "value"}
SEQUENCE = {"count", "index"}
# The bindings nest this enum in ILogger, where the inventories list its members only.
SEVERITIES = {"INTERNAL_ERROR": 0, "ERROR": 1, "WARNING": 2, "INFO": 3, "VERBOSE": 4}


def inventory(version: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((INVENTORIES / f"{version}.json").read_text(encoding="utf-8"))
    return data


def public(thing: object) -> list[str]:
    return [name for name in dir(thing) if not name.startswith("_")]


def is_enum(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, BoundEnum)


@pytest.mark.parametrize(("name", "version"), PERSONALITIES)
def test_every_name_of_the_module_exists_in_that_version(name: str, version: str) -> None:
    known = inventory(version)
    assert set(public(build_module(name))) <= {*known["enums"], *known["classes"], *known["functions"]}


@pytest.mark.parametrize(("name", "version"), PERSONALITIES)
def test_enums_are_complete_and_have_the_values_of_that_version(name: str, version: str) -> None:
    known, module = inventory(version)["enums"], build_module(name)
    enums = {key: value for key, value in vars(module).items() if is_enum(value)}
    assert len(enums) > 20
    for key, enum in enums.items():
        assert {member: int(value) for member, value in enum.__members__.items()} == known[key], key
        assert set(public(enum)) - COMMON == set(known[key])


@pytest.mark.parametrize(("name", "version"), PERSONALITIES)
def test_every_member_of_a_class_exists_in_that_version(name: str, version: str) -> None:
    known, module = inventory(version)["classes"], build_module(name)
    classes = {
        key: value for key, value in vars(module).items() if isinstance(value, type) and not is_enum(value)
    }
    assert len(classes) > 40
    for key, cls in classes.items():
        allowed = set(known[key]) | (SEQUENCE if issubclass(cls, tuple) else set())
        assert set(public(cls)) <= allowed, key


@pytest.mark.parametrize(("name", "version"), PERSONALITIES)
def test_methods_take_the_parameters_of_that_version(name: str, version: str) -> None:
    known, module = inventory(version)["classes"], build_module(name)
    checked = 0
    for key, cls in vars(module).items():
        if not isinstance(cls, type) or is_enum(cls):
            continue
        for member, method in vars(cls).items():
            signature = known[key].get(member, "")
            # The inventory of 10.13 has two names swapped, and readers written in Python get one argument only.
            if (
                not inspect.isfunction(method)
                or "*args" in signature
                or member in {"get_tensor_profile_values", "read"}
            ):
                continue
            wanted = re.findall(r"(?:^|[(,]\s*)(\w+):", signature.partition("->")[0])
            if wanted:
                checked += 1
                ours = list(inspect.signature(method).parameters)
                assert ours[: len(wanted)] == wanted, (key, member)
                assert all(
                    parameter.default is not inspect.Parameter.empty
                    for parameter in list(inspect.signature(method).parameters.values())[len(wanted) :]
                ), (key, member)
    assert checked > 60


@pytest.mark.parametrize(("name", "version"), PERSONALITIES)
def test_personality_data_agree_with_the_inventory(name: str, version: str) -> None:
    known, data = inventory(version), personality.load(name)
    assert data.version == version
    assert data.enums == known["enums"]
    assert {key: sorted(members) for key, members in known["classes"].items()} == data.classes


@pytest.mark.parametrize("name", personality.names())
def test_severities_are_nested_in_the_logger(name: str) -> None:
    module = build_module(name)
    assert {key: int(value) for key, value in module.ILogger.Severity.__members__.items()} == SEVERITIES
    assert module.Logger.VERBOSE == module.ILogger.Severity.VERBOSE


@pytest.mark.parametrize("name", personality.names())
def test_enums_behave_as_those_of_pybind11(name: str) -> None:
    dtype = build_module(name).DataType
    assert str(dtype.FLOAT) == "DataType.FLOAT"
    assert repr(dtype.FLOAT) == "<DataType.FLOAT: 0>"
    assert dtype(1) == dtype.HALF
    assert dtype.HALF != 1
    assert len({dtype.HALF, dtype(1), dtype.FLOAT}) == 2
    assert dtype.HALF.name == "HALF"


def test_personalities_differ_where_the_versions_do() -> None:
    old, new = build_module("8.6"), build_module("10.13")
    assert hasattr(old, "IAlgorithmSelector")
    assert not hasattr(old.DataType, "INT64")
    assert hasattr(old.Builder, "build_engine")
    assert not hasattr(new.Builder, "build_engine")
    assert hasattr(old.IAlgorithmIOInfo, "tensor_format")
    assert not hasattr(new.IAlgorithmIOInfo, "tensor_format")
    assert hasattr(new, "IStreamReader")
    assert not hasattr(old, "IStreamReader")


def test_adding_layers_by_hand_is_refused_with_a_sentence() -> None:
    module = build_module("10.13")
    network = module.Builder(module.Logger()).create_network(0)
    with pytest.raises(AttributeError, match="builds networks from ONNX models only"):
        network.add_input("x", module.float32, (1,))
