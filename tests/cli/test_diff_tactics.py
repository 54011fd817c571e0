"""`debug diff-tactics` as a user sees it: its lines, its errors, its exit status."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from polygraphy_debug_ext.formats import avoid, journal

if TYPE_CHECKING:
    from tests.conftest import MakeAssignment, Polygraphy, WriteReplays

POLYGRAPHY = [sys.executable, "-c", "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


class Diff(Protocol):
    """Runs diff-tactics in a directory."""

    def __call__(self, *arguments: str | Path, cwd: Path) -> tuple[int, list[str]]: ...


@pytest.fixture
def diff(polygraphy_here: Polygraphy) -> Diff:
    """Return the exit status and the lines, without colours."""

    def run(*arguments: str | Path, cwd: Path) -> tuple[int, list[str]]:
        done = polygraphy_here("debug", "diff-tactics", *arguments, cwd=cwd)
        assert "Traceback" not in done.stdout + done.stderr
        return done.returncode, ANSI.sub("", done.stdout).splitlines()

    return run


def test_suspects_are_shown_in_the_words_of_polygraphy_with_the_evidence(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", *([assignment(conv1=1, fc=4), assignment(conv1=2, fc=4)] * 3))
    write_replays(tmp_path / "bad", *([assignment(conv1=-3, fc=4)] * 5))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    tensor = "(TensorInfo(DataType.HALF, (1024, 32, 1), 1, 8),)"
    suspect, others = "tactic 0xfffffffffffffffd", "0x0000000000000001, 0x0000000000000002"
    assert status == 0
    assert lines[:2] == ["[I] Loaded 6 good tactic replays.", "[I] Loaded 5 bad tactic replays."]
    assert re.fullmatch(
        rf"\[I\] The culprit \(probability >?9\d\.\d%\) is {suspect} at layer conv1: "
        r"it is in 5 of 5 bad builds and in 0 of 6 good builds\.",
        lines[2],
    )
    assert lines[3].startswith("[I] 3 suspects by posterior, most telling first")
    assert [line.split()[2:] for line in lines[4:6]] == [
        ["layer", "tactic", "kernel", "with", "without", "stock", "Ochiai", "D*"],
        ["conv1", "0xfffffffffffffffd", "-", "5/0", "0/6", "strong", "1.000", "inf"],
    ]
    assert lines[8:12] == [
        "[I] Found potentially bad tactics:",
        "[I] Layer: conv1",
        f"        Algorithms: ['(Implementation: 2147483657, Tactic: -3) | Inputs: {tensor} | Outputs: {tensor}']",
        f"        {suspect}: in 5 of 5 bad builds and in 0 of 6 good builds (strong); good builds have {others}",
    ]
    assert "bisect-tactics" in lines[12]
    assert len(lines) == 13


def test_the_seed_workflow_ends_to_the_letter(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
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
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", *[assignment(a=1, b=1)] * 8)
    write_replays(tmp_path / "bad", *[assignment(a=2, b=2)] * 8)
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert "One of 2 suspects is the culprit" in lines[2]
    assert "cannot tell them apart: tactic 0x0000000000000002 at layer a; tactic" in lines[2]
    assert "bisect-tactics" in lines[-1]


def test_bad_builds_without_an_answer_have_a_status_of_their_own(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "bad", assignment(a=1), assignment(a=2))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 3
    assert "2 of 2 builds failed" in lines[2]
    assert not any(line.startswith("[I] Layer:") for line in lines)
    write_replays(tmp_path / "good", assignment(a=1), assignment(a=2))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 3
    assert any("every tactic of the bad builds is in some good build as well" in line for line in lines)


@pytest.mark.parametrize(
    ("sides", "status"),
    [
        ({"good": [1, 1, 1], "bad": []}, 0),
        ({"good": [1] * 8, "bad": [2] * 8}, 10),
        ({"good": [1], "bad": [2]}, 11),
        ({"good": [], "bad": [1, 2]}, 11),
        ({"good": [1, 1], "bad": [1, 1]}, 12),
    ],
)
def test_with_exit_code_the_status_tells_the_verdict(
    diff: Diff,
    tmp_path: Path,
    assignment: MakeAssignment,
    write_replays: WriteReplays,
    sides: dict[str, list[int]],
    status: int,
) -> None:
    for side, numbers in sides.items():
        write_replays(tmp_path / side, *(assignment(a=number, b=1) for number in numbers))
    found, lines = diff("--dir", tmp_path, "--exit-code", cwd=tmp_path)
    assert found == status, lines
    found, lines = diff("--dir", tmp_path, "--exit-code", "--format", "json", cwd=tmp_path)
    assert found == json.loads("\n".join(lines))["status"] == status


def test_wrong_files_have_the_status_of_errors_with_exit_code_too(diff: Diff, tmp_path: Path) -> None:
    assert diff("--dir", tmp_path, "--exit-code", cwd=tmp_path)[0] == 1


@pytest.mark.parametrize("form", ["json", "markdown", "junit"])
def test_only_the_document_is_on_standard_output(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays, form: str
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    (tmp_path / "bad" / "notes.txt").write_text("hello")
    command = [*POLYGRAPHY, "debug", "diff-tactics", "--dir", str(tmp_path), "--format", form]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith({"json": "{", "markdown": "### Tactics: ", "junit": "<?xml "}[form])
    assert "left out 1 file" in done.stderr
    written = tmp_path / "answer"
    done = subprocess.run([*command, "--output", str(written)], capture_output=True, text=True, check=True)
    assert written.read_text()[:5] == {"json": '{\n  "', "markdown": "### T", "junit": "<?xml"}[form]
    assert "Not enough evidence: " in done.stdout
    assert ANSI.sub("", done.stdout).splitlines()[-1] == f"[I] Wrote {written}"


def test_text_in_a_file_is_that_of_the_log_without_its_marks(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1), assignment(a=2))
    diff("--dir", tmp_path, "--output", "answer.txt", cwd=tmp_path)
    assert (tmp_path / "answer.txt").read_text().splitlines()[-3:] == [
        "Loaded 2 good tactic replays.",
        "Loaded 0 bad tactic replays.",
        "Could not determine potentially bad tactics. Try generating more tactic replay files?",
    ]


def test_errors_of_documents_are_not_on_standard_output(tmp_path: Path) -> None:
    command = [*POLYGRAPHY, "debug", "diff-tactics", "--dir", "gone", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "--dir gone: no such directory" in done.stderr


@pytest.mark.parametrize(
    ("place", "message"), [("good", "is a directory"), ("gone/x", "gone is no directory")]
)
def test_an_output_that_cannot_be_is_refused_first(
    diff: Diff,
    tmp_path: Path,
    assignment: MakeAssignment,
    write_replays: WriteReplays,
    place: str,
    message: str,
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    status, lines = diff("--dir", ".", "--output", place, cwd=tmp_path)
    assert (status, lines[0]) == (1, f"[E] --output {place}: {message}.")


def test_evidence_is_not_overwritten(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    (path,) = write_replays(tmp_path / "good", assignment(a=1)).iterdir()
    content = path.read_bytes()
    status, lines = diff("--dir", tmp_path, "--output", path, cwd=tmp_path)
    assert (status, path.read_bytes()) == (1, content)
    assert "is one of the files that are compared" in lines[0]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_leaves_early_is_no_error(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays, form: str
) -> None:
    layers = {f"layer{number}": 1 for number in range(2000)}
    write_replays(tmp_path / "good", assignment(**layers))
    write_replays(tmp_path / "bad", assignment(**dict.fromkeys(layers, 2)))
    command = [*POLYGRAPHY, "debug", "diff-tactics", "--dir", str(tmp_path), "--format", form, "--exit-code"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        status = process.wait()
    assert not re.search("Traceback|BrokenPipe", errors), errors
    assert status in {10, 11}


@pytest.mark.parametrize("no_color", ["", "1"])
def test_colours_are_for_terminals_that_want_them(
    tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays, no_color: str
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    ours, theirs = os.openpty()
    environment = {**os.environ, "NO_COLOR": no_color, "COLUMNS": "100", "TERM": "xterm"}
    command = [*POLYGRAPHY, "debug", "diff-tactics", "--dir", str(tmp_path)]
    subprocess.run(command, stdout=theirs, check=True, env=environment)
    os.close(theirs)
    output = b""
    with contextlib.suppress(OSError):
        while part := os.read(ours, 2**16):
            output += part
    os.close(ours)
    (title,) = [line for line in output.decode().splitlines() if "prob." in line]
    assert ("\x1b[1m" in title) is not bool(no_color)
    assert len(ANSI.sub("", title)) <= 100


def test_kernels_are_suspects_wherever_they_are(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", *[assignment(a=1, b=1)] * 6)
    write_replays(tmp_path / "bad", assignment(a=2, b=1), assignment(a=1, b=2), assignment(a=2, b=2))
    status, lines = diff("--dir", tmp_path, "--by", "kernel", "--top", "1", cwd=tmp_path)
    assert status == 0
    assert re.match(
        r"\[I\] The culprit .* is tactic 0x0+2 \(at 2 layers: a, b\): it is in 3 of 3 bad builds", lines[2]
    )
    assert lines[3].startswith("[I] 1 of 2 suspects")
    assert [line for line in lines if line.startswith("[I] Layer:")] == ["[I] Layer: a", "[I] Layer: b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--confidence", "0.5"], "0.5 is not above 0.5 and below 1"),
        (["--confidence", "nan"], "nan is not above 0.5 and below 1"),
        (["--confidence", "much"], "invalid probability value"),
        (["--top", "0"], "0 is not at least 1"),
        (["--method", "guess"], "invalid choice: 'guess'"),
    ],
)
def test_values_that_mean_nothing_are_refused(
    polygraphy_here: Polygraphy, tmp_path: Path, options: list[str], message: str
) -> None:
    done = polygraphy_here("debug", "diff-tactics", "--dir", ".", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr


def test_files_of_another_kind_are_counted_and_named(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    (tmp_path / "bad" / "notes\x1b[31m.txt").write_text("hello")
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert lines[0].endswith("bad: left out 1 file:")
    assert (
        lines[1].strip() == r"notes\x1b[31m.txt: neither a tactic replay, layer information nor a build log"
    )


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
            "file.txt: neither a tactic replay, layer information nor a build log",
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
def test_wrong_input_is_named_with_a_remedy_and_fails(diff: Diff, tmp_path: Path, case: str) -> None:
    arguments, message = broken(tmp_path, case)
    status, lines = diff(*arguments, cwd=tmp_path)
    assert status == 1
    assert lines[-2] == f"[E] {message}."
    assert lines[-1].startswith("    ")
    assert not any("Could not determine" in line for line in lines)


def test_where_nothing_can_be_compared_the_files_are_named(diff: Diff, tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "notes.txt").write_text("hello")
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert lines[0].endswith("good: left out 1 file:")
    assert lines[1].strip().startswith("notes.txt: ")
    assert lines[2].startswith("[E] No tactic replay in ")


def test_a_truncated_replay_fails_and_is_named(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    path = next(write_replays(tmp_path / "bad", assignment(a=2)).iterdir())
    path.write_bytes(path.read_bytes()[:100])
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert lines[0].startswith(f"[E] {path}: truncated tactic replay (line")


def test_different_networks_are_not_compared(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(b=1))
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 1
    assert "have no layer in common: they are of different networks" in lines[0]


def test_layer_information_is_compared_and_said_to_be(diff: Diff, cases: Path, tmp_path: Path) -> None:
    root = cases / "12-replay-identical-myelin-hides-it"
    status, lines = diff("--dir", root / "layerinfo", cwd=tmp_path)
    assert status == 0
    assert lines[0] == "[I] Recognised: good: layer information (2); bad: layer information (2)."
    assert re.search(
        r" kernel sm80_xmma_gemm_f16f16_f16f16_f16_tn_n_\S* at layer /attn/0/q/MatMul\b", lines[3]
    )


def test_engines_without_tactics_say_how_to_rebuild_them(diff: Diff, cases: Path, tmp_path: Path) -> None:
    path = cases / "08-layerinfo-names-only" / "li.json"
    status, lines = diff("--good", path, "--bad", path, cwd=tmp_path)
    assert status == 1
    assert "no tactic information: built with profiling verbosity LAYER_NAMES_ONLY" in lines[0]
    assert "--profilingVerbosity=detailed" in lines[1]


def test_builds_of_several_environments_are_not_mixed(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    old = {"tensorrt": "8.6.1", "gpu": "NVIDIA A100", "host": "a"}
    new = {"tensorrt": "10.13.3.9", "host": "b"}
    builds = {("good", "old"): (1, old), ("bad", "old"): (2, old), ("good", "new"): (2, new)}
    for (side, name), (number, metadata) in builds.items():
        each = dataclasses.replace(assignment(a=number), metadata=metadata)
        write_replays(tmp_path / side / name, *[each] * 8)
    status, lines = diff("--dir", tmp_path, "--exit-code", cwd=tmp_path)
    assert status == 10
    assert lines[0].startswith("[W] The builds are of 2 environments, which differ in tensorrt, gpu: ")
    headings = [line for line in lines if line.startswith("[I] Environment ")]
    assert headings == [
        "[I] Environment tensorrt 10.13.3.9, gpu (unknown) (8 good builds, 0 bad builds):",
        "[I] Environment tensorrt 8.6.1, gpu NVIDIA A100 (8 good builds, 8 bad builds):",
    ]
    assert "The culprit" in lines[lines.index(headings[1]) + 3]
    # Taken together, a good build has it too.
    assert sum("Found potentially bad tactics" in line for line in lines) == 1


def test_different_hosts_are_mentioned_and_compared(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    for side, number in (("good", 1), ("bad", 2)):
        each = dataclasses.replace(assignment(a=number), metadata={"tensorrt": "10.13.3.9", "host": side})
        write_replays(tmp_path / side, each)
    _, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert lines[0] == "[I] The builds differ in host (good, bad); they are compared all the same."
    assert lines[1:3] == ["[I] Loaded 1 good tactic replays.", "[I] Loaded 1 bad tactic replays."]


def test_a_journal_is_a_help_and_not_a_condition(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", assignment(a=1))
    write_replays(tmp_path / "bad", assignment(a=2))
    (tmp_path / "trials.jsonl").write_text("nonsense\n")
    status, lines = diff("--dir", tmp_path, cwd=tmp_path)
    assert status == 0
    assert lines[0].startswith(
        f"[W] The journal is not used: {tmp_path}/trials.jsonl: not a journal of trials."
    )
    assert "[I] Found potentially bad tactics:" in lines


def test_a_replay_that_was_changed_after_a_run_filed_it_is_flagged(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
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
    assert "Found potentially bad tactics" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded: []"


def test_the_help_names_every_exit_status(diff: Diff, tmp_path: Path) -> None:
    status, lines = diff("--help", cwd=tmp_path)
    text = "\n".join(lines)
    assert status == 0
    for number in (0, 1, 3, 10, 11, 12):
        assert re.search(rf"^ +{number} {{1,3}}\w", text, re.MULTILINE)


def test_what_the_verdict_names_goes_to_a_list_of_what_to_avoid(
    diff: Diff, tmp_path: Path, assignment: MakeAssignment, write_replays: WriteReplays
) -> None:
    write_replays(tmp_path / "good", *([assignment(conv1=1, fc=4), assignment(conv1=2, fc=4)] * 3))
    write_replays(tmp_path / "bad", *([assignment(conv1=-3, fc=4)] * 5))
    status, lines = diff("--dir", tmp_path, "--save-avoid", "avoid.json", cwd=tmp_path)
    assert status == 0
    assert lines[-1].startswith("[I] Wrote 1 entry to avoid.json")
    (entry,) = avoid.read(tmp_path / "avoid.json")
    assert (entry.layer, entry.tactic, entry.implementation) == ("conv1", 2**64 - 3, 0x80000009)
    assert entry.kernel is None


def test_where_the_verdict_names_nothing_there_is_nothing_to_avoid(
    diff: Diff, tmp_path: Path, cases: Path
) -> None:
    replays = cases / "19-always-bad-not-flaky" / "replays"
    _, lines = diff("--dir", replays, "--save-avoid", "avoid.json", cwd=tmp_path)
    assert lines[-1] == "[W] --save-avoid: no culprit was found, so avoid.json was not written."
    assert not (tmp_path / "avoid.json").exists()
