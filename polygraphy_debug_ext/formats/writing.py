"""Writing files so that a reader finds the old one or the new one whole, whatever happens in between."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Write aside, flush to the disk, and rename: a crash or a full disk leaves what was there.

    Raises:
        OSError: if the file cannot be written; nothing is left beside it then.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
