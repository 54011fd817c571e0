"""Holds what lies in an artifacts directory against its journal: was it filed there, and is it still what was filed?"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.trials import moving

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What does not fit the journal (a sentence each, with the path), and how many of its trials are unresolved."""

    complaints: tuple[str, ...] = ()
    unresolved: int = 0


def audit(root: Path, used: Iterable[Path]) -> Audit | None:
    """Hold the files `used` as evidence against the journal in `root`; None if there is no journal.

    Files that no run filed are passed over: they may have been put there by hand. Only files in use are read.

    Raises:
        FormatError: if the journal cannot be read.
    """
    path = root / form.NAME
    if not path.exists():
        return None
    filed: dict[str, form.Placement] = {}
    verdicts: list[str] = []
    for run in form.read(path).runs:
        for record in run.trials.values():
            if record.judged is not None:
                verdicts.append(record.judged.verdict)
                filed.update({each.destination: each for each in record.judged.placements})
    paths = list(used)
    complaints = [complaint for each in paths if (complaint := _complaint(root, each, filed))]
    complaints += [f"{root / name}: was filed there, and is gone" for name in _gone(root, paths, filed)]
    return Audit(complaints=tuple(complaints), unresolved=verdicts.count(Verdict.UNRESOLVED.value))


def _gone(root: Path, used: Iterable[Path], filed: dict[str, form.Placement]) -> list[str]:
    """What was filed beside the files in use, from the same source: an engine may well be deleted, evidence not."""
    sources = {filed[name].source for each in used if (name := _name(root, each)) in filed}
    return sorted(
        name
        for name, placement in filed.items()
        if placement.source in sources
        and not name.startswith(f"{Verdict.UNRESOLVED.value}/")
        and not os.path.lexists(root / name)
    )


def _name(root: Path, path: Path) -> str:
    """The name under which the journal knows a file; that of a file from elsewhere is not in it."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _complaint(root: Path, path: Path, filed: dict[str, form.Placement]) -> str:
    placement = filed.get(_name(root, path))
    if placement is not None:
        changed = moving.digest(path) != placement.digest
        return f"{path}: was changed after it was filed" if changed else ""
    others = [other for other in filed if Path(other).name == path.name]
    return f"{path}: was filed as {others[0]}" if others else ""
