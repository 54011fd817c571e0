"""Writes what was found to a list for `debug build --avoid-tactics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import avoid
from polygraphy_debug_ext.reports.lines import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.model import Tactic


def entry(
    layer: str | None, tactic: Tactic, version: str, reason: str, evidence: Mapping[str, object]
) -> avoid.AvoidEntry:
    """Return the entry for a tactic: by its kernel where that is known, as faults live in kernels; at any layer if it is None.

    It holds from `version` of TensorRT on; if that is empty, for all.
    """
    by_kernel = tactic.kernel is not None
    return avoid.AvoidEntry(
        layer=layer,
        kernel=tactic.kernel,
        tactic=None if by_kernel else tactic.tactic,
        implementation=None if by_kernel else tactic.implementation,
        start=version or None,
        reason=reason,
        evidence=evidence,
    )


def save(path: Path, entries: Sequence[avoid.AvoidEntry]) -> None:
    """Write the list; without entries there is none.

    Raises:
        UsageError: if it cannot be written.
    """
    if not entries:
        G_LOGGER.warning(f"--save-avoid: no culprit was found, so {path} was not written.")
        return
    try:
        avoid.write(path, entries)
    except OSError as error:
        raise UsageError(
            f"--save-avoid {path} cannot be written ({error.strerror})", "Name another file."
        ) from error
    G_LOGGER.info(
        f"Wrote {count(len(entries), 'entry') if len(entries) == 1 else f'{len(entries)} entries'} to {path}: use it with "
        "`debug build --avoid-tactics`"
    )
