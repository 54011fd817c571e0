"""Goes through a build log chunk by chunk, and keeps what it says of each build.

Most of a verbose log is noise: the lines that matter are found by searching whole chunks for a few words, and nothing else of
the text is looked at. Where a build was, is looked up backwards from where it matters.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from polygraphy_debug_ext.errors import FormatError
from polygraphy_debug_ext.formats import layer_lines
from polygraphy_debug_ext.formats import log_lines as lines
from polygraphy_debug_ext.formats.log_assignment import Kernels, PickLines, Picks
from polygraphy_debug_ext.formats.log_builds import Build
from polygraphy_debug_ext.model import FaultSite

if TYPE_CHECKING:
    from collections.abc import Callable


#: Of more failed tactics than that, only the first ones are kept: an error that sticks fails all the later ones.
_SKIPPED_LIMIT: Final = 10_000

#: A table is not larger; what is, is left out.
_TABLE_LIMIT: Final = 2**20

#: Lines of somebody else that may be between two lines of the final list.
_FOREIGN_LINES: Final = 4

#: What begins or ends something, or goes wrong; it is looked for everywhere.
_MARKS: Final = (
    lines.LIST,
    layer_lines.LAYER_TYPE,
    lines.SKIPPING,
    lines.NO_IMPLEMENTATION,
    lines.OP,
    lines.ANOTHER_STRATEGY,
    lines.RUNNING,
)

#: What tells the version: none of it is printed while a build times tactics.
_VERSIONS: Final = (lines.VERSION, lines.RESOURCE, lines.MODULE)

#: What ends a build.
_ENDS: Final = frozenset({lines.LIST, layer_lines.LAYER_TYPE, lines.NO_IMPLEMENTATION, lines.RUNNING})

#: What a table does not go on after.
_BOUNDS: Final = _ENDS | {lines.OP, lines.ANOTHER_STRATEGY}

#: What the line of an op has if its cache is editable.
_KEY: Final = b"(key: 0x"

#: What says where a table belongs to.
_PLACES: Final = (lines.TIMING, lines.COMBINATION)

#: What is never between two lines of one final list.
_NOT_BETWEEN: Final = (lines.LIST, lines.TIMING, lines.COSTS, lines.RUNNING)

#: An error that is none: such tactics are left out of builds that are well.
_HARMLESS: Final = "insufficient memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table that is not at its end: the line of its op, the graph, the combination of formats, and its rows so far."""

    op: bytes
    graph: bytes
    combination: bytes
    rows: bytes = b""


