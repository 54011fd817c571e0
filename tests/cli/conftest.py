"""`polygraphy debug build` as a real process on the simulator, with faults of all kinds; nothing of it may be left over."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import textwrap
import time
import uuid
from typing import TYPE_CHECKING

import numpy as np
import onnx
import psutil
import pytest
from onnx import TensorProto, helper, numpy_helper

from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.trials.moving import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

MARK = "POLYGRAPHY_DEBUG_EXT_TEST"
POLYGRAPHY = "import sys; from polygraphy.tools import main; sys.exit(main())"
PYTHON = [sys.executable, "-I", "-S", "-c"]
TIMEOUT = 60
VERDICTS = {"PASSED": "good", "FAILED": "bad", "UNRESOLVED": "unresolved"}


class DebugBuild:
    """Runs `debug build` in a directory of its own, on a network of two convolutions."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.artifacts_dir = directory / "sorted"
        self.environment = {**os.environ, MARK: uuid.uuid4().hex}
        self.output = ""
        _write_model(directory / "conv.onnx")

    def script(self, name: str, text: str) -> str:
        """Write a Python file; return its path."""
        path = self.directory / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def in_builder(self, text: str) -> list[str]:
        """Options that run `text` in the build process before each build; `trial` is the number of the trial."""
        self.script(
            "hook.py",
            "import ctypes, os, signal, sys, time\npoisoned = []\n\ndef postprocess(config, builder=None, network=None):\n"
            "    trial = int(os.environ['POLYGRAPHY_DEBUG_ITERATION'])\n"
            + textwrap.indent(textwrap.dedent(text), "    "),
        )
        return ["--trt-config-postprocess-script", "hook.py:postprocess"]

    def command(
        self,
        options: Sequence[str] = (),
        *,
        check: Sequence[str] = ("true",),
        faults: Sequence[str] = (),
        before: str = "",
    ) -> list[str]:
        """The command line; `before` is Python that runs first in the process of `debug build`."""
        planted = [word for fault in faults for word in ("--fault", fault)]
        usual = ["--fp16", "--save-tactics", "replay.json", "--artifacts", "replay.json"]
        program = f"{before}\n{POLYGRAPHY}" if before else POLYGRAPHY
        return [
            *(sys.executable, "-m", "polygraphy_debug_ext.simulator", "--seed", "1", *planted, "--"),
            *(sys.executable, "-c", program, "debug", "build", "conv.onnx", *usual),
            *("--artifacts-dir", "sorted", *options, "--check", *check),
        ]

    def start(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start it; its output goes to a file."""
        with (self.directory / "output.txt").open("w") as output:
            return subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def finish(self, process: subprocess.Popen[str]) -> int:
        """Wait for the end, and take the output."""
        status = process.wait(timeout=TIMEOUT)
        self.output = (self.directory / "output.txt").read_text(errors="replace")
        return status

    def run(self, options: Sequence[str] = (), **rest: object) -> int:
        """Run it; return the exit status."""
        return self.finish(self.start(self.command(options, **rest)))  # type: ignore[arg-type]

    def wait_for(self, condition: Callable[[], bool]) -> None:
        """Wait until something is the case."""
        end = time.monotonic() + TIMEOUT
        while not condition():
            assert time.monotonic() < end, "it never came about"
            time.sleep(0.01)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill the process of `debug build` as the kernel would: without a warning."""
        process.kill()
        self.finish(process)

    @property
    def journal(self) -> form.Journal:
        return form.read(self.artifacts_dir / form.NAME)

    def records(self) -> list[form.Record]:
        """All trials of all runs."""
        return [record for run in self.journal.runs for _, record in sorted(run.trials.items())]

    def table(self) -> list[tuple[int, str, str]]:
        """Trial, verdict and reason, as the journal has them."""
        return [
            (record.judged.trial, record.judged.verdict, record.judged.reason)
            for record in self.records()
            if record.judged and record.ended
        ]

    def shown(self) -> list[tuple[int, str]]:
        """Trial and verdict, as the log of the last process has them."""
        found = re.findall(r"(PASSED|FAILED|UNRESOLVED) \| Iteration (\d+) \|", self.output)
        return [(int(number) - 1, VERDICTS[word]) for word, number in found]

    def filed(self) -> list[str]:
        """What lies in the directories of the verdicts."""
        return sorted(
            str(path.relative_to(self.artifacts_dir))
            for verdict in VERDICTS.values()
            for path in (self.artifacts_dir / verdict).glob("*")
        )

    def assert_nothing_lost(self) -> None:
        """Every artifact of a trial that is over lies where the journal says, once, and nothing else lies there."""
        promised = [
            (placement.destination, placement.digest)
            for record in self.records()
            if record.judged and record.ended
            for placement in record.judged.placements
        ]
        assert sorted(destination for destination, _ in promised) == self.filed()
        for destination, content in promised:
            assert digest(self.artifacts_dir / destination) == content
        for record in self.records():
            if record.judged:
                for placement in record.judged.placements:
                    assert placement.destination.startswith(record.judged.verdict + "/")

    def processes(self) -> list[psutil.Process]:
        """The processes that this started and that are still there."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and (
                    process.environ().get(MARK) == self.environment[MARK]
                ):
                    found.append(process)
        return found

    def assert_nothing_runs(self) -> None:
        """No process is left over, after the moment that the kernel and the guard need."""
        end = time.monotonic() + 5
        while (left := self.processes()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not left, [process.cmdline() for process in left]


@pytest.fixture
def debug_build(tmp_path: Path) -> Iterator[DebugBuild]:
    """Run `debug build`; nothing of it may run at the end, nothing may lie in the directory of the run."""
    build = DebugBuild(tmp_path)
    yield build
    try:
        build.assert_nothing_runs()
    finally:
        for process in build.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()


def _write_model(path: Path) -> None:
    generator = np.random.default_rng(7)
    weights = [
        numpy_helper.from_array(generator.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w1", (8, 3, 3, 3)), ("w2", (8, 8, 3, 3)))
    ]
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["a"], name="conv1", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu1"),
        helper.make_node("Conv", ["b", "w2"], ["c"], name="conv2", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["y"], name="relu2"),
    ]
    graph = helper.make_graph(
        nodes,
        "two convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 8])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def lines_of(path: Path) -> list[dict[str, object]]:
    """The lines of a journal."""
    return [json.loads(line) for line in path.read_text().splitlines()]
