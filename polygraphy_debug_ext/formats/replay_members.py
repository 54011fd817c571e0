"""Learns the layers that replays hold, byte for byte: what was decoded once is found again by comparing bytes.

A replay is mostly a sequence of *members*, `"layer": {...}` and what follows up to the next one, and builds of one network have mostly
the same. So for each *place* (which layer came before) the members seen there are kept, with the tactic that each stands for. A file
made of known members between a beginning and an end that are decoded is as valid as one that was decoded as a whole: JSON has no
context. Whatever is unusual is left to the reader of whole files. Times differ in each build; they are skipped.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec

from polygraphy_debug_ext.formats.replay_records import RecordError, tactic_of
from polygraphy_debug_ext.model.layers import Catalogue, CataloguedLayers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polygraphy_debug_ext.model import Tactic

#: Bytes of members that are kept; a set of builds that has more is forgotten, and learned anew.
LEARNED_LIMIT: Final = 256 * 2**20

#: Longer names and layers are none that TensorRT writes.
_NAME_LIMIT: Final = 2**16
_LAYER_LIMIT: Final = 2**20
_ATTEMPTS: Final = 64

# JSON knows these four as space, and no others.
_BEGINNING: Final = re.compile(rb'[ \t\r\n]*\{[ \t\r\n]*"replay"[ \t\r\n]*:[ \t\r\n]*\{([ \t\r\n]*)(?=")')
_KEY: Final = re.compile(rb'("[^"\\\x00-\x1f]*"|"(?:[^"\\\x00-\x1f]|\\.)*")[ \t\r\n]*:[ \t\r\n]*(?=\{)')
_NEXT: Final = re.compile(rb'[ \t\r\n]*(?:,[ \t\r\n]*(?=")|(\}))')
_TIME: Final = re.compile(rb'"time_ms"[ \t\r\n]*:[ \t\r\n]*(?=[-0-9])')
_NUMBER: Final = re.compile(
    rb"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,25})?(?:[eE][+-]?[0-9]{1,2})?(?![0-9.eE+-])"
)
# What mostly tells members of one layer apart.
_TELLING: Final = re.compile(rb'"tactic"[ \t\r\n]*:[ \t\r\n]*')
_DIGITS: Final = 20

_NAME_DECODER: Final = msgspec.json.Decoder(str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """The layers of a file, the dialects of their tensors, and where the closing brace of the layers ends."""

    layers: CataloguedLayers
    dialects: frozenset[str]
    end: int


class _Place:
    """What may come after one layer: members by their bytes from `first` to `last`; `scanned` is the last scan that came by."""

    __slots__ = ("first", "last", "members", "others", "scanned")

    def __init__(self) -> None:
        self.first = self.last = 0
        self.scanned = 0
        self.members: dict[bytes, _Member] = {}
        # Members with the same bytes there: those that differ in the layouts of their tensors only.
        self.others: dict[bytes, list[_Member]] = {}


class _Member:
    """A member: its bytes up to the time (or all of them), those after it, and what they mean."""

    __slots__ = ("dialects", "end", "following", "is_last", "number", "size", "start")

    def __init__(
        self,
        text: tuple[bytes, bytes | None],
        number: int,
        dialects: frozenset[str],
        following: _Place,
        *,
        is_last: bool,
    ) -> None:
        self.start, self.end = text
        self.size = len(self.start)
        self.number = number
        self.dialects = dialects
        self.following = following
        self.is_last = is_last


class _Cursor:
    """Where a scan of several files is in one of them, and what it has found there."""

    __slots__ = ("closing", "data", "dialects", "ended", "numbers", "position", "written")

    def __init__(self, data: bytes, position: int, closing: re.Pattern[bytes]) -> None:
        self.data = data
        self.position = position
        self.closing = closing
        self.numbers: list[int] = []
        self.dialects: set[frozenset[str]] = set()
        self.written: frozenset[str] | None = None
        self.ended = False

    def scanned(self, catalogue: Catalogue) -> Scanned:
        return Scanned(
            layers=CataloguedLayers(catalogue, array("i", self.numbers)),
            dialects=frozenset[str]().union(*self.dialects),
            end=self.position,
        )


class Members:
    """What was learned from the files that were scanned so far, of `size` bytes. Equal tactics are one object, without their times."""

    def __init__(self, limit: int = LEARNED_LIMIT) -> None:
        self._limit = limit
        self.size = 0
        self._scans = 0
        self._first = _Place()
        self._places: dict[str, _Place] = {}
        self._catalogue = Catalogue()
        self._tactics: dict[Tactic, Tactic] = {}
        self._dialects: dict[frozenset[str], frozenset[str]] = {}

    def scan(self, data: bytes) -> Scanned | None:
        """Return the layers of a replay; None if anything is unusual or wrong: two layers of one name, too.

        What is touched for each layer is what this takes: builds by the thousand do not fit into the caches of a processor.
        """
        beginning = _BEGINNING.match(data)
        if beginning is None:
            return None
        self._make_room()
        self._scans = scan = self._scans + 1
        position, closing = beginning.end(), _closing(beginning[1])
        place = self._first
        numbers: list[int] = []
        dialects: set[frozenset[str]] = set()
        last: frozenset[str] | None = None
        startswith = data.startswith
        is_last = False
        while not is_last:
            member = place.members.get(data[position + place.first : position + place.last])
            if member is not None and member.end is None and startswith(member.start, position):
                position += member.size
            else:
                found = self._other(data, position, place, closing)
                if found is None:
                    return None
                member, position = found
            place = member.following
            if place.scanned == scan:
                return None
            place.scanned = scan
            numbers.append(member.number)
            if member.dialects is not last:
                last = member.dialects
                dialects.add(last)
            is_last = member.is_last
        return Scanned(
            layers=CataloguedLayers(self._catalogue, array("i", numbers)),
            dialects=frozenset[str]().union(*dialects),
            end=position,
        )

    def scan_all(self, files: Sequence[bytes]) -> list[Scanned | None]:
        """Return what `scan` returns for each file.

        They are gone through together, layer by layer: what is known of a layer is at hand then, where file by file it has to
        come from memory each time. A file that differs from the first in anything but its tactics is scanned by itself.
        """
        beginnings = [_BEGINNING.match(data) for data in files]
        together = [
            _Cursor(data, beginning.end(), _closing(beginning[1]))
            for data, beginning in zip(files, beginnings, strict=True)
            if beginning is not None
        ]
        self._make_room()
        self._scans = scan = self._scans + 1
        place: _Place | None = self._first
        while place is not None and together:
            place = self._step(place, together)
            if place is not None and place.scanned == scan:
                together = []
            elif place is not None:
                place.scanned = scan
        done = {id(cursor.data): cursor for cursor in together if cursor.ended}
        return [
            done[id(data)].scanned(self._catalogue) if id(data) in done else self.scan(data) for data in files
        ]

    def _step(self, place: _Place, together: list[_Cursor]) -> _Place | None:
        """Take every file over its next layer, and leave out those that do not go on as the first; return the place where they are."""
        following: _Place | None = None
        is_last = False
        apart: list[_Cursor] = []
        for cursor in together:
            data, position = cursor.data, cursor.position
            member = place.members.get(data[position + place.first : position + place.last])
            if member is not None and member.end is None and data.startswith(member.start, position):
                cursor.position = position + member.size
            else:
                found = self._other(data, position, place, cursor.closing)
                if found is None:
                    apart.append(cursor)
                    continue
                member, cursor.position = found
            if following is None:
                following, is_last = member.following, member.is_last
            elif member.following is not following or member.is_last is not is_last:
                apart.append(cursor)
                continue
            cursor.numbers.append(member.number)
            if member.dialects is not cursor.written:
                cursor.written = member.dialects
                cursor.dialects.add(member.dialects)
            cursor.ended = is_last
        for cursor in apart:
            together.remove(cursor)
        # Where the last layer has been seen before, it is twice in the file.
        if is_last and following is not None and following.scanned == self._scans:
            together.clear()
        return None if is_last else following

    def _make_room(self) -> None:
        if self.size > self._limit:
            self.size = 0
            self._first, self._places = _Place(), {}

    def interned(self, layers: Mapping[str, Tactic]) -> dict[str, Tactic]:
        """Return the same layers, with tactics that are the same objects as those of equal ones."""
        return {name: self._interned(tactic) for name, tactic in layers.items()}

    def _interned(self, tactic: Tactic) -> Tactic:
        if tactic.time_ms is not None:
            tactic = replace(tactic, time_ms=None)
        return self._tactics.setdefault(tactic, tactic)

    def _other(
        self, data: bytes, position: int, place: _Place, closing: re.Pattern[bytes]
    ) -> tuple[_Member, int] | None:
        """Return the member at `position`, that has a time or is not the first of its kind, and the position after it."""
        what = data[position + place.first : position + place.last]
        if (first := place.members.get(what)) is not None:
            found = _one_of([first, *place.others.get(what, ())], data, position)
            if found is not None:
                return found
        return self._learn(data, position, place, closing)

    def _learn(
        self, data: bytes, position: int, place: _Place, closing: re.Pattern[bytes]
    ) -> tuple[_Member, int] | None:
        """Decode the member that begins at `position`, keep it, and return it with the position after it."""
        key = _KEY.match(data, position, position + _NAME_LIMIT)
        if key is None:
            return None
        dialects: set[str] = set()
        try:
            name = _NAME_DECODER.decode(key[1])
            decoded = _value(data, key.end(), closing, dialects)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecordError, RecursionError):
            return None
        following = _NEXT.match(data, decoded[1]) if decoded else None
        if decoded is None or following is None:
            return None
        end = following.end()
        text = data[position:end]
        if name not in self._places:
            self._places[name] = _Place()
        member = _Member(
            (text, None) if decoded[0].time_ms is None else _around_the_time(text),
            self._catalogue.number(name, self._interned(decoded[0])),
            self._dialects.setdefault(written := frozenset(dialects), written),
            self._places[name],
            is_last=following[1] is not None,
        )
        if not place.members:
            telling = _TELLING.search(text)
            place.last = min(telling.end() + _DIGITS if telling else _DIGITS, member.size)
            place.first = max(place.last - _DIGITS, 0)
        what = text[place.first : place.last]
        if place.members.setdefault(what, member) is not member:
            place.others.setdefault(what, []).append(member)
        self.size += len(text)
        return member, end


def _one_of(members: Sequence[_Member], data: bytes, position: int) -> tuple[_Member, int] | None:
    """Return the member that is at `position`, and where it ends."""
    for member in members:
        if not data.startswith(member.start, position):
            continue
        if member.end is None:
            return member, position + member.size
        time = _NUMBER.match(data, position + member.size)
        if time is not None and data.startswith(member.end, time.end()):
            return member, time.end() + len(member.end)
    return None


def _closing(space: bytes) -> re.Pattern[bytes]:
    """What ends a layer, where `space` is before its key: `bytes.find` takes three times as long to find that."""
    return re.compile(re.escape(space + b"}"))


def _value(
    data: bytes, start: int, closing: re.Pattern[bytes], dialects: set[str]
) -> tuple[Tactic, int] | None:
    """Decode the object that begins at `start`; return its tactic, and where it ends.

    The end is tried out: a beginning of an object is never an object, so that the one that decodes is the right one.
    """
    for brace in islice(closing.finditer(data, start, start + _LAYER_LIMIT), _ATTEMPTS):
        try:
            return tactic_of(data[start : brace.end()], dialects), brace.end()
        except msgspec.DecodeError:
            continue
    return None


def _around_the_time(text: bytes) -> tuple[bytes, bytes | None]:
    """Cut the time out of a member that has one."""
    times = list(_TIME.finditer(text))
    if len(times) != 1:
        return text, None
    number = _NUMBER.match(text, times[0].end())
    return (text, None) if number is None else (text[: times[0].end()], text[number.end() :])
