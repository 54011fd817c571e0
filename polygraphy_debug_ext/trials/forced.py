"""Builds hybrids: forces the tactics that a search asks for, and reads back what the engine really has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Protocol

from polygraphy_debug_ext.errors import DebugExtError
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import BuildFailure, Reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polygraphy_debug_ext.model import BuildResult, Proposal
    from polygraphy_debug_ext.trials.hybrids import Hybrids
    from polygraphy_debug_ext.trials.worker import ForcedBuild


class Forcing(Protocol):
    """Who can force tactics."""

    def start(self) -> Mapping[str, str]:
        """Get ready; say what builds."""

    def build_forced(self, index: int, force: Path, caches: Sequence[Path] = ()) -> ForcedBuild:
        """Force the tactics of a replay."""

    def close(self) -> None:
        """Give everything back."""


class HybridBuilder:
    """Builds what a search proposes.

    Args:
        builder: Who builds.
        hybrids: What factors stand for.
        recorded: Where the builder writes what the engine has.
        begins: Called with what is about to be built.
        refused: Called with the layers that were not honoured, and why.
    """

    def __init__(
        self,
        builder: Forcing,
        hybrids: Hybrids,
        recorded: Path,
        *,
        begins: Callable[[Proposal], None],
        refused: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._builder = builder
        self._hybrids = hybrids
        self._recorded = recorded
        self._begins = begins
        self._refused = refused
        self._directory = TemporaryDirectory(prefix="polygraphy_debug_")

    def start(self) -> Mapping[str, str]:
        """Get ready; say what builds."""
        return self._builder.start()

    def build(self, index: int, proposal: Proposal) -> BuildResult:
        """Build an engine in which the factors of the proposal have their bad value.

        Raises:
            OSError: if there is no room for the hybrid.
            Interrupted: if the run is to end.
        """
        self._begins(proposal)
        wanted = self._hybrids.assignment(proposal.bad or ())
        path = Path(self._directory.name) / f"hybrid_{index}.json"
        replay.write(path, wanted)
        sides = (self._hybrids.good, self._hybrids.bad)
        caches = [Path(side.origin) for side in sides if side.timing_cache is not None]
        built = self._builder.build_forced(index, path, caches)
        path.unlink(missing_ok=True)
        if built.result.failure is not None:
            return built.result
        if built.not_honoured:
            self._refused(built.not_honoured)
        try:
            realised = self._hybrids.realised(replay.read(self._recorded))
        except DebugExtError as error:
            # Without a record nobody knows what was built.
            failure = BuildFailure(
                reason=Reason.NOT_RECORDED, text=f"what the engine has was not recorded ({error.problem})"
            )
            return replace(built.result, failure=failure)
        return replace(built.result, realised=realised)

    def close(self) -> None:
        """Give everything back."""
        self._builder.close()
        self._directory.cleanup()
