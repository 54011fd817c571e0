"""`debug diff-tactics` as a user sees it: its lines, its errors, its exit status."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.formats import journal
from polygraphy_debug_ext.model import Source

if TYPE_CHECKING:
    from tests.conftest import MakeAssignment, WriteReplays

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def diff(*arguments: str | Path, cwd: Path) -> tuple[int, list[str]]:
    """Return the exit status and the lines, without colours."""
    command = [*POLYGRAPHY, "debug", "diff-tactics", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, ANSI.sub("", done.stdout).splitlines()


def test_suspects_are_shown_in_the_words_of_polygraphy_with_the_evidence(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(conv1=1, fc=4), assignment(conv1=2, fc=4))
    write_replays(tmp_path / "bad", assignment(conv1=-3, fc=4))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    tensor = "(TensorInfo(DataType.HALF, (1024, 32, 1), 1, 8),)"
    suspect, others = "tactic 0xfffffffffffffffd", "0x0000000000000001, 0x0000000000000002"
    assert status == 0
    assert lines == [
        "[I] Loaded 2 good tactic replays.",
        "[I] Loaded 1 bad tactic replays.",
        "[I] Found potentially bad tactics:",
        "[I] Layer: conv1",
        f"        Algorithms: ['(Implementation: 2147483657, Tactic: -3) | Inputs: {tensor} | Outputs: {tensor}']",
        f"        {suspect}: in 1 of 1 bad build, in 0 of 2 good builds (strong); good builds have {others}",
        f"[I] Prime suspect: {suspect} at layer conv1: it is in every bad build and in no good build.",
    ]


def test_the_seed_workflow_ends_to_the_letter(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "replays" / "good", assignment(a=1), assignment(a=2))
    status, lines = diff("--dir", "replays", cwd=tmp_path)
    assert status == 0
    assert lines[-3:] == [
        "[I] Loaded 2 good tactic replays.",
        "[I] Loaded 0 bad tactic replays.",
        "[I] Could not determine potentially bad tactics. Try generating more tactic replay files?",
    ]


def test_tactics_that_these_builds_cannot_tell_apart_are_said_to_be_so(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1, b=1))
    write_replays(tmp_path / "bad", assignment(a=2, b=2))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert (
        "2 tactics are in every bad build and in no good build: these builds cannot tell them apart"
        in lines[-1]
    )


def test_bad_builds_without_an_answer_have_a_status_of_their_own(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "bad", assignment(a=1), assignment(a=2))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 3
    assert "all of 2 builds failed" in lines[2]
    assert not any(line.startswith("[I] Layer:") for line in lines)
    write_replays(tmp_path / "good", assignment(a=1), assignment(a=2))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 3
    assert "every tactic of the bad builds is in some good build as well" in lines[2]


def test_files_of_another_kind_are_counted_and_named(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    (tmp_path / "bad" / "notes\x1b[31m.txt").write_text("hello")
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert lines[0].endswith("bad: left out 1 file:")
    assert lines[1].strip() == r"notes\x1b[31m.txt: not a tactic replay (not JSON)"


def broken(root: Path, case: str) -> tuple[list[str], str]:
    """Lay out a wrong input; return the arguments, and what must be said."""
    (root / "empty" / "good").mkdir(parents=True)
    (root / "file.txt").write_text("hello")
    return {
        "no directory": (["--dir", "gone"], "--dir gone: no such directory"),
        "a file": (["--dir", "file.txt"], "--dir file.txt: no such directory"),
        "neither": (["--dir", "."], "--dir .: neither 'good' nor 'bad' is in it"),
        "no replay": (["--dir", "empty"], "No tactic replay in empty/good or empty/bad"),
        "nothing": ([], "Either --dir, or both --good and --bad must be specified"),
        "good only": (["--good", "empty"], "Either --dir, or both --good and --bad must be specified"),
        "good gone": (["--good", "gone", "--bad", "empty"], "--good gone: no such file or directory"),
        "bad gone": (["--dir", "empty", "--bad", "gone"], "--bad gone: no such file or directory"),
        "not a replay": (
            ["--good", "empty", "--bad", "file.txt"],
            "file.txt: not a tactic replay (not JSON)",
        ),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        "no directory",
        "a file",
        "neither",
        "no replay",
        "nothing",
        "good only",
        "good gone",
        "bad gone",
        "not a replay",
    ],
)
def test_wrong_input_is_named_with_a_remedy_and_fails(tmp_path: Path, case: str) -> None:
    arguments, message = broken(tmp_path, case)
    status, lines = diff(*arguments, cwd=tmp_path)
    assert status == 1
    assert lines[-2] == f"[E] {message}."
    assert lines[-1].startswith("    ")
    assert not any("Could not determine" in line for line in lines)


def test_a_truncated_replay_fails_and_is_named(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    path = next(write_replays(tmp_path / "bad", assignment(a=2)).iterdir())
    path.write_bytes(path.read_bytes()[:100])
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert lines[0].startswith(f"[E] {path}: truncated tactic replay (line")


def test_different_networks_are_not_compared(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(b=1))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert "have no layer in common: they are of different networks" in lines[0]


def test_layer_information_is_compared_where_there_are_no_replays(cases: Path, tmp_path: Path) -> None:
    root = cases / "12-replay-identical-myelin-hides-it"
    status, lines = diff("--dir", root / "layerinfo", cwd=tmp_path)
    assert status == 0
    assert lines[-1].startswith("[I] Prime suspect: kernel sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_")
    assert " at layer /attn/0/q/MatMul: " in lines[-1]
    shutil.copytree(root, tmp_path / "both")
    for side in ("good", "bad"):
        for path in (tmp_path / "both" / "layerinfo" / side).iterdir():
            path.rename(tmp_path / "both" / "replays" / side / path.name)
    status, lines = diff("--dir", tmp_path / "both" / "replays", cwd=tmp_path)
    assert status == 3
    assert sum("layer information; there are tactic replays" in line for line in lines) == 4


def test_engines_without_tactics_say_how_to_rebuild_them(cases: Path, tmp_path: Path) -> None:
    path = cases / "08-layerinfo-names-only" / "li.json"
    status, lines = diff("--good", path, "--bad", path, cwd=tmp_path)
    assert status == 1
    assert "no tactic information: built with profiling verbosity LAYER_NAMES_ONLY" in lines[0]
    assert "--profilingVerbosity=detailed" in lines[1]


def test_replays_that_were_recorded_in_different_ways_are_not_compared(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", dataclasses.replace(assignment(a=2), source=Source.TIMING_CACHE))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert lines[0].startswith(
        "[E] The replays were recorded in different ways, which cannot be compared (selector: "
    )


def test_builds_of_several_versions_of_tensorrt_are_warned_of(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    for side, version in (("good", "8.6.1"), ("bad", "10.13.3.9")):
        write_replays(tmp_path / side, dataclasses.replace(assignment(a=1), metadata={"tensorrt": version}))
    _, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert lines[0].startswith(
        "[W] The builds are of several versions of TensorRT: 8.6.1 (1 build), 10.13.3.9 (1 build)."
    )


def test_a_journal_is_a_help_and_not_a_condition(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    (tmp_path / "trials.jsonl").write_text("nonsense\n")
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert lines[0].startswith(
        f"[W] The journal is not used: {tmp_path}/trials.jsonl: not a journal of trials."
    )
    assert lines[-1].startswith("[I] Prime suspect")


def test_a_replay_that_was_changed_after_a_run_filed_it_is_flagged(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    (path,) = write_replays(tmp_path / "good", assignment(a=1)).iterdir()
    write_replays(tmp_path / "bad", assignment(a=2))
    placement = journal.Placement(source="replay.json", destination=f"good/{path.name}", digest="sha256:0")
    events: list[journal.Event] = [
        journal.RunStarted(version=1, stamp="", time="", tool="", command=[], directory="", settings={}),
        journal.TrialStarted(trial=0, time=""),
        journal.TrialJudged(trial=0, verdict="good", reason="USER", seconds=1, placements=[placement]),
    ]
    (tmp_path / "trials.jsonl").write_bytes(b"".join(map(journal.encode, events)))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert lines[1].strip() == f"{path}: was changed after it was filed"


def test_tensorrt_is_never_imported(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    program = (
        "import sys, polygraphy.tools\n"
        "status = polygraphy.tools.main()\n"
        "print('loaded:', sorted(name for name in sys.modules if name.startswith('tensorrt')))\n"
        "sys.exit(status)"
    )
    simulator = Path(__file__).parents[2] / "polygraphy_debug_ext" / "simulator" / "site"
    assert (simulator / "tensorrt").is_dir(), "without a tensorrt to import, this test could not fail"
    done = subprocess.run(
        [sys.executable, "-c", program, "debug", "diff-tactics", "--dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(simulator)},
    )
    assert "Prime suspect" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_the_help_names_every_exit_status(tmp_path: Path) -> None:
    status, lines = diff("--help", cwd=tmp_path)
    text = "\n".join(lines)
    assert status == 0
    for number in "013":
        assert re.search(rf"^ +{number}  \w", text, re.MULTILINE)
