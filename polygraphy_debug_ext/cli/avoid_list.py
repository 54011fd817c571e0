"""Writes what was found to a list for `debug build --avoid-tactics`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.errors import UsageError
from polygraphy_debug_ext.formats import avoid
from polygraphy_debug_ext.model.answer import Conclusion, PairKind, View
from polygraphy_debug_ext.reports.lines import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from polygraphy_debug_ext.model import Tactic
    from polygraphy_debug_ext.model.answer import Answer

_NAMING: Final = frozenset({Conclusion.CULPRIT, Conclusion.ALIKE, Conclusion.PAIR})


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
        # One that does not tell its version ("unknown") is not kept out by one.
        start=version if version[:1].isdigit() else None,
        reason=reason,
        evidence=evidence,
    )


def of_answers(answers: Iterable[Answer]) -> list[avoid.AvoidEntry]:
    """Return entries for what answers name. Of two tactics that fail only together, one is enough."""
    return [
        entry(
            None if suspect.view is View.KERNEL else layer,
            suspect.tactic,
            dict(answer.environment.values).get("tensorrt", ""),
            f"{answer.conclusion.value}",
            {"diff-tactics": {"probability": answer.probability, "builds": asdict(suspect.counts)}},
        )
        for answer in answers
        if answer.conclusion in _NAMING
        for suspect in (answer.named[:1] if answer.pair_kind is PairKind.BOTH else answer.named)
        for layer in (suspect.layers[:1] if suspect.view is View.KERNEL else suspect.layers)
    ]


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
