"""What tests of several rooms share."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import polygraphy.tools
import pytest
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source, Tactic, TensorInfo

if TYPE_CHECKING:
    from collections.abc import Callable


#: Makes the networks that most hunts are on.
MAKE_MODELS = Path(__file__).parents[1] / "examples" / "01_debugging_flaky_trt_tactics" / "make_models.py"

# Hundreds of short processes import numpy, whose threads for linear algebra would wait without pause for work that never comes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


class MakeAssignment(Protocol):
    """Layer name to number of its tactic."""

    def __call__(self, **layers: int) -> Assignment: ...


class WriteReplays(Protocol):
    """Writes a replay of each assignment into a directory, which is made."""

    def __call__(self, directory: Path, *assignments: Assignment) -> Path: ...


class Polygraphy(Protocol):
    """Runs Polygraphy with these words in a directory, and tells status and output as those of a process."""

    def __call__(self, *words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def polygraphy_here(monkeypatch: pytest.MonkeyPatch) -> Polygraphy:
    """Run the command line of Polygraphy in this process, for tests of what is said: to start another takes longer than to say it."""

    def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        arguments = ["polygraphy", *map(str, words)]
        output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        with contextlib.ExitStack() as stack:
            patch = stack.enter_context(monkeypatch.context())
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", module=r"polygraphy\.")
            stack.enter_context(contextlib.redirect_stdout(output))
            stack.enter_context(contextlib.redirect_stderr(errors))
            status = _status(patch, arguments, cwd)
        said = (stream.buffer.getvalue().decode() for stream in (output, errors))
        return subprocess.CompletedProcess(arguments, status, *said)

    return run


def _status(patch: pytest.MonkeyPatch, arguments: list[str], cwd: Path) -> int:
    """Run Polygraphy with a logger as new, and return its exit status."""
    for name, value in list(vars(G_LOGGER).items()):
        patch.setattr(G_LOGGER, name, copy.copy(value))
    patch.chdir(cwd)
    patch.setattr(sys, "argv", arguments)
    try:
        return int(polygraphy.tools.main() or 0)
    except SystemExit as end:
        return int(end.code or 0)


@pytest.fixture(scope="session")
def cases() -> Path:
    """Inputs from practice, each with the right answers in its `expected.json`."""
    return Path(__file__).parent / "data" / "cases"


@pytest.fixture(scope="session")
def example_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the networks of the first example, as a user makes them."""
    directory = tmp_path_factory.mktemp("example_models")
    subprocess.run([sys.executable, str(MAKE_MODELS), str(directory)], check=True)
    return directory


@pytest.fixture
def example_networks(example_models: Path, tmp_path: Path) -> Path:
    """The directory of the test, with `identity.onnx` and `convnet.onnx` in it."""
    for path in example_models.glob("*.onnx"):
        shutil.copy(path, tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def tactic() -> Callable[[int], Tactic]:
    """Make a tactic that differs from another by its number."""
    info = TensorInfo(dtype="HALF", strides=(1024, 32, 1), vectorized_dim=1, components_per_element=8)

    def make(number: int) -> Tactic:
        return Tactic(implementation=0x80000009, tactic=number, inputs=(info,), outputs=(info,))

    return make


@pytest.fixture(scope="session")
def assignment(tactic: Callable[[int], Tactic]) -> MakeAssignment:
    """Make the assignment of a build: layer name to number of its tactic."""

    def make(**layers: int) -> Assignment:
        return Assignment(
            layers={name: tactic(number) for name, number in layers.items()},
            source=Source.SELECTOR,
            variant="0.49",
        )

    return make


@pytest.fixture(scope="session")
def write_replays() -> WriteReplays:
    """Write a replay of each assignment into a directory, which is made."""

    def write(directory: Path, *assignments: Assignment) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        for index, each in enumerate(assignments):
            replay.write(directory / f"replay_N{index}.json", each)
        return directory

    return write
