"""Planted faults are found: the real commands on the simulator, with a check that is a real process.

Twenty faults are drawn (seeded) over three networks: kernels that compete for a layer, and some that rarely win. In every case
the planted tactic is among the suspects if a good and a bad build were made, and no innocent one is named without it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnxruntime
import pytest
from filelock import FileLock
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.formats.collection import collect
from polygraphy_debug_ext.reports.document import by_stock
from polygraphy_debug_ext.simulator.listing import list_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUILDS = 40
HUNTING = Path(__file__).parent / "hunting"
NETWORKS = ("convnet", "residual", "attention")
#: Each has its own way to tell what was chosen; on the last two it is chosen inside Myelin graphs as well.
VERSIONS = ("8.6", "10.13", "11.4")
SIMULATOR = [sys.executable, "-m", "polygraphy_debug_ext.simulator"]
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A faulty kernel at a layer of a network, on a version of TensorRT."""

    version: str
    network: str
    layer: str
    kernel: str
    effect: str


def weights(**shapes: tuple[int, ...]) -> list[onnx.TensorProto]:
    draw = np.random.default_rng(5)
    return [
        numpy_helper.from_array((draw.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32), name)
        for name, shape in shapes.items()
    ]


def save(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    shapes: dict[str, Sequence[int]],
    constants: Sequence[onnx.TensorProto],
) -> None:
    ends = {
        name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()
    }
    graph = helper.make_graph(list(nodes), path.stem, [ends["x"]], [ends["y"]], list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def save_residual(path: Path) -> None:
    node = helper.make_node
    nodes = [
        node("Conv", ["x", "w1"], ["a"], name="stem", pads=[1] * 4, strides=[2, 2]),
        node("LeakyRelu", ["a"], ["b"], name="stem_act"),
        node("Conv", ["b", "w2"], ["c"], name="body", pads=[1] * 4),
        node("Sigmoid", ["c"], ["d"], name="gate"),
        node("Mul", ["c", "d"], ["e"], name="swish"),
        node("Add", ["e", "b"], ["f"], name="join"),
        node("AveragePool", ["f"], ["g"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["g", "w3"], ["y"], name="head"),
    ]
    constants = weights(w1=(16, 8, 3, 3), w2=(16, 16, 3, 3), w3=(4, 16, 1, 1))
    save(path, nodes, {"x": [1, 8, 16, 16], "y": [1, 4, 4, 4]}, constants)


def save_attention(path: Path) -> None:
    node = helper.make_node
    nodes = [
        node("MatMul", ["x", "wq"], ["q"], name="query"),
        node("MatMul", ["x", "wk"], ["k"], name="key"),
        node("MatMul", ["x", "wv"], ["v"], name="value"),
        node("Transpose", ["k"], ["kt"], name="turn", perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["s"], name="scores"),
        node("Softmax", ["s"], ["p"], name="probabilities", axis=-1),
        node("MatMul", ["p", "v"], ["m"], name="mix"),
        node("Add", ["m", "x"], ["y"], name="residual"),
    ]
    save(path, nodes, {"x": [1, 16, 32], "y": [1, 16, 32]}, weights(wq=(32, 32), wk=(32, 32), wv=(32, 32)))


@contextlib.contextmanager
def once(mark: Path) -> Iterator[bool]:
    """Whether something is still to be done; processes that run tests side by side do it once."""
    with FileLock(f"{mark}.lock"):
        yield not mark.exists()
        mark.touch()


def make_networks(root: Path, example: Path) -> None:
    """Make the three networks, with an input and the right output of each."""
    shutil.copy(example / "convnet.onnx", root)
    save_residual(root / "residual.onnx")
    save_attention(root / "attention.onnx")
    for name in NETWORKS:
        session = onnxruntime.InferenceSession(root / f"{name}.onnx", providers=["CPUExecutionProvider"])
        (end,) = session.get_inputs()
        image = np.random.default_rng(3).standard_normal(end.shape).astype(np.float32)
        np.save(root / f"{name}_in.npy", image)
        np.save(root / f"{name}_out.npy", session.run(None, {end.name: image})[0])


def build(
    root: Path, network: str, directory: str, simulator: Sequence[str], until: int, check: Sequence[str]
) -> None:
    """Run `debug build` under the simulator, in a directory of its own."""
    work = root / directory
    work.mkdir()
    command = [
        *SIMULATOR,
        *simulator,
        "--",
        *POLYGRAPHY,
        "debug",
        "build",
        str(root / f"{network}.onnx"),
        "--fp16",
    ]
    command += ["--save-tactics", "replay.json", "--artifacts", "replay.json", "--artifacts-dir", "."]
    done = subprocess.run(
        [*command, f"--until={until}", "--check", *check],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def ground(example_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    # The directories of all processes that run tests lie beside each other.
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "hunting"
    root.mkdir(exist_ok=True)
    with once(root / "networks") as to_do:
        if to_do:
            make_networks(root, example_models)
    return root


@pytest.fixture(scope="module")
def servers(ground: Path) -> Iterator[dict[str, Path]]:
    """The sockets of processes that judge engines, by version."""
    sockets = {version: ground / f"{version}_{os.getpid()}.socket" for version in VERSIONS}
    script = [sys.executable, str(HUNTING / "engine_server.py")]
    processes = [
        subprocess.Popen([*SIMULATOR, "--trt", version, "--", *script, str(path)])
        for version, path in sockets.items()
    ]
    try:
        deadline = time.monotonic() + 60
        while not all(path.exists() for path in sockets.values()):
            assert time.monotonic() < deadline
            assert all(process.poll() is None for process in processes)
            time.sleep(0.05)
        yield sockets
    finally:
        for process in processes:
            process.kill()
            process.wait()


@cache
def chosen(root: Path, version: str, network: str) -> Counter[tuple[str, str]]:
    """How often each kernel is chosen at each layer, in 30 builds without a fault."""
    directory = f"{network}_{version}_dry"
    with once(root / f"{directory}_done") as to_do:
        if to_do:
            build(root, network, directory, ["--trt", version, "--seed", "99"], 30, ["true"])
    found = collect(root / directory / "good").assignments
    assert len(found) == 30
    return Counter(
        (layer, tactic.kernel)
        for each in found
        for layer, tactic in each.layers.items()
        if tactic.kernel is not None and not tactic.swallowed
    )


@cache
def plantable(root: Path, version: str, network: str) -> frozenset[str]:
    """The names of layers that a fault can be planted at."""
    rows = list_kernels(root / f"{network}.onnx", version, frozenset({"FLOAT", "HALF"}))
    return frozenset(row.layer for row in rows)


def draw(root: Path, number: int) -> Planted:
    """Draw a kernel that competes for a layer; every fifth one is any that was ever chosen, also always or hardly ever."""
    dice = random.Random(number)
    network = NETWORKS[number % len(NETWORKS)]
    version = VERSIONS[number // len(NETWORKS) % len(VERSIONS)]
    counts = chosen(root, version, network)
    competing = sorted(choice for choice, count in counts.items() if 3 <= count <= 24)
    layer, kernel = dice.choice(sorted(counts) if number % 5 == 0 else competing)
    effect = dice.choice(["offset", "nan", "zero"])
    return Planted(version=version, network=network, layer=layer, kernel=kernel, effect=effect)


def fault(root: Path, planted: Planted) -> str:
    """How it is planted: a layer inside Myelin by one of the ONNX nodes that name it in a replay."""
    names = plantable(root, planted.version, planted.network)
    name = next(
        (each for each in (planted.layer, *planted.layer.split(" + ")) if each in names), planted.layer
    )
    return f"{planted.kernel}@{name}:{planted.effect}"


@pytest.mark.parametrize("number", range(20))
def test_a_planted_fault_is_found_and_no_innocent_tactic_named_alone(
    ground: Path, servers: dict[str, Path], number: int
) -> None:
    planted = draw(ground, number)
    simulator = ["--trt", planted.version, "--seed", str(number), "--fault", fault(ground, planted)]
    files = [str(ground / f"{planted.network}_{end}.npy") for end in ("in", "out")]
    check = [
        sys.executable,
        "-S",
        "-E",
        str(HUNTING / "client.py"),
        str(servers[planted.version]),
        "{engine}",
        *files,
    ]
    build(ground, planted.network, f"hunt{number}", simulator, BUILDS, check)
    good, bad = (
        collect(place).assignments if (place := ground / f"hunt{number}" / side).exists() else ()
        for side in ("good", "bad")
    )
    assert len(good) + len(bad) == BUILDS
    table = table_of(good, bad)
    suspects = by_stock(rank(table).suspects, table.layers)
    # The builds tell on their own whether they hold the information: some have the faulty kernel, some do not.
    have = [
        each
        for each in (*good, *bad)
        if (tactic := each.layers.get(planted.layer))
        and tactic.kernel == planted.kernel
        and not tactic.swallowed
    ]
    assert {each.origin for each in bad} == {each.origin for each in have}
    if good and bad:
        named = [
            each
            for each in suspects
            if (each.layers, each.tactic.kernel) == ((planted.layer,), planted.kernel)
        ]
        # One kernel can stand for several tactics of a layer; together they are in every bad build.
        assert sum(each.counts.bad_with for each in named) == len(bad)
    else:
        assert not suspects


def test_most_of_the_drawn_faults_make_some_builds_fail(ground: Path) -> None:
    drawn = [draw(ground, number) for number in range(20)]
    counts = [chosen(ground, each.version, each.network)[each.layer, each.kernel] for each in drawn]
    assert sum(3 <= count <= 24 for count in counts) >= 15
    assert {each.network for each in drawn} == set(NETWORKS)
    assert {each.version for each in drawn} == set(VERSIONS)
