"""The one error type for what a user can mend; everything else keeps its traceback.

An error has two halves: the *problem* (what happened, to which file, layer or option) and the *remedy*
(what to do next). It is caught at the front doors only.
"""

from __future__ import annotations


class DebugExtError(Exception):
    """Something that the user can mend.

    Args:
        problem: What happened, and to which file, layer or option.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}. {self.remedy}"


class UsageError(DebugExtError):
    """Options or arguments that cannot be acted on, for example a check command that does not exist."""


class FormatError(DebugExtError):
    """A file is not what it should be: unreadable, truncated, of another type or of an unknown version.

    Args:
        path: The file.
        reason: What is wrong, and where in the file.
        remedy: What to do about it.
    """

    def __init__(self, path: object, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}", remedy)
        self.path = path
        self.reason = reason


class NotThisFormatError(FormatError):
    """A file is whole, but something else than what was looked for; beside other files it may be left out."""


class BuildError(DebugExtError):
    """An engine could not be built."""


class StorageError(DebugExtError):
    """What must be kept cannot be written or moved: the journal, or an artifact, which stays where it is."""
