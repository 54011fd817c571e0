"""The words of the project: what a build chose, how it was judged, and what follows from many of them.

- *Tactic*: what TensorRT chose for one layer; *Assignment*: the tactics of one build, by layer.
- *Verdict*: good, bad or unresolved, with its reason; *Trial*: one build and its check.
- *Answer*: what good and bad assignments say about the tactics; *Suspect*: a tactic that may make builds fail.

Records are frozen; nothing here reads a file, starts a process or knows TensorRT.
"""

from polygraphy_debug_ext.model.assignment import Assignment, Source
from polygraphy_debug_ext.model.tactic import Field, Tactic, TensorInfo, Witness
from polygraphy_debug_ext.model.trial import (
    BuildFailure,
    BuildResult,
    FaultSite,
    Proposal,
    Realised,
    StopReason,
    Summary,
    Trial,
)
from polygraphy_debug_ext.model.verdict import Judgement, Reason, Verdict

__all__ = [
    "Assignment",
    "BuildFailure",
    "BuildResult",
    "FaultSite",
    "Field",
    "Judgement",
    "Proposal",
    "Realised",
    "Reason",
    "Source",
    "StopReason",
    "Summary",
    "Tactic",
    "TensorInfo",
    "Trial",
    "Verdict",
    "Witness",
]
