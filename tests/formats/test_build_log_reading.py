"""What builds chose is read from logs as they come: with any prefix, several builds, cut off, interrupted, hostile, large."""

from __future__ import annotations

import gzip
import json
import random
import resource
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import build_log, layer_lines
from polygraphy_debug_ext.formats.build_log import Status
from polygraphy_debug_ext.formats.log_scanner import Scanner
from polygraphy_debug_ext.model import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polygraphy_debug_ext.formats.build_log import LoggedBuild
    from polygraphy_debug_ext.formats.log_builds import Build
    from polygraphy_debug_ext.model import Assignment

CASES = Path(__file__).parent.parent / "data" / "cases"
TRTEXEC = (CASES / "01-trt10-trtexec-verbose" / "build.log").read_bytes()
DECIMAL = (CASES / "04-trt82-decimal-tactics-log" / "build_python_logger.log").read_bytes()
KILLED = (CASES / "17-build-crash-in-autotune" / "bad" / "build_killed.log").read_bytes()
FAILED = (CASES / "17-build-crash-in-autotune" / "bad" / "build_fail.log").read_bytes()
START = TRTEXEC.index(b"Engine Layer Information:")
END = TRTEXEC.index(b"\n[", START) + 1

V = "[V] [TRT] "
KEYS = ("0x1814870c44ff0f8574df6e3dda04cbd7", "0xa946a04e9ff35ab32cc9d354d76fd970")


def table(op: str, key: str, tactic: str, kernel: str = "sm80_gemm", onnx: str = "") -> str:
    return (
        f"{V} (foreignNode) Autotuning op {op}(key: {key}):{onnx}\n"
        f"{V} (foreignNode) Sorted table of all evaluated tactics:\n"
        f"{V} (foreignNode) tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter\n"
        f"{V} (foreignNode)    7, 0.0102640, 1.10000, 0.5, sm80_other, 0x48ebd65304a98,\n"
        f"{V} (foreignNode)    3, 0.0112640, 1.00000, 0.50673, {kernel}, {tactic},\n"
        f"{V} (foreignNode) The selected tactic is (tactic hash, cost(in ms)):{tactic},  0.011264\n"
    )


def tuned(graph: str, formats: str, *tables: str) -> str:
    return (
        f"{V}=============== Computing costs for {graph}\n"
        f"{V}*************** Autotuning format combination: {formats} ***************\n"
        f"{V}--------------- Timing Runner: {graph} (Myelin[0x80000023])\n" + "".join(tables)
    )


def final(*layers: str) -> str:
    return "\n".join([f"{V}Engine Layer Information:", *layers, f"{V}[MemUsageStats] Peak memory usage", ""])


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes | str], tuple[LoggedBuild, ...]]:
    path = tmp_path / "build.log"

    def of(log: bytes | str) -> tuple[LoggedBuild, ...]:
        path.write_bytes(log.encode() if isinstance(log, str) else log)
        return build_log.read(path).builds

    return of


@pytest.fixture
def one(read: Callable[[bytes | str], tuple[LoggedBuild, ...]]) -> Callable[[bytes | str], Assignment]:
    def of(log: bytes | str) -> Assignment:
        (build,) = read(log)
        assert build.status is Status.FINISHED
        assert build.assignment is not None
        return build.assignment

    return of


def scanned(log: bytes, lines: int) -> tuple[Sequence[Build], Scanner]:
    """The log, taken a few lines at a time."""
    found: list[Build] = []
    scanner = Scanner("log", found.append)
    pieces = log.splitlines(keepends=True)
    for start in range(0, len(pieces), lines):
        scanner.feed(b"".join(pieces[start : start + lines]))
    scanner.end()
    return found, scanner


def test_an_assignment_says_where_it_comes_from(one: Callable[[bytes | str], Assignment]) -> None:
    assignment = one(TRTEXEC)
    assert assignment.source is Source.LOG
    assert assignment.origin.endswith("build.log")
    assert assignment.variant == "build log"
    assert assignment.fields == frozenset()
    assert not any(tactic.swallowed for tactic in assignment.layers.values())


