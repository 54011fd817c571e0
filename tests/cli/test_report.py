"""`debug report` as a user calls it: its messages, its exit status, what it replaces and what it leaves alone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import pytest

from polygraphy_debug_ext.cli.report_trials import url
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source, Tactic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import MakeAssignment, Polygraphy, WriteReplays

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")
STAMP = "12-02-26_09-35-12"


class Report(Protocol):
    """Runs `debug report` in a directory."""

    def __call__(self, *arguments: str | Path, cwd: Path) -> tuple[int, str]: ...


@pytest.fixture
def report(polygraphy_here: Polygraphy) -> Report:
    """Return the exit status and what was printed, without colours."""

    def run(*arguments: str | Path, cwd: Path) -> tuple[int, str]:
        done = polygraphy_here("debug", "report", *arguments, cwd=cwd)
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, ANSI.sub("", done.stdout)

    return run


@pytest.fixture
def directory(tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays) -> Path:
    """Good and bad builds, which differ in one tactic."""
    write_replays(tmp_path / "runs" / "good", *[assignment(conv1=1, fc=each % 2) for each in range(8)])
    write_replays(tmp_path / "runs" / "bad", *[assignment(conv1=2, fc=each % 2) for each in range(8)])
    return tmp_path / "runs"


def journal(root: Path, *events: form.Event) -> None:
    start = form.RunStarted(
        version=form.VERSION,
        stamp=STAMP,
        time="2026-12-02T09:35:12.381+00:00",
        tool="polygraphy-debug-ext",
        command=["polygraphy", "debug", "build", "<model>.onnx"],
        directory="/",
        settings={},
    )
    root.mkdir(exist_ok=True)
    (root / form.NAME).write_bytes(b"".join(map(form.encode, (start, *events))))


def crash(trial: int) -> tuple[form.Event, ...]:
    """The events of a trial whose build died."""
    site = form.Site(layer="conv1", runner="Cask", tactic="0x1", error="misaligned address")
    return (
        form.TrialStarted(trial=trial, time="2026-12-02T09:36:00.000+00:00", purpose="halves <1>"),
        form.TrialBuilt(trial=trial, seconds=0.5, failure="BUILD_CRASH", text="signal 11", site=site),
        form.TrialJudged(
            trial=trial, verdict="unresolved", reason="BUILD_CRASH", seconds=0.5, detail="signal 11"
        ),
        form.TrialEnded(trial=trial),
    )


def test_the_verdict_and_the_place_of_the_page_are_printed(report: Report, directory: Path) -> None:
    status, printed = report("--dir", "runs", "-o", "page.html", cwd=directory.parent)
    assert status == 0
    verdict, place = printed.splitlines()
    assert verdict.startswith("[I] The culprit")
    assert "at layer conv1" in verdict
    assert re.fullmatch(r"\[I\] Wrote page\.html \(0\.\d MB\)", place)
    assert 'href="./runs/bad' not in (text := (directory.parent / "page.html").read_text())
    assert '"./runs/bad/replay_N0.json"' in text


def test_the_page_is_in_the_directory_unless_it_is_named(report: Report, directory: Path) -> None:
    assert report("--dir", directory, cwd=directory)[0] == 0
    assert (directory / "report.html").is_file()


def test_an_earlier_report_is_replaced_whole(report: Report, directory: Path) -> None:
    page = directory / "report.html"
    report("--dir", directory, cwd=directory)
    before = page.stat().st_ino
    assert report("--dir", directory, "--title", "Another", cwd=directory)[0] == 0
    assert "<title>Another</title>" in page.read_text()
    assert page.stat().st_ino != before
    assert not list(directory.glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dir", "gone"], "--dir gone: no such directory"),
        (["--dir", "notes.txt"], "--dir notes.txt: no such directory"),
        (["--dir", "empty"], "--dir empty: there is nothing to show"),
        (
            ["--dir", "runs", "-o", "notes.txt"],
            "--output notes.txt: there is a file that is no report of this tool",
        ),
        (["--dir", "runs", "-o", "runs"], "--output runs: is a directory"),
        (["--dir", "runs", "-o", "gone/page.html"], "--output gone/page.html: gone is no directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(
    report: Report, directory: Path, arguments: list[str], message: str
) -> None:
    root = directory.parent
    (root / "notes.txt").write_text("mine")
    (root / "empty").mkdir()
    status, printed = report(*arguments, cwd=root)
    assert status == 1
    assert f"[E] {message}" in printed
    assert (root / "notes.txt").read_text() == "mine"
    assert not list(root.rglob("*.html"))


def test_a_damaged_replay_is_an_error_that_names_it(report: Report, directory: Path) -> None:
    path = directory / "bad" / "replay_N0.json"
    path.write_bytes(path.read_bytes()[:-20])
    status, printed = report("--dir", directory, cwd=directory)
    assert status == 1
    assert "replay_N0.json" in printed


def test_files_left_out_are_noted_on_the_page(report: Report, directory: Path) -> None:
    (directory / "bad" / "notes\x1b[31m.txt").write_text("hello")
    status, printed = report("--dir", directory, cwd=directory)
    assert status == 0
    assert r"notes\x1b[31m.txt" in printed
    assert r"notes\x1b[31m.txt" in (directory / "report.html").read_text()


def test_trials_without_a_build_are_worth_a_page(report: Report, tmp_path: Path) -> None:
    journal(tmp_path, *crash(0), *crash(1))
    status, printed = report("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert "there are no builds" in printed
    text = (tmp_path / "report.html").read_text()
    assert "the build process died: signal 11" in text
    assert "layer conv1, runner Cask, tactic 0x1: misaligned address" in text
    assert "purpose: halves &lt;1&gt;" in text
    assert "&lt;model&gt;.onnx" in text
    assert "The run is not finished." in text


def test_a_journal_that_cannot_be_read_does_not_hide_the_builds(report: Report, directory: Path) -> None:
    (directory / form.NAME).write_text("not a journal\n")
    status, printed = report("--dir", directory, cwd=directory)
    assert status == 0
    assert "[W] The journal is not used" in printed
    assert "[I] The culprit" in printed


def test_what_does_not_fit_the_journal_is_noted(report: Report, directory: Path) -> None:
    place = form.Placement(source="replay.json", destination="bad/replay_N0.json", digest="sha256:0")
    started = form.TrialStarted(trial=0, time="2026-12-02T09:36:00.000+00:00")
    judged = form.TrialJudged(
        trial=0, verdict="bad", reason="CHECK_EXIT_CODE", seconds=1.0, placements=[place]
    )
    journal(directory, started, judged)
    assert report("--dir", directory, cwd=directory)[0] == 0
    assert "bad/replay_N0.json: was changed after it was filed" in (directory / "report.html").read_text()


def test_each_environment_has_a_verdict_of_its_own(report: Report, tmp_path: Path) -> None:
    for version, faulty in (("10.13.3.9", "a"), ("11.4.0.1", "b")):
        for number in range(16):
            bad = number % 2 == 1
            layers = {name: int(bad and name == faulty) for name in ("a", "b")}
            _write(tmp_path / ("bad" if bad else "good") / f"{version}_{number}.json", layers, version)
    status, printed = report("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert "tensorrt 10.13.3.9: The culprit" in printed or "2 suspects" in printed
    text = (tmp_path / "report.html").read_text()
    assert text.count('class="sentence') == 2
    assert text.count('class="map"') == 2
    assert "The builds are of 2 environments" in text


def _write(path: Path, layers: Mapping[str, int], version: str) -> None:
    path.parent.mkdir(exist_ok=True)
    tactics = {name: Tactic(implementation=1, tactic=number) for name, number in layers.items()}
    replay.write(path, Assignment(layers=tactics, source=Source.SELECTOR, metadata={"tensorrt": version}))


@pytest.mark.parametrize(
    "name", ["javascript:alert(1).json", "a b#c?d%.json", "\udcff.json", '"><b>.json', ".x"]
)
def test_urls_lead_to_the_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    page, path = tmp_path / "out" / "page.html", tmp_path / "runs" / name
    for made in (url(path, page), url(path, path.parent / "page.html")):
        assert re.fullmatch(r"(\./|\.\./)[\w./~%-]+", made)
    assert os.fsencode(unquote(url(path, page), errors="surrogateescape")) == os.fsencode(f"../runs/{name}")


def test_a_page_can_be_written_where_no_tensorrt_is(directory: Path) -> None:
    command = (
        "import sys; sys.modules['tensorrt'] = None\nfrom polygraphy_debug_ext.cli import report_run\n"
        f"sys.exit(report_run.run({str(directory)!r}, None, 'T'))"
    )
    assert subprocess.run([sys.executable, "-c", command], capture_output=True, check=False).returncode == 0
