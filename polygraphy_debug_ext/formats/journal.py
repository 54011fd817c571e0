"""The journal of a directory of runs, `trials.jsonl`: one event a line, in the order in which things happened.

A run begins with a `run` event, which names the version of the format. Each trial goes through `started`, `built`,
`checked` (once per repetition), `judged` (with the *placements*: which artifact goes where, and its digest) and `ended`.
A line that was being written when the process died has no line feed: it does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from polygraphy_debug_ext.errors import FormatError, NotThisFormatError
from polygraphy_debug_ext.formats.reading import read_text_bytes

if TYPE_CHECKING:
    from pathlib import Path

NAME: Final = "trials.jsonl"
#: Version of the format that is written. Version 1 had no factors: all its builds were free to choose.
VERSION: Final = 2
#: Longer than any line written (settings and artifacts are few), short enough to be shown to a JSON parser.
LINE_LIMIT: Final = 4 * 2**20

_REMEDY: Final = "Move the file away; the artifacts beside it can be used without it."


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", omit_defaults=True):
    """One thing that happened."""


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact: where the trial left it, where it belongs (within the directory), and the digest of its content."""

    source: str
    destination: str
    digest: str


class RunStarted(_Event, tag="run", kw_only=True, frozen=True):
    """A run: `stamp` is the part of its artifacts' names that tells it from others."""

    version: int
    stamp: str
    time: str
    tool: str
    command: list[str]
    directory: str
    settings: dict[str, Any]


class RunResumed(_Event, tag="resumed", kw_only=True, frozen=True):
    """The last run goes on in another process."""

    time: str
    command: list[str]


class Surroundings(_Event, tag="environment", kw_only=True, frozen=True):
    """What builds: versions of TensorRT, Polygraphy and Python, the host."""

    values: dict[str, str]


class Factors(_Event, tag="factors", kw_only=True, frozen=True):
    """What a search varies, by name; trials say which of them by their number, from 0."""

    names: list[str]


class TrialStarted(_Event, tag="started", kw_only=True, frozen=True):
    """A trial is in hand; `bad` are the factors that are to have their bad value (none is named for a build that is free)."""

    trial: int
    time: str
    bad: list[int] | None = None
    purpose: str = ""


class Site(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a build was when it failed."""

    layer: str = ""
    runner: str = ""
    tactic: str = ""
    error: str = ""


class TrialBuilt(_Event, tag="built", kw_only=True, frozen=True):
    """There is an engine; or there is none, for a reason (the name of one of the model's).

    `bad` are the factors that really have their bad value, `neither` those that have neither value.
    """

    trial: int
    seconds: float
    failure: str = ""
    text: str = ""
    site: Site | None = None
    bad: list[int] | None = None
    neither: list[int] = []


class TrialChecked(_Event, tag="checked", kw_only=True, frozen=True):
    """One repetition of the check is over; without an exit status it was a person's answer, or did not end by itself."""

    trial: int
    repetition: int
    seconds: float
    verdict: str
    reason: str
    exit_code: int | None = None
    detail: str = ""


class TrialJudged(_Event, tag="judged", kw_only=True, frozen=True):
    """The verdict is known; the artifacts are about to be placed."""

    trial: int
    verdict: str
    reason: str
    seconds: float
    detail: str = ""
    placements: list[Placement] = []


class TrialEnded(_Event, tag="ended", kw_only=True, frozen=True):
    """The artifacts are placed."""

    trial: int


class RunStopped(_Event, tag="stopped", kw_only=True, frozen=True):
    """The run ended, for a reason (the name of one of the model's)."""

    time: str
    reason: str


Event: TypeAlias = (
    RunStarted
    | RunResumed
    | Surroundings
    | Factors
    | TrialStarted
    | TrialBuilt
    | TrialChecked
    | TrialJudged
    | TrialEnded
    | RunStopped
)

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(Event)


class Record(msgspec.Struct, kw_only=True):
    """What the journal holds of one trial."""

    started: TrialStarted
    built: TrialBuilt | None = None
    checked: list[TrialChecked] = []
    judged: TrialJudged | None = None
    ended: TrialEnded | None = None


class Run(msgspec.Struct, kw_only=True):
    """One run: how it started, its surroundings at last, and its trials by their number."""

    start: RunStarted
    surroundings: Surroundings | None = None
    factors: list[str] = []
    trials: dict[int, Record] = {}
    stopped: RunStopped | None = None


class Journal(msgspec.Struct, kw_only=True):
    """All runs of a directory; `size` is the number of bytes that count."""

    runs: list[Run]
    size: int


def encode(event: Event) -> bytes:
    """Return the line of an event."""
    return _ENCODER.encode(event) + b"\n"


def read(path: Path) -> Journal:
    """Read a journal. A line that was never finished is passed over.

    Raises:
        NotThisFormatError: if the file is something else.
        FormatError: if it cannot be read, is damaged elsewhere than at its end, or is of an unknown version.
    """
    data = read_text_bytes(path)
    size = data.rfind(b"\n") + 1
    runs: list[Run] = []
    for number, line in enumerate(data[:size].split(b"\n")[:-1], start=1):
        event = _decode(path, number, line)
        if isinstance(event, RunStarted):
            _require_known(path, event.version)
            runs.append(Run(start=event, trials={}))
        elif not runs:
            raise NotThisFormatError(path, "not a journal of trials (it does not begin with a run)", _REMEDY)
        elif not _take(runs[-1], event):
            raise FormatError(path, f"line {number}: an event of a trial that was not started", _REMEDY)
    return Journal(runs=runs, size=size)


def _decode(path: Path, number: int, line: bytes) -> Event:
    if len(line) > LINE_LIMIT:
        raise FormatError(path, f"line {number}: longer than the limit of {LINE_LIMIT} bytes", _REMEDY)
    try:
        return _DECODER.decode(line)
    except (msgspec.MsgspecError, RecursionError) as error:
        if number == 1:
            _require_known(path, _version_of(line))
            raise NotThisFormatError(path, "not a journal of trials", _REMEDY) from error
        raise FormatError(path, f"line {number}: damaged ({error})", _REMEDY) from error


def _version_of(line: bytes) -> int:
    """The version in a line that cannot be read otherwise, or that of this reader if it names none."""
    try:
        document = msgspec.json.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return VERSION
    version = document.get("version", VERSION) if isinstance(document, dict) else VERSION
    return version if isinstance(version, int) else VERSION


def _require_known(path: Path, version: int) -> None:
    if not 1 <= version <= VERSION:
        raise FormatError(
            path,
            f"a journal of version {version}, but this polygraphy-debug-ext reads versions 1 to {VERSION}",
            "Use the polygraphy-debug-ext that wrote it, or name another --artifacts-dir.",
        )


def _take(run: Run, event: Event) -> bool:
    """Put an event where it belongs; say whether there is such a place."""
    match event:
        case TrialStarted():
            run.trials[event.trial] = Record(started=event, checked=[])
            run.stopped = None
        case Surroundings():
            run.surroundings = event
        case Factors():
            run.factors = event.names
        case RunStopped():
            run.stopped = event
        case TrialBuilt() | TrialChecked() | TrialJudged() | TrialEnded():
            if event.trial not in run.trials:
                return False
            _take_for(run.trials[event.trial], event)
    return True


def _take_for(record: Record, event: TrialBuilt | TrialChecked | TrialJudged | TrialEnded) -> None:
    match event:
        case TrialBuilt():
            record.built = event
        case TrialChecked():
            record.checked.append(event)
        case TrialJudged():
            record.judged = event
        case TrialEnded():
            record.ended = event
