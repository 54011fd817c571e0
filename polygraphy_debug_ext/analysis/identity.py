"""When two records of one layer mean the same tactic, whoever wrote them: by the finest that all of them tell.

- *runner tactics* have an id of 64 bits, which is local to an implementation where it is small; a replay tells both, a log and
  layer information tell the id and, mostly, the kernel.
- *tactic hashes* of Myelin and the editable timing cache are another space of numbers: only kernel names join the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.model.tactic import IMPLEMENTATION_MASK, TACTIC_MASK

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from polygraphy_debug_ext.model import Field, Tactic

#: What TensorRT writes for "no valid tactic", and the invalid hash of the editable timing cache.
NO_TACTICS: Final = frozenset({0xD15EA5EDD15EA5ED, 0xFFFFFFFFFFFFFFFF})


def identities(tactics: Sequence[Tactic], fields: frozenset[Field]) -> list[Hashable] | None:
    """Return an identity for each record of one layer; equal ones mean the same tactic.

    None if they have nothing in common by which they could be compared. `fields` are the properties of tensors that all
    records of the whole table tell; they count where implementation and id are told by all records of the layer.
    """
    numbers = [_number(tactic) for tactic in tactics]
    known = [number for number in numbers if number is not None]
    spaces = {
        tactic.cache_key is None
        for tactic, number in zip(tactics, numbers, strict=True)
        if number is not None
    }
    if len(known) == len(tactics) and len(spaces) == 1:
        if all(tactic.implementation is not None for tactic in tactics):
            return _by_implementation(tactics, known, fields)
        return _by_number(tactics, known)
    if all(tactic.kernel for tactic in tactics):
        return [tactic.kernel for tactic in tactics]
    return None


def _number(tactic: Tactic) -> int | None:
    """The id without sign; None where there is none."""
    if tactic.tactic is None:
        return None
    number = tactic.tactic & TACTIC_MASK
    return None if number in NO_TACTICS else number


def _by_implementation(
    tactics: Sequence[Tactic], numbers: Sequence[int], fields: frozenset[Field]
) -> list[Hashable]:
    ids = [
        ((tactic.implementation or 0) & IMPLEMENTATION_MASK, number)
        for tactic, number in zip(tactics, numbers, strict=True)
    ]
    # Mostly there is nothing left for tensors to tell apart, and to get at their values takes longest.
    if not fields or len(set(ids)) == len(ids):
        return list(ids)
    return [
        (
            *each,
            *(tuple(info.identity(fields) for info in infos) for infos in (tactic.inputs, tactic.outputs)),
        )
        for tactic, each in zip(tactics, ids, strict=True)
    ]


def _by_number(tactics: Sequence[Tactic], numbers: Sequence[int]) -> list[Hashable] | None:
    """The ids, told apart by kernels where all records name them.

    A record that does not tell the kernel (or the implementation) could mean any of those that others tell for its id.
    """
    if all(tactic.kernel for tactic in tactics):
        return [(number, tactic.kernel) for tactic, number in zip(tactics, numbers, strict=True)]
    kernels: dict[int, set[object]] = {}
    implementations: dict[int, set[object]] = {}
    for tactic, number in zip(tactics, numbers, strict=True):
        kernels.setdefault(number, set()).add(tactic.kernel)
        implementations.setdefault(number, set()).add(tactic.implementation)
    for told in (*kernels.values(), *implementations.values()):
        if len(told - {None}) > 1 and None in told:
            return None
    return [(number,) for number in numbers]
