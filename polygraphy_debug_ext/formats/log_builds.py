"""What a build log says of its builds: which tactics each one chose, or where it was when it failed.

- *list*: the lines after `Engine Layer Information:`, one for each layer of the engine. It alone decides what was chosen.
- *details*: the list of layers of `layer_lines`, where a tool printed it as well (`trtexec --dumpLayerInfo`), or the log has
  nothing else (TensorRT-RTX). It shows what is inside Myelin graphs.
- *pick*: what an op of a Myelin graph got in an autotuning table of an editable timing cache.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polygraphy_debug_ext.formats import log_lines as lines
from polygraphy_debug_ext.formats.log_assignment import Picks
from polygraphy_debug_ext.model import FaultSite

if TYPE_CHECKING:
    from polygraphy_debug_ext.formats.autotuning import TunedOp
    from polygraphy_debug_ext.formats.layer_information import EngineLayer
    from polygraphy_debug_ext.formats.log_lines import LayerLine
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


@dataclass(slots=True)
class Build:
    """What was seen of a build so far.

    `whole` says that its list of layers is there to the end, `excerpt` that there is nothing else; `damage` is text that should be
    a layer, and is not.
    """

    tensorrt: str
    timing: bytes = b""
    pending: str = ""
    first_error: FaultSite | None = None
    skipped: list[str] = field(default_factory=list)
    failed_node: str = ""
    listed: list[LayerLine] = field(default_factory=list)
    details: list[EngineLayer] = field(default_factory=list)
    picks: Picks = field(default_factory=Picks)
    finished: bool = False
    whole: bool = False
    excerpt: bool = False
    damage: str = ""

    @property
    def seen(self) -> bool:
        """Whether there was anything of it at all."""
        found = self.timing or self.skipped or self.failed_node or self.picks
        return bool(found or self.finished)

    def site(self) -> tuple[str, str]:
        """The layer and the runner that was timed last."""
        return lines.place(self.timing) if self.timing else ("", "")

    def failure(self) -> Failure:
        """What the log tells of its failure."""
        layer, runner = self.site()
        return Failure(
            first_error=self.first_error,
            last_timed=FaultSite(layer=layer, runner=runner, tactic=self.pending) if layer else None,
            skipped=tuple(self.skipped),
            failed_node=self.failed_node,
            finished=self.finished,
        )
