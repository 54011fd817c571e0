"""`debug build` has the options, the words and the order of the stock tool."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from polygraphy.tools.debug.subtool.build import Build as StockBuild

from polygraphy_debug_ext.cli.build import Build

if TYPE_CHECKING:
    from tests.cli.conftest import DebugBuild


def test_no_option_of_the_stock_tool_is_missing_or_takes_something_else() -> None:
    stock, ours = (
        {
            string: (action.dest, action.nargs, action.default, action.type, action.choices, action.required)
            for action in tool.setup_parser()._actions
            for string in (action.option_strings or [action.dest])
        }
        for tool in (StockBuild(), Build())
    )
    assert stock.items() <= ours.items()
    assert sorted(ours.keys() - stock.keys()) == [
        *(
            "--avoid-tactics",
            "--build-failure",
            "--build-timeout",
            "--check-repeat",
            "--check-timeout",
            "--explore",
        ),
        *("--ignore-timing-cache-mismatch", "--in-process", "--max-iterations"),
        *("--require-honoured", "--resume", "--skip-code"),
        "--tactic-source",
    ]


def test_the_check_takes_the_rest_of_the_line() -> None:
    arguments = ["m.onnx", "--until", "2", "--check", "run", "--resume", "--skip", "3", "--check", "-v"]
    args = Build().setup_parser().parse_args(arguments)
    assert args.check == ["run", "--resume", "--skip", "3", "--check", "-v"]
    assert not args.resume


def test_importing_it_is_cheap() -> None:
    program = (
        "import __future__, sys, polygraphy.tools; before = set(sys.modules); import polygraphy_debug_ext.cli.build; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if not name.startswith("polygraphy")] == []


def test_the_log_has_the_lines_of_the_stock_tool_in_their_order(debug_build: DebugBuild) -> None:
    options = ["--until", "2", "--load-timing-cache", "none"]
    assert debug_build.run([*options, "--tactic-source", "selector"], check=["true"]) == 0
    ours = _comparable(debug_build.output)
    # Within one second both would give their artifacts the same names.
    debug_build.artifacts_dir.rename(debug_build.directory / "ours")
    replaced = "import polygraphy_debug_ext.plugin.doors as doors; doors.hang = lambda: None"
    assert debug_build.run(options, check=["true"], before=replaced) == 0
    stock = _comparable(debug_build.output)
    assert "--build-failure" not in debug_build.output
    assert [line for line in ours if line in set(stock)] == stock
    (extra,) = (line for line in ours if line not in set(stock))
    assert extra.startswith("[I] Tactics are recorded from ")
    assert len(ours) <= len(stock) + 1


def _comparable(output: str) -> list[str]:
    """The lines of Polygraphy's log, without what differs between any two runs."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", output)
    text = re.sub(r"\d\d-\d\d-\d\d_\d\d-\d\d-\d\d", "STAMP", text)
    text = re.sub(r"\d+\.\d+(e-\d+)?(s| seconds)", "TIME", text)
    return [line for line in text.splitlines() if line.strip() and "Command: " not in line]


def test_the_parent_never_imports_tensorrt(debug_build: DebugBuild) -> None:
    before = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('imported:', sorted({'tensorrt', 'onnx', 'onnxruntime'} & set(sys.modules))))"
    )
    assert debug_build.run(["--until", "1"], before=before) == 0
    assert "imported: []" in debug_build.output


def test_placeholders_and_environment_tell_the_check_what_it_checks(debug_build: DebugBuild) -> None:
    script = (
        'echo "$@ {other} $POLYGRAPHY_DEBUG_ENGINE $POLYGRAPHY_DEBUG_ITERATION '
        '$POLYGRAPHY_DEBUG_ARTIFACTS_DIR $POLYGRAPHY_DEBUG_REPETITION"; test -s {engine}'
    )
    check = ["sh", "-c", script, "name", "{engine}", "{iteration}", "{artifacts_dir}"]
    assert debug_build.run(["--until", "2", "--show-output", "--check-repeat", "2"], check=check) == 0
    values = re.findall(r"polygraphy_debug\.engine \d sorted \{other\} .*", debug_build.output)
    assert [line for line in values if "Running" not in line] == [
        f"polygraphy_debug.engine {trial} sorted {{other}} polygraphy_debug.engine {trial} sorted {repetition}"
        for trial in (0, 1)
        for repetition in (0, 1)
    ]


