"""The build worker: a child that may die, hang or talk nonsense; each is a failed build, with its place and its log."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil
import pytest

from polygraphy_debug_ext.errors import BuildError
from polygraphy_debug_ext.model import FaultSite, Proposal, Reason
from polygraphy_debug_ext.trials.interruption import Interrupted, Interruption
from polygraphy_debug_ext.trials.logs import Logs
from polygraphy_debug_ext.trials.processes import Nursery
from polygraphy_debug_ext.trials.worker import Launch, WorkerBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A worker without TensorRT: `load` and `build` are what it does with a request.
WORKER = """
import json, os, signal, sys, time
answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
def answer(kind, **fields):
    print(json.dumps({{"type": kind, **fields}}), file=answers)
for line in sys.stdin:
    request = json.loads(line)
    if request["type"] == "load":
        {load}
        answer("ready", environment={{"tensorrt": "0"}})
    else:
        trial = request["trial"]
        print("building", trial, flush=True)
        {build}
        answer("built", trial=trial, seconds=0.1)
"""


class MakeBuilder(Protocol):
    """Makes a builder whose worker does this."""

    def __call__(
        self, build: str = "pass", *, load: str = "pass", timeout: float | None = None
    ) -> WorkerBuilder: ...


class Workshop:
    """Makes builders."""

    def __init__(self, directory: Path) -> None:
        self.logs = Logs(root=directory, stamp="s")
        self.interruption = Interruption()
        self.said: list[tuple[str, bool]] = []
        self._made: list[WorkerBuilder] = []

    def make(self, build: str = "pass", *, load: str = "pass", timeout: float | None = None) -> WorkerBuilder:
        program = WORKER.format(build=build, load=load)
        builder = WorkerBuilder(
            Launch(command=[sys.executable, "-I", "-S", "-c", program], arguments={"fp16": True}),
            Nursery(),
            self.interruption,
            self.logs,
            lambda text, error: self.said.append((text, error)),
            timeout=timeout,
        )
        self._made.append(builder)
        return builder

    def log(self, trial: int) -> str:
        return self.logs.path(trial, "build").read_text()

    def close(self) -> None:
        for builder in self._made:
            builder.close()


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """Make builders; no process may be left."""
    before = set(psutil.Process().children(recursive=True))
    made = Workshop(tmp_path)
    yield made
    made.close()
    assert set(psutil.Process().children(recursive=True)) == before


TIMING = "print('Timing Runner: conv (Cask[0x80000009])', flush=True); "


def test_one_worker_builds_again_and_again_and_each_trial_has_its_own_log(workshop: Workshop) -> None:
    builder = workshop.make("print(os.getpid(), flush=True)")
    assert builder.start() == {"tensorrt": "0"}
    assert [builder.build(trial, Proposal()).failure for trial in range(3)] == [None] * 3
    logs = [workshop.log(trial).split() for trial in range(3)]
    assert [log[:2] for log in logs] == [["building", str(trial)] for trial in range(3)]
    assert len({log[2] for log in logs}) == 1


def test_a_worker_that_dies_is_replaced(workshop: Workshop) -> None:
    builder = workshop.make(f"{TIMING}trial == 1 and os.kill(os.getpid(), signal.SIGSEGV)")
    builder.start()
    failures = [builder.build(trial, Proposal()).failure for trial in range(3)]
    assert [failures[0], failures[2]] == [None, None]
    failure = failures[1]
    assert failure is not None
    assert (failure.reason, failure.text) == (Reason.BUILD_CRASH, "signal 11 (SIGSEGV)")
    assert failure.site == FaultSite(layer="conv", runner="Cask")
    assert "building 1" in workshop.log(1)
    assert "building 0" not in workshop.log(1)


def test_a_worker_that_hangs_is_killed(workshop: Workshop) -> None:
    builder = workshop.make(
        f"{TIMING}signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)", timeout=0.3
    )
    builder.start()
    failure = builder.build(0, Proposal()).failure
    assert failure is not None
    assert failure.reason is Reason.BUILD_TIMEOUT
    assert failure.site == FaultSite(layer="conv", runner="Cask")


@pytest.mark.parametrize(
    "nonsense",
    [
        "answers.write('nonsense\\n')",
        "answers.write('{}\\n')",
        "answers.write('\\0' * 100 + '\\n')",
        'answers.write(\'{"type": "built", "trial": "one"}\\n\')',
    ],
)
def test_a_worker_that_talks_nonsense_is_replaced(workshop: Workshop, nonsense: str) -> None:
    builder = workshop.make(f"trial == 0 and {nonsense}")
    builder.start()
    failure = builder.build(0, Proposal()).failure
    assert failure is not None
    assert failure.reason is Reason.BUILD_CRASH
    assert "does not speak sense" in failure.text
    assert builder.build(1, Proposal()).failure is None


def test_after_a_failed_build_there_is_a_fresh_worker(workshop: Workshop) -> None:
    builder = workshop.make(
        "print(os.getpid(), flush=True); trial or answer('failed', problem='no', remedy='')"
    )
    builder.start()
    failure = builder.build(0, Proposal()).failure
    assert failure is not None
    assert (failure.reason, failure.text) == (Reason.BUILD_ERROR, "no")
    assert builder.build(1, Proposal()).failure is None
    assert workshop.log(0).split()[2] != workshop.log(1).split()[2]


def test_lines_for_the_terminal_are_passed_on(workshop: Workshop) -> None:
    builder = workshop.make(
        "answer('said', text='a line', error=False); answer('said', text='oh', error=True)"
    )
    builder.start()
    builder.build(0, Proposal())
    assert workshop.said == [("a line", False), ("oh", True)]


def test_a_worker_that_never_gets_ready_ends_the_run(workshop: Workshop) -> None:
    with pytest.raises(BuildError, match=r"did not get ready .*exit status 5"):
        workshop.make(load="os._exit(5)").start()
    with pytest.raises(BuildError, match="no network"):
        workshop.make(load="answer('failed', problem='no network', remedy='Give one.')").start()
    with pytest.raises(BuildError, match="answered Built"):
        workshop.make(load="answer('built', trial=0, seconds=1)").start()


def test_a_worker_that_cannot_be_started_ends_the_run(workshop: Workshop) -> None:
    builder = WorkerBuilder(
        Launch(command=["/nonexistent/python"], arguments={}),
        Nursery(),
        workshop.interruption,
        workshop.logs,
        lambda *_: None,
    )
    with pytest.raises(BuildError, match="cannot be started"):
        builder.start()


def test_an_interruption_ends_the_worker(workshop: Workshop) -> None:
    builder = workshop.make("os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)")
    builder.start()
    with workshop.interruption.watched(), pytest.raises(Interrupted):
        builder.build(0, Proposal())
    assert workshop.interruption.exit_status == 128 + signal.SIGTERM


def test_a_log_of_many_builds_is_emptied_between_two(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polygraphy_debug_ext.trials.worker._LOG_LIMIT", 1000)
    builder = workshop.make("print('x' * 600, flush=True)")
    builder.start()
    for trial in range(10):
        assert builder.build(trial, Proposal()).failure is None
        assert workshop.log(trial).split() == ["building", str(trial), "x" * 600]
    assert workshop.logs.worker.stat().st_size < 1400


def test_a_forced_build_is_asked_for_with_its_files_and_tells_what_was_not_honoured(
    workshop: Workshop,
) -> None:
    honoured = 'answer("built", trial=trial, seconds=0.1, not_honoured={"fc": " ".join([request["force"], *request["caches"]])}, void=["qk"]); continue'
    builder = workshop.make(honoured)
    builder.start()
    built = builder.build_forced(3, Path("h.json"), [Path("g.json"), Path("b.json")])
    assert built.result.failure is None
    assert built.not_honoured == {"fc": "h.json g.json b.json"}
    assert built.void == {"qk"}


def test_a_forced_build_that_fails_honours_nothing(workshop: Workshop) -> None:
    builder = workshop.make("os.kill(os.getpid(), signal.SIGSEGV)")
    builder.start()
    built = builder.build_forced(0, Path("h.json"))
    assert built.result.failure is not None
    assert built.result.failure.reason is Reason.BUILD_CRASH
    assert (built.not_honoured, built.void) == ({}, frozenset())