@pytest.mark.parametrize(
    "prefix",
    [b"", b"    ", b"[TensorRT] VERBOSE: ", b"2026-08-11T09:14:20.1234567Z ", b"I0811 09:14:20.123456 1 tensorrt.cc:105] "],
)  # fmt: skip
def test_prefixes_change_nothing(prefix: bytes, one: Callable[[bytes | str], Assignment]) -> None:
    lines = [
        prefix + line.removeprefix(b"[TensorRT] VERBOSE: ").removeprefix(b"[TensorRT] INFO: ")
        for line in DECIMAL.splitlines()
    ]
    assert one(b"\n".join([*lines, b""])).layers == one(DECIMAL).layers
    assert build_log.recognises(b"\n".join(lines))


def test_colours_and_line_ends_of_terminals_change_nothing(one: Callable[[bytes | str], Assignment]) -> None:
    coloured = b"".join(b"\x1b[38;5;104m" + line + b"\x1b[0m\r\n" for line in TRTEXEC.splitlines())
    assert one(coloured).layers == one(TRTEXEC).layers
    assert one(coloured.replace(b"\r\n", b"\r\r\n")).layers == one(TRTEXEC).layers
    assert build_log.recognises(coloured)


@pytest.mark.parametrize("lines", [1, 2, 3, 7, 1000])
def test_it_does_not_matter_how_a_log_is_cut_into_chunks(lines: int) -> None:
    onnx = "[ONNX Layer: a][ONNX Layer: b]"
    inner = tuned("{g}", "Float(1) -> Float(1)", table("op", KEYS[0], "0x1940df769f583", onnx=f" {onnx}"))
    myelin = final("Layer(Myelin): {g}, Tactic: 0x0000000000000000, x (Float[1]) -> y (Float[1])")
    log = KILLED + TRTEXEC + (inner + myelin).encode() + FAILED + DECIMAL + KILLED
    whole, _ = scanned(log, 10**6)
    parts, _ = scanned(log, lines)
    assert len(whole) == 5
    for left, right in zip(parts, whole, strict=True):
        assert left.failure() == right.failure()
        assert left.listed == right.listed
        assert left.picks.all() == right.picks.all()
        assert (left.whole, left.tensorrt) == (right.whole, right.tensorrt)


