"""What a forced build made of the tactics that it was asked for: counted, and what was not honoured listed by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHOWN: Final = 10


def tell(problems: Mapping[str, str], asked: int, void: int, *, require: bool) -> None:
    """Log how many of the layers that were `asked` for were honoured, and why others (`problems`, by layer) were not.

    `void` picks are not counted: the engine that was recorded does not have them.

    Raises:
        BuildError: if some were not, and they are required.
    """
    text = f"Forced tactics: {asked - len(problems)} of {asked} layers honoured"
    if void:
        text += f"; {void} more are void (timed, but not in the recorded engine: fused otherwise, or in another format)"
    G_LOGGER.info(text)
    if not problems:
        return
    lines = [f"Layer: {name} | {problem}" for name, problem in problems.items()]
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    complaint = "\n    ".join(["Not all forced tactics were honoured:", *lines[:_SHOWN], *more])
    if require:
        raise BuildError(complaint, "Leave --require-honoured out to build all the same.")
    G_LOGGER.warning(complaint)
