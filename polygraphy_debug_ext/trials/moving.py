"""Moving files and directories so that, whatever happens in between, the content is at one place or the other.

Within a file system that is a rename. Across file systems the content is copied aside (under a hidden name in the target
directory), flushed and renamed, and only then removed where it was. Nothing is ever overwritten.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_ASIDE = ".moving-"


def move(source: Path, destination: Path) -> None:
    """Move a file or directory to a place where nothing is.

    Raises:
        OSError: if it cannot be moved; it is whole where it was then.
    """
    if os.path.lexists(destination):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(destination))
    destination.parent.mkdir(parents=True, exist_ok=True)
    try:
        source.rename(destination)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(source, destination)


def remove(path: Path) -> None:
    """Remove a file, a link or a directory with all that is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def remove_leftovers(directory: Path) -> None:
    """Remove copies that were not finished, because the process died; their sources are whole."""
    if not directory.is_dir():
        return
    for path in directory.iterdir():
        if path.name.startswith(_ASIDE):
            remove(path)


def digest(path: Path) -> str:
    """Return a digest of the content of a file, or of the names and contents of all that a directory holds.

    Raises:
        OSError: if something cannot be read.
    """
    digester = hashlib.sha256()
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        for child in sorted(path.iterdir()):
            digester.update(f"{child.name}\0{digest(child)}\n".encode(errors="surrogateescape"))
        return f"directory:{digester.hexdigest()}"
    if stat.S_ISLNK(status.st_mode):
        digester.update(os.fsencode(path.readlink()))
        return f"link:{digester.hexdigest()}"
    if not stat.S_ISREG(status.st_mode):
        # Opening a pipe or a device could wait for ever.
        return f"special:{stat.S_IFMT(status.st_mode):o}"
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digester.update(chunk)
    return f"sha256:{digester.hexdigest()}"


def _move_across(source: Path, destination: Path) -> None:
    aside = destination.with_name(f"{_ASIDE}{os.getpid()}-{destination.name}")
    try:
        if source.is_dir() and not source.is_symlink():
            shutil.copytree(source, aside, symlinks=True)
        else:
            shutil.copy2(source, aside, follow_symlinks=False)
        _flush(aside)
        aside.rename(destination)
    except BaseException:
        if os.path.lexists(aside):
            remove(aside)
        raise
    try:
        remove(source)
    except OSError:
        if source.is_file():
            # It is whole, and it is still in the way: then it was not moved.
            destination.unlink()
        raise


def _flush(path: Path) -> None:
    paths = [path] if not path.is_dir() else [each for each in path.rglob("*") if each.is_file()]
    for each in paths:
        if each.is_symlink():
            continue
        with each.open("rb") as file:
            os.fsync(file.fileno())
