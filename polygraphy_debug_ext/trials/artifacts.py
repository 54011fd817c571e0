"""Files the artifacts of trials: into `good/`, `bad/` or `unresolved/`, under Polygraphy's names.

    <artifacts directory>/
        good/<base>_<date>_<time>_N<trial><extension>     date and time are those of the start of the run
        bad/…
        unresolved/…

What is filed was written by the trial itself: before the first trial nothing may lie where an artifact is expected, and
when something cannot be filed it stays where it is, and the run ends, so that no later trial overwrites it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import StorageError, UsageError
from polygraphy_debug_ext.formats.journal import Placement
from polygraphy_debug_ext.model import Verdict
from polygraphy_debug_ext.trials import moving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polygraphy_debug_ext.trials.ports import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """The artifacts that each trial leaves, and where they go. `stamp` is the date and time in their names."""

    root: Path
    stamp: str
    names: tuple[str, ...]

    def require_distinct(self) -> None:
        """Refuse two artifacts that would get one name.

        Raises:
            UsageError: if there are such.
        """
        seen: dict[str, str] = {}
        for name in self.names:
            other = seen.setdefault(_base(name), name)
            if other != name:
                raise UsageError(
                    f"--artifacts {other} and {name} would be filed under the same name",
                    "Give one of them another name.",
                )

    def require_absent(self) -> None:
        """Refuse to start while something lies where an artifact is expected.

        Raises:
            UsageError: if something does.
        """
        present = [name for name in self.names if os.path.lexists(name)]
        if present:
            raise UsageError(
                f"{', '.join(present)} already exists: it would be filed as an artifact of a trial that did not write it",
                "Move it away or remove it. If an interrupted run left it, go on with --resume.",
            )

    def place(self, index: int, verdict: Verdict) -> tuple[list[Placement], list[str]]:
        """Say where what the trial left belongs, and which artifacts it did not leave.

        Raises:
            StorageError: if an artifact cannot be read.
        """
        placements, missing = [], []
        for name in self.names:
            if not os.path.lexists(name):
                missing.append(name)
                continue
            try:
                digest = moving.digest(Path(name))
            except OSError as error:
                raise StorageError(
                    f"Artifact {name} cannot be read ({error.strerror}), so it stays where it is",
                    "Mend that, then go on with --resume.",
                ) from error
            placements.append(
                Placement(source=name, destination=self.destination(name, index, verdict), digest=digest)
            )
        return placements, missing

    def file(self, placements: Sequence[Placement], observer: Observer) -> None:
        """Move the artifacts to their places.

        Raises:
            StorageError: if some cannot be moved; all of them are named, and those that can be moved are.
        """
        refused = []
        for placement in placements:
            destination = self.root / placement.destination
            observer.moving(placement.source, str(destination))
            try:
                moving.move(Path(placement.source), destination)
            except OSError as error:
                refused.append(f"{placement.source} cannot be moved to {destination} ({error.strerror})")
        if refused:
            raise StorageError(
                f"{'; '.join(refused)}: it stays where it is",
                "Make room or mend the permissions, then go on with --resume.",
            )

    def settle(self, index: int, placements: Sequence[Placement], observer: Observer) -> None:
        """Finish what `file` began in a process that died: each artifact ends up at one place.

        Raises:
            StorageError: as `file`.
        """
        pending = []
        for placement in placements:
            source, destination = Path(placement.source), self.root / placement.destination
            here, there = _digest_if_there(source), _digest_if_there(destination)
            if there == placement.digest:
                # The copy was finished, the source not yet removed.
                if here == placement.digest:
                    moving.remove(source)
            elif here is None:
                observer.warn(
                    f"Artifact {source} is neither there nor at {destination}: it was removed by somebody"
                )
            elif here == placement.digest:
                pending.append(placement)
            else:
                observer.warn(
                    f"Artifact {source} was changed after its trial was judged: it goes to unresolved/"
                )
                elsewhere = self.destination(placement.source, index, Verdict.UNRESOLVED)
                pending.append(Placement(source=placement.source, destination=elsewhere, digest=here))
        self.file(pending, observer)

    def remove_leftovers(self) -> None:
        """Remove copies that were not finished."""
        for verdict in Verdict:
            moving.remove_leftovers(self.root / verdict.value)

    def destination(self, name: str, index: int, verdict: Verdict) -> str:
        """Say where an artifact of a trial belongs, within the directory."""
        base, extension = os.path.splitext(_base(name))  # noqa: PTH122 - as Polygraphy splits names
        return f"{verdict.value}/{base}_{self.stamp}_N{index}{extension}"


def _base(name: str) -> str:
    return os.path.basename(os.path.normpath(name))  # noqa: PTH119 - of a name as the user wrote it


def _digest_if_there(path: Path) -> str | None:
    try:
        return moving.digest(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(
            f"{path} cannot be read ({error.strerror})", "Mend that, then go on with --resume."
        ) from error
