"""Verbose build logs of TensorRT 7 to 11, behind any prefix: what each build chose, or where it was when it failed.

The first error counts: after a CUDA error that sticks, every later tactic fails with the same text. A process that died
leaves a log that just ends; the last `Timing Runner` line names the place. Logs are streamed: of a log of any size, one chunk and
what its builds chose is in memory.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats import log_lines as lines
from polygraphy_debug_ext.formats.layer_information import NAMES_ONLY
from polygraphy_debug_ext.formats.log_assignment import detailed, listed
from polygraphy_debug_ext.formats.log_builds import Build, BuildLog, Failure, LoggedBuild, Status
from polygraphy_debug_ext.formats.log_lines import hexadecimal
from polygraphy_debug_ext.formats.log_scanner import Scanner
from polygraphy_debug_ext.formats.reading import CHUNK_SIZE, LINE_LIMIT, chunks, head
from polygraphy_debug_ext.model import Assignment, Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["BuildLog", "Failure", "LoggedBuild", "Status", "failure", "hexadecimal", "read", "recognises"]

#: What lines of TensorRT begin with, after their prefix: the words to look for, and the line as a whole.
_WORDS: Final = (
    (b"--------------- Timing Runner: ", rb".*\)"),
    (b"=============== Computing costs for ", rb".+"),
    (b"*************** Autotuning ", rb".+"),
    (b">>>>>>>>>>>>>>> Chose Runner Type: ", rb".+"),
    (lines.LIST, rb"\s*"),
    (b"Layer(", rb"\w+\): .*, Tactic: .*"),
    (lines.OP, rb".+:.*"),
    (lines.SKIPPING, rb" ?(0x[0-9a-fA-F]+|-?\d+) due to .*"),
    (lines.RUNNING, rb".*"),
    (b"Constructing optimization profile number ", rb".*"),
    (b"[MemUsage", rb"(Stats|Change)\].*"),
    (b"[TRT] ", rb".*"),
    (b"[TensorRT] ", rb"(VERBOSE|INFO|WARNING|ERROR): .*"),
    (b"Engine generation completed in ", rb".*"),
)
_LINES: Final = tuple((word, re.compile(re.escape(word) + rest)) for word, rest in _WORDS)

#: How often a word is looked for that is there, but not as in a log.
_TRIES: Final = 20

_REMEDY: Final = "Build with --verbose (trtexec), or -vvv or TRT_LOGGER at VERBOSE (Polygraphy, Python), and keep all of the log."


def recognises(head: bytes) -> bool:
    """Whether a file that begins with `head` is a log that TensorRT, or a tool around it, wrote."""
    text = lines.plain(head)
    return any(_has_line(text, word, pattern) for word, pattern in _LINES)


def _has_line(text: bytes, word: bytes, pattern: re.Pattern[bytes]) -> bool:
    at = -1
    for _ in range(_TRIES):
        at = text.find(word, at + 1)
        if at < 0:
            return False
        begin = text.rfind(b"\n", 0, at) + 1
        end = text.find(b"\n", at)
        end = len(text) if end < 0 else end
        if pattern.fullmatch(text, at, end) and lines.is_alone(text[begin : at + len(word)], word):
            return True
        at = end
    return False


def read(path: Path) -> BuildLog:
    """Read a log.

    Raises:
        NotThisFormatError: if no build of TensorRT is in it, or none of its lines is about tactics.
        FormatError: if it cannot be read, or a list of layers is damaged.
    """
    found: list[LoggedBuild] = []
    scanner = Scanner(str(path), lambda build: found.append(_logged(build, scanner, path)))
    for chunk in chunks(path):
        scanner.feed(chunk)
    scanner.end()
    if not found:
        if layer_lines.has_names_only(head(path)):
            raise NotThisFormatError(path, *NAMES_ONLY)
        raise NotThisFormatError(path, "a log without any line about tactics", _REMEDY)
    return BuildLog(builds=tuple(found))


def failure(log: Iterable[bytes]) -> Failure:
    """Say what the log of a failed build tells: of its last build, if there are several."""
    found: list[Failure] = [Build("").failure()]
    scanner = Scanner("the log of the build", lambda build: found.append(build.failure()))
    for chunk in _joined(log):
        scanner.feed(chunk)
    scanner.end()
    return found[-1]


def _joined(log: Iterable[bytes]) -> Iterator[bytes]:
    """Lines, with or without line feed, in chunks."""
    pieces: list[bytes] = []
    size = 0
    for line in log:
        pieces.append(line[:LINE_LIMIT].removesuffix(b"\n"))
        size += len(pieces[-1])
        if size >= CHUNK_SIZE:
            yield b"\n".join([*pieces, b""])
            pieces, size = [], 0
    yield b"\n".join([*pieces, b""])


def _logged(build: Build, scanner: Scanner, path: Path) -> LoggedBuild:
    if build.damage:
        raise FormatError(
            path, f"the list of layers is damaged at {build.damage!r}", "Take the log from its source again."
        )
    status, problem = _outcome(build)
    return LoggedBuild(
        status=status,
        assignment=_assignment(build, scanner, path) if status is Status.FINISHED else None,
        failure=build.failure(),
        tensorrt=build.tensorrt,
        problem=problem,
        ops=tuple(pick.op for pick in build.picks.all()),
    )


def _outcome(build: Build) -> tuple[Status, str]:
    if build.finished and not build.whole:
        return Status.TRUNCATED, "the log ends in the list of layers"
    if build.listed or build.details:
        return Status.FINISHED, ""
    if build.finished:
        return Status.UNKNOWN, "the list of layers is empty"
    if build.failed_node:
        return Status.FAILED, f"the build failed: no implementation was found for {build.failed_node}"
    if build.timing:
        layer, _ = build.site()
        return Status.TRUNCATED, f"the log ends while {layer} is being timed"
    return Status.UNKNOWN, "the log has no list of layers"


def _assignment(build: Build, scanner: Scanner, path: Path) -> Assignment:
    if build.details:
        layers = detailed(tuple(build.details), build.picks.all())
    else:
        layers = listed(build.listed, scanner.kernels, build.picks)
    return Assignment(
        layers=layers,
        source=Source.LOG,
        origin=str(path),
        variant="build log",
        fields=frozenset(),
        metadata={"tensorrt": build.tensorrt} if build.tensorrt else {},
    )
