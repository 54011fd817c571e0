"""Good and bad builds from files to answers, one for each environment that they come from."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext.analysis.environments import Environments
from polygraphy_debug_ext.analysis.evidence import EXPECTED, JEFFREYS, TENTATIVE
from polygraphy_debug_ext.analysis.ranking import rank
from polygraphy_debug_ext.cli.engines import read_engine
from polygraphy_debug_ext.formats.collection import Reader
from polygraphy_debug_ext.model.answer import Method, View
from polygraphy_debug_ext.reports.document import Group, Options, Side, by_stock

if TYPE_CHECKING:
    from polygraphy_debug_ext.analysis.environments import Comparable
    from polygraphy_debug_ext.formats.collection import Skipped
    from polygraphy_debug_ext.model import Verdict

_PRIORS: Final = {"tentative": TENTATIVE, "expected": EXPECTED, "jeffreys": JEFFREYS}


class Evidence:
    """What lies at any number of places; `used` are the files whose builds are compared."""

    def __init__(self) -> None:
        self.used: list[Path] = []
        self.environments = Environments()
        self._reader = Reader(engine=read_engine)

    def load(self, place: Path, verdict: Verdict) -> Side:
        """Take the builds at `place`, which need not exist.

        Raises:
            FormatError: if a file is damaged.
        """
        before, skipped = Counter(self._reader.kinds), len(self._reader.skipped)
        unnamed = Counter(self._reader.unnamed)
        for each in self._reader.records(place) if place.exists() else ():
            G_LOGGER.verbose(
                lambda each=each: f"{each.origin}: {each.source.value}, {len(each.layers)} layers"
            )
            self.environments.add(each, verdict)
            # One log may tell of many builds.
            if not self.used or str(self.used[-1]) != each.origin:
                self.used.append(Path(each.origin))
        return Side(
            place=str(place),
            kinds=tuple(sorted((self._reader.kinds - before).items())),
            skipped=tuple((_relative(each, place), each.reason) for each in self._reader.skipped[skipped:]),
            unnamed=tuple((self._reader.unnamed - unnamed).most_common()),
        )


def answer(comparable: Comparable, options: Options, unresolved: int = 0) -> Group:
    """Say what the builds of one environment tell; `unresolved` counts the trials that told nothing."""
    table, view = comparable.table, View(options.view)
    ask = functools.partial(
        rank,
        table,
        method=Method(options.method),
        confidence=options.confidence,
        rates=_PRIORS[options.rates_prior],
        unresolved=unresolved,
    )
    found = ask(view=view)
    # Polygraphy's rule is about layers.
    by_layer = found if view is View.LAYER else ask(view=View.LAYER)
    return Group(
        answer=dataclasses.replace(found, environment=comparable.environment),
        stock=by_stock(by_layer.suspects, table.layers),
        incomparable=table.incomparable,
        apart=comparable.apart,
        mixed=comparable.mixed,
    )


def _relative(skipped: Skipped, place: Path) -> str:
    """The name below the place, or that of the one file that is the place."""
    return str(skipped.path.relative_to(place)) if skipped.path != place else skipped.path.name