def test_every_build_of_a_log_is_told_apart(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    builds = read(KILLED + TRTEXEC + DECIMAL + FAILED + TRTEXEC + KILLED)
    assert [build.status for build in builds] == [
        Status.TRUNCATED, Status.FINISHED, Status.FINISHED, Status.FAILED, Status.FINISHED, Status.TRUNCATED,
    ]  # fmt: skip
    assert [build.tensorrt for build in builds] == ["", *["10.16.1"] * 5]
    assert builds[0].failure.last_timed == builds[5].failure.last_timed
    assert all((build.assignment is None) == bool(build.problem) for build in builds)


def test_a_log_that_is_cut_within_the_list_is_truncated(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    places = random.Random(5).sample(range(START + 30, END), 150)
    for place in [START + len(b"Engine Layer Information:"), *places, END - 1, END]:
        (build,) = read(TRTEXEC[:place])
        assert build.status is Status.TRUNCATED, place
        assert build.assignment is None


def test_a_list_that_was_cut_out_of_a_log_is_taken_as_it_is(
    one: Callable[[bytes | str], Assignment], read: Callable[[bytes | str], tuple[LoggedBuild, ...]]
) -> None:
    begin = TRTEXEC.rindex(b"\n", 0, START) + 1
    assert one(b"\n" + TRTEXEC[begin:END]).layers.keys() == one(TRTEXEC).layers.keys()
    assert one(TRTEXEC[begin : END - 1]).layers.keys() == one(TRTEXEC).layers.keys()
    last = TRTEXEC.rindex(b", Tactic: ", 0, END)
    (build,) = read(TRTEXEC[begin : last + 20])
    assert build.status is Status.TRUNCATED


def test_lines_of_others_within_the_list_are_passed_over(one: Callable[[bytes | str], Assignment]) -> None:
    lines = TRTEXEC[START:END].splitlines(keepends=True)
    broken = TRTEXEC[:START] + b"[I] somebody else\n\n".join(lines) + TRTEXEC[END:]
    assert one(broken).layers == one(TRTEXEC).layers


def test_a_damaged_layer_is_an_error_that_quotes_it(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    damaged = TRTEXEC[:START] + TRTEXEC[START:].replace(b", Tactic: 0x2a438f2a3172f442", b"", 1)
    with pytest.raises(FormatError, match=r"build\.log: the list of layers is damaged at .*MaxPool"):
        read(damaged)
    # Where a build died is still of interest.
    assert build_log.failure(damaged.splitlines()).finished


def test_equal_names_are_numbered(one: Callable[[bytes | str], Assignment]) -> None:
    layer = "Layer(Shuffle): a, Tactic: 0x0000000000000001, x (Float[1]) -> y (Float[1])"
    assert list(one(final(layer, layer, layer.replace(": a,", ": b,"))).layers) == ["a", "a #2", "b"]


def test_a_kernel_that_two_names_share_a_hash_with_is_not_named(
    one: Callable[[bytes | str], Assignment],
) -> None:
    layer = "Layer(X): a, Tactic: 0x2a438f2a3172f442, x (Float[1]) -> y (Float[1])"
    names = f"{V}Tactic Name: k1 Tactic: 0x2a438f2a3172f442 Time: 1\n"
    assert one(names + final(layer)).layers["a"].kernel == "k1"
    assert one(names + names.replace("k1", "k2") + final(layer)).layers["a"].kernel is None


MYELIN = "Layer(Myelin): {g}, Tactic: 0x0000000000000000, x (Half[1,8:8]) -> y (Float[1])"
FITS, OTHER = "Half(1:8) -> Float(1)", "Float(1) -> Float(1)"


def test_an_op_is_told_where_its_combination_of_formats_is_in_the_engine(
    one: Callable[[bytes | str], Assignment],
) -> None:
    first = tuned("{g}", OTHER, table("op", KEYS[0], "0x1", "sm80_float"))
    second = tuned("{g}", FITS, table("op", KEYS[1], "0x2", "sm80_half", " [ONNX Layer: a][ONNX Layer: b]"))
    for log in (first + second, second + first, second):
        layers = one(log + final(MYELIN)).layers
        assert list(layers) == ["{g}", "a + b"]
        tactic = layers["a + b"]
        assert (tactic.tactic, tactic.kernel, tactic.cache_key, tactic.time_ms) == (
            2,
            "sm80_half",
            KEYS[1],
            0.011264,
        )
        assert not tactic.swallowed


@pytest.mark.parametrize(
    "log",
    [
        tuned("{g}", OTHER, table("op", KEYS[0], "0x1")),
        tuned("{other}", FITS, table("op", KEYS[0], "0x1")),
        tuned("{g}", FITS, table("op", KEYS[0], "0x1"), table("op", KEYS[1], "0x2")),
        tuned("{g}", FITS, table("op", KEYS[0], "0x1"))
        + tuned("{g}", FITS.replace("1:8", "2:8"), table("op", KEYS[1], "0x2")),
        tuned("{g}", FITS, table("op", KEYS[0], "0x1").replace("The selected", "Unselected")),
        tuned("{g}", FITS, table("op", KEYS[0], "0x1").replace(f"(key: {KEYS[0]})", "")),
        tuned("{g}", FITS, table("op", KEYS[0], "0x1")) + f"{V}Building graph using backend strategy 2\n",
        table("op", KEYS[0], "0x1"),
    ],
    ids=["other formats", "other graph", "tuned twice", "two layouts", "not selected", "no key", "dropped", "nowhere"],
)  # fmt: skip
def test_an_op_is_not_told_where_the_log_leaves_doubt(
    log: str, one: Callable[[bytes | str], Assignment]
) -> None:
    assert list(one(log + final(MYELIN)).layers) == ["{g}"]


def test_ops_of_other_profiles_and_of_equal_names_are_kept_apart(
    one: Callable[[bytes | str], Assignment],
) -> None:
    second = MYELIN.replace("{g}", "{g} [profile 1]").replace("(Half", "(Half")
    onnx = " [ONNX Layer: a]"
    log = tuned("{g}", FITS, table("op", KEYS[0], "0x1", onnx=onnx), table("op2", KEYS[1], "0x2", onnx=onnx))
    log += tuned("{g} [profile 1]", FITS, table("op", KEYS[1], "0x3", onnx=onnx))
    layers = one(log + final(MYELIN, second)).layers
    assert list(layers) == ["{g}", "{g} [profile 1]", "op", "op2", "a [profile 1]"]


DETAILS = """Layers:
Name: first, LayerType: CaskPooling, Inputs: [], Outputs: [], TacticName: sm80_pool, TacticValue: 0x2a438f2a3172f442, StreamId: 0, Metadata: [ONNX Layer: first]
Name: op_myl0_0, LayerType: gemm, Inputs: [], Outputs: [], TacticName: sm80_gemm, StreamId: 0, Metadata: [ONNX Layer: flat]\x1f[ONNX Layer: a]

Bindings:
x
"""


def test_details_of_the_engine_say_all_where_a_tool_printed_them(
    one: Callable[[bytes | str], Assignment],
) -> None:
    picks = tuned("{g}", OTHER, table("op", KEYS[0], "0x1"), table("swallowed", KEYS[1], "0x2", "sm80_none"))
    layers = one(picks + final(MYELIN) + f"[I] {DETAILS}").layers
    assert list(layers) == ["first", "flat + a"]
    assert layers["first"].tactic == 0x2A438F2A3172F442
    assert (layers["flat + a"].tactic, layers["flat + a"].cache_key) == (1, KEYS[0])


def test_names_alone_say_which_option_is_missing(
    one: Callable[[bytes | str], Assignment], read: Callable[[bytes | str], tuple[LoggedBuild, ...]]
) -> None:
    names = "[I] Layers:\nfirst\n{g}\n\nBindings:\nx\n"
    assert list(one(final(MYELIN) + names).layers) == ["{g}"]
    with pytest.raises(NotThisFormatError, match="LAYER_NAMES_ONLY") as caught:
        read(names)
    assert "--profilingVerbosity=detailed" in caught.value.remedy


def test_details_that_are_cut_off_are_no_build(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    (build,) = read(f"[V] {DETAILS}"[: DETAILS.index("\n\n")])
    assert build.status is Status.TRUNCATED


def test_two_lists_with_details_are_two_builds(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    assert [build.status for build in read(DETAILS * 2)] == [Status.FINISHED] * 2


def test_a_log_without_tactics_says_how_to_get_them(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    log = "[08/11/2026-09:14:20] [I] [TRT] Loaded engine size: 1 MiB\n"
    assert build_log.recognises(log.encode())
    with pytest.raises(NotThisFormatError, match="a log without any line about tactics") as caught:
        read(log)
    assert "--verbose" in caught.value.remedy


def test_an_empty_list_is_no_build_that_chose_nothing(
    read: Callable[[bytes | str], tuple[LoggedBuild, ...]],
) -> None:
    (build,) = read(final())
    assert (build.status, build.assignment) == (Status.UNKNOWN, None)


def test_compressed_logs_are_read(one: Callable[[bytes | str], Assignment]) -> None:
    assert one(gzip.compress(TRTEXEC)).layers == one(TRTEXEC).layers


def test_other_encodings_are_named(read: Callable[[bytes | str], tuple[LoggedBuild, ...]]) -> None:
    with pytest.raises(FormatError, match="UTF-16 text"):
        read(TRTEXEC.decode().encode("utf-16"))


def test_bytes_that_are_no_text_are_read_all_the_same(one: Callable[[bytes | str], Assignment]) -> None:
    odd = TRTEXEC.replace(b"/stem/pool", b"/st\xffem/\0pool").replace(b"[V]", b"\0\xfe[V]")
    names = [name.replace("/stem/pool", "/st\ufffdem/\0pool") for name in one(TRTEXEC).layers]
    assert list(one(odd).layers) == names


@pytest.mark.parametrize(
    "text",
    [
        b"", b"\0" * 1000, b"{}", b'{"replay": {"Timing Runner: a (b)": {}}}', b'[\n  "Engine Layer Information:"\n]',
        json.dumps({"log": TRTEXEC.decode()}, indent=4).encode(), TRTEXEC.decode().encode("utf-16"),
        b"Meeting notes\n\nThe tactic 0x123 of conv1 is bad. Skipping tactic 5 due to exception was in the log.\n",
        b"# Engine Layer Information: how to read it\nSee Layer(CaskConvolution): conv, Tactic: 0x1, x -> y\n",
        b"[I] Finished 2 iteration(s) | Passed: 2/2\n[I] Running check command: true\n", b"passed\n",
        random.Random(3).randbytes(2**16),
    ],
)  # fmt: skip
def test_other_files_are_not_taken_for_logs(text: bytes) -> None:
    assert not build_log.recognises(text)
    assert not layer_lines.recognises(text)


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.log")), ids=lambda path: "/".join(path.parts[-2:]))
def test_logs_are_taken_for_logs_and_nothing_else_is(path: Path) -> None:
    head = path.read_bytes()[: 2**16]
    assert build_log.recognises(head)
    assert not layer_lines.recognises(head)


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.[jm]*")), ids=lambda path: "/".join(path.parts[-2:]))
def test_data_and_notes_about_logs_are_not_taken_for_logs(path: Path) -> None:
    assert not build_log.recognises(path.read_bytes()[: 2**16])


def mutated(log: bytes, random_: random.Random) -> bytes:
    """The log with some pieces lost, repeated, moved or replaced."""
    data = bytearray(log)
    for _ in range(random_.randint(1, 8)):
        at, to = random_.randrange(len(data)), random_.randrange(len(data))
        size = random_.choice([1, 1, 10, 200])
        piece = random_.choice(
            [b"", data[to : to + size], random_.randbytes(size), b"\n", b"\0", b", Tactic: ", b"\x1b["]
        )
        data[at : at + random_.choice([0, size])] = piece
    return bytes(data)


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.log")), ids=lambda path: "/".join(path.parts[-2:]))
def test_whatever_happened_to_a_log_is_an_answer_or_a_typed_error(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "build.log"
    random_ = random.Random(path.name)
    for _ in range(60):
        log = mutated(path.read_bytes(), random_)
        copy.write_bytes(log)
        build_log.failure(log.splitlines())
        build_log.recognises(log)
        try:
            builds = build_log.read(copy).builds
        except FormatError:
            continue
        assert builds
        assert all((build.assignment is None) == bool(build.problem) for build in builds)


MEASURE = """
import sys
from pathlib import Path
from polygraphy_debug_ext.formats import build_log
(build,) = build_log.read(Path(sys.argv[1])).builds
assert build.assignment is not None and len(build.assignment.layers) == 6, build
[peak] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line]
print(peak)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_large_log_takes_no_more_memory_than_a_small_one(tmp_path: Path) -> None:
    path = tmp_path / "build.log"
    before = TRTEXEC[:START].replace(b"&&&& RUNNING", b"[I]")
    taken = []
    for copies in (1, 3000):
        with path.open("wb") as file:
            for _ in range(copies):
                file.write(before + b"x" * 10_000)
            file.write(b"\n" + TRTEXEC[START - 40 :])
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True
        )
        taken.append(int(done.stdout))
    assert path.stat().st_size > 60 * 2**20
    assert taken[1] - taken[0] < 8 * 2**10


def test_a_hundred_thousand_layers_are_read_in_seconds(one: Callable[[bytes | str], Assignment]) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    lines = [
        f"Layer(X): layer {number}, Tactic: {number:#018x}, x (Float[1]) -> y (Float[1])"
        for number in range(100_000)
    ]
    assert len(one(final(*lines)).layers) == 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - used < 20
