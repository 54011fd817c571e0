"""What a build log says of its builds: which tactics each one chose, or where it was when it failed.

- *list*: the lines after `Engine Layer Information:`, one for each layer of the engine. It alone decides what was chosen.
- *details*: the list of layers of `layer_lines`, where a tool printed it as well (`trtexec --dumpLayerInfo`), or the log has
  nothing else (TensorRT-RTX). It shows what is inside Myelin graphs.
- *pick*: what an op of a Myelin graph got in an autotuning table of an editable timing cache.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.model import FaultSite

if TYPE_CHECKING:
    from polygraphy_debug_ext.formats.autotuning import TunedOp
    from polygraphy_debug_ext.model import Assignment


class Status(enum.Enum):
    """How a build ended, as far as the log tells."""

    FINISHED = "finished"
    FAILED = "failed"
    TRUNCATED = "truncated"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What a log tells about the failure of its build.

    `first_error` is where the first tactic failed, `last_timed` the place of the last timing, `skipped` the tactics that
    failed (of very many, the first ones), `failed_node` the layer for which nothing was left; `finished` says that the build
    got to its end.
    """

    first_error: FaultSite | None
    last_timed: FaultSite | None
    skipped: tuple[str, ...]
    failed_node: str
    finished: bool

    @property
    def site(self) -> FaultSite | None:
        """The best answer to where it was."""
        if self.first_error is not None:
            return self.first_error
        if self.failed_node:
            return FaultSite(layer=self.failed_node, error="no implementation was found")
        return None if self.finished else self.last_timed


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedBuild:
    """One build of a log.

    `assignment` is what it chose (only if it finished), `problem` why there is none, `tensorrt` the version as the log has it
    ("10.16.1"; empty if it does not tell). `ops` are those of Myelin graphs whose picks the log shows, without their
    candidates, whether the engine has them or not; an op that was tuned for several formats is there as often.
    """

    status: Status
    assignment: Assignment | None
    failure: Failure
    tensorrt: str
    problem: str = ""
    ops: tuple[TunedOp, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildLog:
    """The builds of a log, in its order."""

    builds: tuple[LoggedBuild, ...]
