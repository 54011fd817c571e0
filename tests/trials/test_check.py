"""The check command runs without a shell, for a limited time, and takes everything that it started with it."""

from __future__ import annotations

import os
import re
import sys
import time
from typing import TYPE_CHECKING, Protocol

import psutil
import pytest

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.model import Reason, Verdict
from polygraphy_debug_ext.trials import streams
from polygraphy_debug_ext.trials.check import CheckNotStarted, Command, CommandCheck
from polygraphy_debug_ext.trials.interruption import Interrupted, Interruption
from polygraphy_debug_ext.trials.judge import Rules
from polygraphy_debug_ext.trials.logs import Logs
from polygraphy_debug_ext.trials.processes import Nursery

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = (sys.executable, "-I", "-S", "-c")


class MakeCheck(Protocol):
    """Makes a check of a command."""

    def __call__(
        self, *words: str, rules: Rules = ..., timeout: float | None = None, interruption: Interruption = ...
    ) -> CommandCheck: ...


@pytest.fixture(params=["selected", "threaded"])
def make_check(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeCheck]:
    """Make checks; both ways of reading must do. No process may be left."""
    if request.param == "threaded":
        monkeypatch.setattr(streams, "SelectedChunks", streams.ThreadedChunks)
    before = set(psutil.Process().children(recursive=True))

    def make(
        *words: str,
        rules: Rules = Rules(),  # noqa: B008 - it is frozen
        timeout: float | None = None,
        interruption: Interruption | None = None,
    ) -> CommandCheck:
        return CommandCheck(
            line=Command(words=words, engine="e.engine", artifacts_dir="sorted"),
            rules=rules,
            nursery=Nursery(),
            interruption=interruption or Interruption(),
            logs=Logs(root=tmp_path, stamp="s"),
            timeout=timeout,
        )

    yield make
    assert set(psutil.Process().children(recursive=True)) == before


def test_both_streams_are_taken_and_logged(make_check: MakeCheck, tmp_path: Path) -> None:
    run = make_check(*PYTHON, "import os; os.write(1, b'out'); os.write(2, b'err')").check(3, 0)
    assert (run.stdout, run.stderr, run.exit_code) == ("out", "err", 0)
    log = (tmp_path / "logs" / "s_N3_check.log").read_text()
    assert log.startswith("$ ")
    assert "out" in log
    assert "err" in log


def test_a_check_that_closes_its_output_is_waited_for(make_check: MakeCheck) -> None:
    run = make_check(
        *PYTHON, "import os, time, sys; os.close(1); os.close(2); time.sleep(0.2); os._exit(7)"
    ).check(0, 0)
    assert run.exit_code == 7


def test_a_check_that_takes_too_long_fails_with_its_output_kept(make_check: MakeCheck) -> None:
    check = make_check(*PYTHON, "import os, time; os.write(1, b'so far'); time.sleep(60)", timeout=0.5)
    run = check.check(0, 0)
    assert run.judgement.verdict is Verdict.BAD
    assert run.judgement.reason is Reason.CHECK_TIMEOUT
    assert run.exit_code is None
    assert run.stdout == "so far"


def test_a_check_that_closes_its_output_and_hangs_is_ended_too(make_check: MakeCheck) -> None:
    check = make_check(*PYTHON, "import os, time; os.close(1); os.close(2); time.sleep(60)", timeout=0.5)
    assert check.check(0, 0).judgement.reason is Reason.CHECK_TIMEOUT


def test_what_an_ended_check_left_behind_does_not_hold_it_up(make_check: MakeCheck) -> None:
    orphan = "import subprocess; subprocess.Popen(['sh', '-c', 'echo late; exec sleep 60'], start_new_session=True)"
    begun = time.monotonic()
    run = make_check(*PYTHON, orphan).check(0, 0)
    assert run.exit_code == 0
    assert time.monotonic() - begun < 30


def test_what_an_ended_check_left_behind_may_finish_its_sentence(make_check: MakeCheck) -> None:
    writer = "sh -c 'for word in 1 2 3 4 5; do echo $word; sleep 0.02; done' & exit 0"
    assert make_check("sh", "-c", writer).check(0, 0).stdout == "1\n2\n3\n4\n5\n"


def test_an_interruption_ends_the_check(make_check: MakeCheck) -> None:
    interruption = Interruption()
    with interruption.watched():
        check = make_check("sh", "-c", "kill -INT $PPID; exec sleep 60", interruption=interruption)
        with pytest.raises(Interrupted):
            check.check(0, 0)
    assert interruption.exit_status == 130


def test_a_pattern_is_found_in_an_output_that_is_not_kept(make_check: MakeCheck) -> None:
    flood = (
        "import os; os.write(1, b'x\\n' * 3000000); os.write(1, b'FAILED\\n'); os.write(1, b'x\\n' * 3000000)"
    )
    rules = Rules(fail_regexes=(re.compile("^FAILED$", re.MULTILINE),))
    run = make_check(*PYTHON, flood, rules=rules).check(0, 0)
    assert run.judgement.verdict is Verdict.BAD
    assert "FAILED" not in run.stdout
    assert "bytes left out" in run.stdout


def test_a_pattern_may_span_both_streams_as_in_polygraphy(make_check: MakeCheck) -> None:
    rules = Rules(fail_regexes=(re.compile("out.*err", re.DOTALL),))
    run = make_check(*PYTHON, "import os; os.write(2, b'err'); os.write(1, b'out')", rules=rules).check(0, 0)
    assert run.judgement.verdict is Verdict.BAD


def test_a_program_that_cannot_be_started_is_told(make_check: MakeCheck, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("not a program\n")
    program.chmod(0o755)
    with pytest.raises(CheckNotStarted, match="Exec format error"):
        make_check(str(program)).check(0, 0)


def command(*words: str) -> Command:
    return Command(words=words, engine="e.engine", artifacts_dir="sorted")


def test_placeholders_are_replaced_and_other_braces_stay() -> None:
    line = command(
        "run", "{engine}", "x={iteration}", "{artifacts_dir}/y", "{}", "{engine.name}", "{{engine}}"
    )
    assert line.of(4) == ["run", "e.engine", "x=4", "sorted/y", "{}", "{engine.name}", "{e.engine}"]


def test_a_program_may_be_named_by_a_placeholder(tmp_path: Path) -> None:
    program = tmp_path / "check"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    Command(words=("{artifacts_dir}/check",), engine="e", artifacts_dir=str(tmp_path)).require_startable()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "--check without a command"),
        (("no-such-program",), "was not found"),
        (("./no/such/program",), "was not found"),
        ((os.sep,), "is a directory"),
        ((__file__,), "is not executable"),
    ],
)
def test_what_cannot_be_started_is_refused(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        command(*words).require_startable()