def test_output_is_shown_for_failures_only_unless_asked_for(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "echo said; exit $POLYGRAPHY_DEBUG_ITERATION"]
    for options, shown in (((), 1), (("--show-output",), 2), (("--hide-fail-output",), 0)):
        assert debug_build.run(["--until", "2", *options], check=check) == 0
        assert debug_build.output.count("CAPTURED STDOUT ==========\n") == shown
        assert len(re.findall(r"^ *said$", debug_build.output, re.MULTILINE)) == shown


def test_fail_codes_and_expressions_decide_as_in_polygraphy(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "echo value $POLYGRAPHY_DEBUG_ITERATION >&2; exit $POLYGRAPHY_DEBUG_ITERATION"]
    cases = [
        (["--fail-code", "2"], ["good", "good", "bad"]),
        (["--ignore-fail-code", "2"], ["good", "bad", "good"]),
        (["--fail-regex", "value 0", "value 1"], ["bad", "bad", "good"]),
        (["--skip-code", "1"], ["good", "unresolved", "bad"]),
    ]
    for number, (options, verdicts) in enumerate(cases):
        assert debug_build.run(["--until", "3", *options], check=check) == 0
        assert [verdict for _, verdict, _ in debug_build.table()][3 * number :] == verdicts


def test_a_repeated_check_is_in_the_journal_each_time(debug_build: DebugBuild) -> None:
    check = ["sh", "-c", "exit $((POLYGRAPHY_DEBUG_REPETITION == 2))"]
    assert debug_build.run(["--until", "1", "--check-repeat", "5"], check=check) == 0
    (record,) = debug_build.records()
    assert [(each.repetition, each.verdict) for each in record.checked] == [
        (0, "good"),
        (1, "good"),
        (2, "bad"),
    ]
    assert debug_build.table() == [(0, "bad", "CHECK_EXIT_CODE")]


def test_the_iteration_is_described_for_the_check(debug_build: DebugBuild) -> None:
    check = ["cp", "info.json", "seen_{iteration}.json"]
    assert debug_build.run(["--until", "2", "--iter-info", "info.json"], check=check) == 0
    seen = [json.loads((debug_build.directory / f"seen_{trial}.json").read_text()) for trial in (0, 1)]
    assert seen == [{"iteration": 0}, {"iteration": 1}]
    assert not (debug_build.directory / "info.json").exists()


def test_a_person_is_asked_where_there_is_no_check(debug_build: DebugBuild) -> None:
    command = debug_build.command(["--until", "2"])
    command = command[: command.index("--check")]
    done = subprocess.run(
        command,
        cwd=debug_build.directory,
        env=debug_build.environment,
        input="what?\np\nFAIL\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Did 'polygraphy_debug.engine' [p]ass or [f]ail?" in done.stdout
    assert debug_build.table() == [(0, "good", "USER"), (1, "bad", "USER")]


def test_where_nobody_answers_the_run_ends_with_what_to_do(debug_build: DebugBuild) -> None:
    command = debug_build.command(["--until", "2"])
    assert debug_build.finish(debug_build.start(command[: command.index("--check")])) == 1
    assert "Give a command with --check" in debug_build.output


@pytest.mark.parametrize("until", ["good", "bad"])
def test_a_run_ends_with_the_first_verdict_that_it_waits_for(debug_build: DebugBuild, until: str) -> None:
    operator = "!=" if until == "good" else "=="
    check = ["sh", "-c", f"exit $((POLYGRAPHY_DEBUG_ITERATION {operator} 2))"]
    assert debug_build.run(["--until", until], check=check) == 0
    assert debug_build.table()[-1][:2] == (2, until)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--build-timeout", "0"], "--build-timeout 0 is no time"),
        (["--check-timeout", "-1"], "--check-timeout -1 is no time"),
        (["--check-repeat", "0"], "--check-repeat 0 would never check"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    debug_build: DebugBuild, options: list[str], text: str
) -> None:
    assert debug_build.run(["--until", "1", *options]) == 1
    assert text in debug_build.output


def test_a_check_without_words_is_refused(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "1"], check=()) == 1
    assert "--check without a command" in debug_build.output


def test_a_network_that_cannot_be_loaded_ends_the_run(debug_build: DebugBuild) -> None:
    (debug_build.directory / "conv.onnx").write_bytes(b"nothing that could be parsed")
    assert debug_build.run(["--until", "2"]) == 1
    assert "Iteration 1" not in debug_build.output


def test_builds_can_be_made_in_this_process(debug_build: DebugBuild) -> None:
    assert debug_build.run(["--until", "2", "--in-process"]) == 0
    assert [verdict for _, verdict, _ in debug_build.table()] == ["good", "good"]
    debug_build.assert_nothing_lost()
