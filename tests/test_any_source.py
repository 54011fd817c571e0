"""Replays, layer information, verbose logs and any mixture of them say the same of the same builds.

Twelve builds are made on each generation of TensorRT that the simulator has; then a kernel is planted: the builds whose engine has it are
bad. That is done for every kernel that some builds have and others have not.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.analysis.table import TableBuilder
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.model import Verdict

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.table import Table
    from polygraphy_debug_ext.model import Assignment

BUILDS = 12
SOURCES = {
    "replays": "good/replay_*.json",
    "layer information": "good/layers_*.json",
    "logs": "logs/*_build.log",
}
#: A reformat that is in a few engines only, and what is not inside a Myelin graph, or stands for all of it.
UNSEEN = ("Reformatting CopyNode", "{ForeignNode[", "graph_input_cast", "graph_output_cast")
DUMP = Path(__file__).parent / "hunting" / "dump_layers.py"
SIMULATOR = [sys.executable, "-m", "polygraphy_debug_ext.simulator", "--seed", "5"]
POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]


@cache
def builds(version: str, network: Path, directory: Path) -> dict[str, list[Assignment]]:
    """What each source says of the builds, in their order; a build of the mixture has its source by its number."""
    files = ["--save-tactics", "replay.json", "--artifacts", "replay.json", "layers.json"]
    command = ["debug", "build", str(network), "--fp16", *files, "--artifacts-dir", "replays"]
    check = ["--check", sys.executable, str(DUMP), "{engine}"]
    subprocess.run(
        [*SIMULATOR, "--trt", version, "--", *POLYGRAPHY, *command, f"--until={BUILDS}", *check],
        cwd=directory,
        check=True,
        capture_output=True,
    )
    reader = Reader()
    found = {}
    for source, pattern in SOURCES.items():
        paths = sorted((directory / "replays").glob(pattern), key=number)
        found[source] = [each for path in paths for each in reader.records(path)]
        assert len(found[source]) == BUILDS
    assert reader.kinds == {"tactic replay": BUILDS, "layer information": BUILDS, "build log": BUILDS}
    kinds = list(SOURCES)
    found["mixture"] = [found[kinds[index % len(kinds)]][index] for index in range(BUILDS)]
    return found


def number(path: Path) -> int:
    found = re.search(r"_N(\d+)", path.name)
    assert found is not None
    return int(found[1])


def kernels(path: str) -> set[str]:
    document = json.loads(Path(path).read_text(), strict=False)
    return {layer.get("TacticName", "") for layer in document["Layers"]} - {""}


@pytest.fixture(scope="module", params=["8.6", "10.13", "11.4"])
def said(
    request: pytest.FixtureRequest, example_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Assignment]]:
    return builds(request.param, example_models / "convnet.onnx", tmp_path_factory.mktemp("builds"))


def planted(said: dict[str, list[Assignment]]) -> list[list[bool]]:
    """Which builds are bad, for each kernel that is planted."""
    engines = [kernels(each.origin) for each in said["layer information"]]
    return [
        bad
        for kernel in sorted(set.union(*engines))
        if 1 < sum(bad := [kernel in engine for engine in engines]) < BUILDS - 1
    ]


def table_of(assignments: list[Assignment], bad: list[bool]) -> Table:
    builder = TableBuilder()
    for assignment, is_bad in zip(assignments, bad, strict=True):
        builder.add(assignment, Verdict.BAD if is_bad else Verdict.GOOD)
    return builder.table()


class Reference:
    """The replays: how they call layers and kernels, and what they say is suspect."""

    def __init__(self, assignments: list[Assignment]) -> None:
        records = [
            (layer, tactic)
            for each in assignments
            for layer, tactic in each.layers.items()
            if not tactic.swallowed
        ]
        self.layers = dict.fromkeys(layer for layer, _ in records)
        self.kernels = {(layer, tactic.hex): tactic.kernel for layer, tactic in records}

    def called(self, layer: str) -> str:
        """A log of 10.13 says "fc" where the engine says "flatten + fc"."""
        if layer in self.layers:
            return layer
        return next((each for each in self.layers if layer in each.split(" + ")), layer)

    def suspects(self, table: Table) -> set[tuple[str, str]]:
        """Layers and kernels that bad builds have and no good one has. Tactics with one kernel are one: not all sources tell more."""
        bad: Counter[tuple[str, str]] = Counter()
        good: Counter[tuple[str, str]] = Counter()
        counts = zip(table.choices, table.counts(table.bad), table.counts(~table.bad), strict=True)
        for choice, with_bad, with_good in counts:
            layer = self.called(choice.layer)
            # A log does not name every kernel, but it has the id.
            kernel = choice.tactic.kernel or self.kernels.get((layer, choice.tactic.hex))
            bad[layer, kernel or choice.tactic.hex] += int(with_bad)
            good[layer, kernel or choice.tactic.hex] += int(with_good)
        return {each for each, count in bad.items() if count and not good[each]}


@pytest.mark.parametrize("source", ["layer information", "logs", "mixture"])
def test_a_planted_kernel_is_suspect_whatever_the_builds_are_read_from(
    said: dict[str, list[Assignment]], source: str
) -> None:
    reference = Reference(said["replays"])
    cases = planted(said)
    assert len(cases) > 5
    for bad in cases:
        table = table_of(said[source], bad)
        expected = reference.suspects(table_of(said["replays"], bad))
        assert expected
        if source == "mixture":
            # What one kind of source never tells of, none of its builds can acquit.
            assert all(layer.startswith(UNSEEN) for layer in table.incomparable), table.incomparable
            expected = {each for each in expected if each[0] not in table.incomparable}
        assert reference.suspects(table) == expected
