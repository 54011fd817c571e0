"""Files that live as long as a trial: the engine, and the description of the iteration for the check."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polygraphy_debug_ext.errors import StorageError, UsageError
from polygraphy_debug_ext.trials import moving

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from polygraphy_debug_ext.trials.ports import Observer


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """The engine of the trial in hand, and the file that says which one it is, if it is wanted.

    `owned` are files that are artifacts as well: filing them is somebody else's work, and losing them nobody's.
    """

    engine: str
    owned: Sequence[str] = ()
    remove_engine: bool = True
    description: str | None = None

    def describe(self, index: int) -> None:
        """Write which iteration this is, as Polygraphy does.

        Raises:
            StorageError: if it cannot be written.
        """
        if self.description is None:
            return
        try:
            Path(self.description).write_text(json.dumps({"iteration": index}, indent=4))
        except OSError as error:
            raise StorageError(
                f"--iteration-info {self.description} cannot be written ({error.strerror})",
                "Make room or mend the permissions, then go on with --resume.",
            ) from error

    def require_absent(self) -> None:
        """Refuse to start while something lies where the engine goes, unless engines are left lying there.

        Raises:
            UsageError: if something does.
        """
        if self.remove_engine and os.path.lexists(self.engine):
            raise UsageError(
                f"{self.engine} already exists, refusing to overwrite",
                "Remove the file, or name another with --intermediate-artifact.",
            )

    @contextmanager
    def cleared(self, observer: Observer) -> Iterator[None]:
        """Remove the files at the end."""
        try:
            yield
        finally:
            self.clear(observer)

    def clear(self, observer: Observer) -> None:
        """Remove the files that are there."""
        owned = {os.path.normpath(name) for name in self.owned}
        for name, wanted in ((self.engine, self.remove_engine), (self.description, True)):
            if name is None or not wanted or os.path.normpath(name) in owned or not os.path.lexists(name):
                continue
            try:
                moving.remove(Path(name))
            except OSError:
                observer.warn(f"Could not clean up: {name}")
