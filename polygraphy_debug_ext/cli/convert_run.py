"""What `debug convert-tactics` does: read whatever there is, write one form."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.cli.engines import read_engine
from polygraphy_debug_ext.cli.front_door import STATUS_ERROR, guarded, say, whoever_reads
from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import csv_table, replay
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.formats.writing import write_atomically
from polygraphy_debug_ext.reports.lines import count
from polygraphy_debug_ext.reports.skipped import skipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.model import Assignment

_KINDS: Final = {".json": "replay", ".csv": "csv", ".cache": "timing-cache", ".timing": "timing-cache"}


def run(inputs: Sequence[str], output: str, kind: str | None) -> int:
    """Convert; return the exit status."""
    with whoever_reads(sys.stdout):
        return guarded(lambda: _convert(inputs, Path(output), kind))
    return STATUS_ERROR


def _convert(inputs: Sequence[str], output: Path, kind: str | None) -> int:
    kind = kind or _kind(output)
    reader = Reader(whole=True, engine=read_engine)
    assignments: list[Assignment] = []
    for name in inputs:
        place = Path(name)
        if not place.exists():
            raise UsageError(f"{place}: no such file or directory", "Check the path.")
        assignments.extend(reader.records(place))
    say(skipped("Input", [(str(each.path), each.reason) for each in reader.skipped], reader.unnamed))
    for each, number in sorted(reader.kinds.items()):
        G_LOGGER.info(f"Read {count(number, each)}")
    if not assignments:
        raise UsageError(
            f"There are no tactics in {', '.join(inputs)}",
            "Name tactic replays, verbose build logs, layer information or engines.",
        )
    if kind == "csv":
        _write(output, csv_table.write(assignments))
    elif kind == "timing-cache":
        _write(output, _timing_cache(assignments))
    else:
        _write_replays(output, assignments)
    return 0


def _kind(output: Path) -> str:
    if output.is_dir() or not output.suffix:
        return "replay"
    kind = _KINDS.get(output.suffix.lower())
    if kind is None:
        raise UsageError(
            f"--output {output}: its extension does not tell what to write",
            f"Use one of {', '.join(_KINDS)}, or say it with --to.",
        )
    return kind


def _write_replays(output: Path, assignments: Sequence[Assignment]) -> None:
    if len(assignments) == 1 and not output.is_dir():
        _write_replay(output, assignments[0])
        return
    if output.suffix and not output.is_dir():
        raise UsageError(
            f"--output {output} can hold one build, but there are {len(assignments)}",
            "Name a directory, or write --to csv.",
        )
    names = [Path(each.origin).name.split(".")[0] or "build" for each in assignments]
    several = {name for name, number in Counter(names).items() if number > 1}
    seen: Counter[str] = Counter()
    for name, assignment in zip(names, assignments, strict=True):
        unique = f"{name}_{seen[name]}" if name in several else name
        seen[name] += 1
        _write_replay(output / f"{unique}.json", assignment)


def _write_replay(path: Path, assignment: Assignment) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replay.write(path, assignment)
    except OSError as error:
        raise _not_written(path, error) from error
    G_LOGGER.info(f"Saved tactic replay file to {path} ({count(len(assignment.layers), 'layer')})")


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise _not_written(path, error) from error
    G_LOGGER.info(f"Wrote {path} ({len(data)} bytes)")


def _not_written(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be written ({error.strerror})", "Name another file, or make room.")


def _timing_cache(assignments: Sequence[Assignment]) -> bytes:
    without = [each.origin for each in assignments if each.timing_cache is None]
    if without:
        raise UsageError(
            f"{without[0]} holds no timing cache, and entries cannot be added to an empty one",
            "Name replays that were recorded from the editable timing cache (debug build --save-tactics on TensorRT 10.8 or "
            "later).",
        )
    from polygraphy_debug_ext.trt.shipping import timing_cache  # noqa: PLC0415 - only here TensorRT is needed

    return timing_cache(assignments)