class Scanner:
    """Takes a log; has its builds at the end.

    Args:
        origin: Names the log in errors.
        done: Is given each build that ended.
    """

    def __init__(self, origin: str, done: Callable[[Build], None]) -> None:
        self.kernels = Kernels()
        self._origin = origin
        self._done = done
        self._build = Build("")
        self._version = ""
        self._begun = False
        self._in: Callable[[bytes, int], int] | None = None
        self._last_is_damaged = False
        self._table: _Table | None = None
        self._bounds: list[int] = []
        self._combination = b""
        self._text = b""
        self._caught_up = self._timing_at = 0
        self._handlers: dict[bytes, Callable[[int, int], int]] = {
            lines.LIST: self._begin_list,
            layer_lines.LAYER_TYPE: self._begin_details,
            lines.SKIPPING: self._skip,
            lines.NO_IMPLEMENTATION: self._fail,
            lines.OP: self._tune,
            lines.ANOTHER_STRATEGY: self._start_again,
            lines.RUNNING: self._start,
            lines.VERSION: self._tell_version,
            lines.RESOURCE: self._tell_version,
            lines.MODULE: self._tell_version,
        }

    def feed(self, chunk: bytes) -> None:
        """Take whole lines.

        Raises:
            FormatError: if a list of layers is damaged.
        """
        text = self._text = lines.plain(chunk)
        self._caught_up = self._timing_at = 0
        marks = self._marks()
        self._bounds = [at for at, mark in marks if mark in _BOUNDS]
        self.kernels.add(lines.kernels(text))
        at = self._in(text, 0) if self._in is not None else 0
        self._caught_up = self._timing_at = at
        if self._table is not None:
            table, self._table = self._table, None
            self._take_table(table, 0)
        for begin, mark in marks:
            if begin >= at:
                at = self._handlers[mark](begin, self._line_end(begin))
        self._catch_up(len(text))
        self._look_for_pending(len(text))
        self._begun = self._begun or bool(text.strip())

    def end(self) -> None:
        """Take the end of the log."""
        build = self._build
        if self._in is not None:
            if self._last_is_damaged:
                build.damage = ""
            elif build.excerpt and build.listed:
                tensors = self._text.rpartition(b", Tactic: ")[2]
                build.whole = self._text.endswith(b"\n") or b" -> " in tensors
        self._in = None
        self._close()

    def _marks(self) -> list[tuple[int, bytes]]:
        """Where the words that matter are."""
        marks = self._found(_MARKS)
        timing = self._build.timing and not self._build.finished
        if not timing or any(mark in _ENDS for _, mark in marks):
            marks += self._found(_VERSIONS)
        marks.sort()
        return marks

    def _found(self, words: tuple[bytes, ...]) -> list[tuple[int, bytes]]:
        text = self._text
        found = []
        for word in words:
            at = text.find(word)
            while at >= 0:
                found.append((at, word))
                at = text.find(word, at + len(word))
        return found

    def _line_end(self, at: int) -> int:
        end = self._text.find(b"\n", at)
        return len(self._text) if end < 0 else end

    def _line(self, at: int) -> bytes:
        return self._text[self._text.rfind(b"\n", 0, at) + 1 : self._line_end(at)]

    def _close(self) -> None:
        """End the build."""
        if self._build.seen:
            self._done(self._build)
        self._build = Build(self._version)
        self._combination = b""
        self._table = None

    def _catch_up(self, upto: int) -> None:
        """Look for what was timed last before this place."""
        text, start = self._text, self._caught_up
        self._caught_up = upto
        timing = text.rfind(lines.TIMING, start, upto)
        costs = text.rfind(lines.COSTS, start, upto)
        combination = text.rfind(lines.COMBINATION, start, upto)
        timing = max(timing, costs)
        if timing >= 0:
            if self._build.finished:
                self._close()
            self._build.timing, self._build.pending = self._line(timing), ""
            self._timing_at = timing
        if combination < costs:
            self._combination = b""
        elif combination >= 0:
            self._combination = text[combination : self._line_end(combination)]

    def _look_for_pending(self, upto: int) -> None:
        """Look for a tactic that was named, but not timed; up to TensorRT 8.4 it is named before."""
        text, start = self._text, self._timing_at
        named = text.rfind(lines.NAMED, start, upto)
        if named >= 0:
            self._build.pending = lines.named_tactic(text, named, upto)
        elif self._build.pending and lines.is_timed(text, start, upto):
            self._build.pending = ""

    def _evidence(self, at: int) -> Build:
        """The build that something at this place belongs to."""
        self._catch_up(at)
        if self._build.finished:
            self._close()
        return self._build

    def _skip(self, at: int, end: int) -> int:
        if skipped := lines.skipped(self._text[at:end]):
            build = self._evidence(at)
            tactic, error = skipped
            if len(build.skipped) < _SKIPPED_LIMIT:
                build.skipped.append(tactic)
            if build.first_error is None and build.timing and _HARMLESS not in error:
                layer, runner = build.site()
                build.first_error = FaultSite(layer=layer, runner=runner, tactic=tactic, error=error)
        return end

    def _fail(self, at: int, end: int) -> int:
        build = self._evidence(at)
        build.failed_node = build.failed_node or lines.failed_node(self._text[at:end])
        return end

    def _start_again(self, at: int, end: int) -> int:
        self._evidence(at).picks = Picks()
        self._combination = b""
        return end

    def _start(self, at: int, end: int) -> int:
        """Begin another build, whatever became of the last one."""
        self._catch_up(at)
        self._look_for_pending(at)
        self._close()
        self._timing_at = at
        return self._tell_version(at, end)

    def _tell_version(self, at: int, end: int) -> int:
        if version := lines.version(self._text[at:end]):
            self._version = version
            if not self._build.finished:
                self._build.tensorrt = self._build.tensorrt or version
        return end

    def _tune(self, at: int, end: int) -> int:
        text = self._text
        self._table = None
        if text.find(_KEY, at, end) >= 0:
            # Tables follow each other closely: mostly there is nothing to catch up with.
            if self._build.finished or any(text.find(mark, self._caught_up, at) >= 0 for mark in _PLACES):
                self._evidence(at)
            # Nothing is timed within a table.
            self._caught_up = self._take_table(
                _Table(op=text[at:end], graph=self._build.timing, combination=self._combination), end
            )
        return end

    def _take_table(self, table: _Table, start: int) -> int:
        """Take the rows from `start`, and the choice among them, if it was printed; a table may go on in the next chunk.

        Return where the choice is, or `start`.
        """
        text = self._text
        number = bisect_left(self._bounds, start)
        bound = self._bounds[number] if number < len(self._bounds) else len(text)
        at = text.find(lines.SELECTED, start, bound)
        if at >= 0:
            rows, choice = text[start:at], text[at : self._line_end(at)]
            picks = self._build.picks
            picks.add(table.graph, table.combination, table.op, PickLines.of(table.rows + rows, choice))
            self._table = None
            return at
        if bound == len(text) and len(table.rows) + bound - start < _TABLE_LIMIT:
            self._table = replace(table, rows=table.rows + text[start:])
        return start

    def _begin_list(self, at: int, end: int) -> int:
        if self._text[at + len(lines.LIST) : end].strip():
            return end
        build = self._evidence(at)
        build.finished = True
        build.excerpt = not self._begun and not self._text[: max(self._text.rfind(b"\n", 0, at), 0)].strip()
        return self._take_list(self._text, end + 1)

    def _take_list(self, text: bytes, start: int) -> int:
        """Take lines of the final list, and return where it ends."""
        self._in = self._take_list
        build = self._build
        while start < len(text):
            end = text.find(b"\n", start)
            end = len(text) if end < 0 else end
            self._last_is_damaged = False
            try:
                line = lines.layer_line(text[start:end])
            except ValueError as error:
                build.damage = build.damage or str(error)
                self._last_is_damaged = True
            else:
                # A line without its end may have been about to be a layer.
                build.whole = line is None and end < len(text)
                if line is not None:
                    build.listed.append(line)
                elif not self._goes_on(text, start):
                    return self._end_block(start)
            start = end + 1
        return len(text)

    def _goes_on(self, text: bytes, start: int) -> bool:
        """Whether the list may go on after a few lines that somebody else wrote in between."""
        for _ in range(_FOREIGN_LINES):
            end = text.find(b"\n", start) + 1
            if any(mark in text[start : end or len(text)] for mark in _NOT_BETWEEN):
                return False
            if not end or end == len(text):
                return True
            start = end
            if text.find(b"Layer(", start, start + lines.PREFIX_LIMIT) >= 0:
                return True
        return False

    def _begin_details(self, at: int, end: int) -> int:
        begin = self._text.rfind(b"\n", 0, at) + 1
        if not layer_lines.is_layer(self._text[begin:end]):
            return end
        self._catch_up(begin)
        if self._build.details:
            self._close()
        self._build.finished = True
        return self._take_details(self._text, begin)

    def _take_details(self, text: bytes, start: int) -> int:
        """Take the layers with their details, and return where they end."""
        self._in = self._take_details
        build = self._build
        while start < len(text):
            end = text.find(b"\n", start)
            end = len(text) if end < 0 else end
            line = text[start:end]
            if not layer_lines.is_layer(line):
                build.whole = True
                return self._end_block(start)
            build.whole = False
            try:
                build.details.append(layer_lines.engine_layer(line, self._origin))
            except FormatError as error:
                build.damage = build.damage or error.reason
            start = end + 1
        return len(text)

    def _end_block(self, at: int) -> int:
        self._in = None
        self._caught_up = self._timing_at = max(at, self._caught_up)
        return at
