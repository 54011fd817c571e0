"""Whether the ranking keeps its word: builds are drawn with a planted culprit or with none, and what it claims is counted.

Run it as a script; it prints its seed and one table for each question. `--quick` makes fewer runs. The choices of a build are drawn
layer by layer (or in bound groups), its verdict from two failure rates: with the culprit (b) and without it (a).
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from polygraphy_debug_ext.analysis.decision import decide
from polygraphy_debug_ext.analysis.evidence import TENTATIVE
from polygraphy_debug_ext.analysis.hypotheses import hypotheses
from polygraphy_debug_ext.analysis.posterior import posterior
from polygraphy_debug_ext.analysis.table import Choice, Table
from polygraphy_debug_ext.model import Tactic
from polygraphy_debug_ext.model.answer import Conclusion, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

SEED: Final = 20261202
#: Builds after which the study looks at a growing set; afterwards at every fifth.
EVERY_BUILD: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Layers with so many tactics each.

    `rare` is the share of builds that have the second of two tactics (None: all equally often); `bound` layers choose alike
    9 times of 10; `kernels` is the size of the pool from which all layers take theirs (0: each its own), and then the culprit is a
    kernel wherever it is used.
    """

    name: str
    layers: int
    tactics: int
    rare: float | None = None
    bound: int = 1
    kernels: int = 0

    def draw(self, builds: int, generator: np.random.Generator) -> NDArray[np.int64]:
        """Which tactic each build has at each layer."""
        if self.rare is not None:
            return (generator.random((builds, self.layers)) < self.rare).astype(np.int64)
        free = generator.integers(0, self.tactics, (builds, self.layers))
        leaders = np.repeat(free[:, :: self.bound], self.bound, axis=1)[:, : self.layers]
        return np.where(generator.random(free.shape) < 0.9, leaders, free) if self.bound > 1 else free

    def table(self, picks: NDArray[np.int64], bad: NDArray[np.bool_]) -> Table:
        """The table of builds with these choices and verdicts."""
        numbers = range(self.layers * self.tactics)
        layers = tuple(f"layer{number}" for number in range(self.layers))
        return Table(
            layers=layers,
            choices=tuple(
                Choice(layer=layers[number // self.tactics], tactic=self._tactic(number))
                for number in numbers
            ),
            layer_of=(np.array(numbers) // self.tactics).astype(np.int32),
            codes=(picks + np.arange(self.layers) * self.tactics).astype(np.int32),
            bad=bad,
            origins=("",) * len(bad),
        )

    def _tactic(self, number: int) -> Tactic:
        kernel = self.kernel(number)
        return Tactic(implementation=1, tactic=kernel, kernel=f"kernel{kernel}")

    def kernel(self, number: int) -> int:
        """The number of the kernel of a choice."""
        # Steps of 5 through the pool: the tactics of a layer differ.
        layer, tactic = divmod(number, self.tactics)
        return (layer * 7 + tactic * 5) % self.kernels if self.kernels else number

    def culprit(self, number: int) -> tuple[int, ...]:
        """The choices that are at fault if this one is."""
        if not self.kernels:
            return (number,)
        everything = range(self.layers * self.tactics)
        return tuple(other for other in everything if self.kernel(other) == self.kernel(number))


#: The culprit is the second tactic of the first layer: the rare one, where one is.
PLANTED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Builds:
    """Drawn builds, and the choices that are at fault."""

    network: Network
    picks: NDArray[np.int64]
    bad: NDArray[np.bool_]
    culprit: tuple[int, ...]

    def first(self, number: int) -> Builds:
        """The first so many builds."""
        return Builds(
            network=self.network, picks=self.picks[:number], bad=self.bad[:number], culprit=self.culprit
        )


def draw(network: Network, builds: int, a: float, b: float, generator: np.random.Generator) -> Builds:
    """Draw builds that fail with rate b where they have the culprit, with rate a elsewhere."""
    picks = network.draw(builds, generator)
    culprit = network.culprit(PLANTED)
    has = np.isin(picks + np.arange(network.layers) * network.tactics, culprit).any(axis=1)
    bad = generator.random(builds) < np.where(has, b, a)
    return Builds(network=network, picks=picks, bad=bad, culprit=culprit)


def judge(builds: Builds, confidence: float = 0.95) -> str:
    """What is concluded: "right" or "wrong" where something is named, "no tactic", or "undecided"."""
    if builds.bad.all() or not builds.bad.any():
        return "undecided"
    found = hypotheses(builds.network.table(builds.picks, builds.bad), View.LAYER)
    decision = decide(found, posterior(found, builds.bad, TENTATIVE), confidence)
    if decision.conclusion in {Conclusion.NO_TACTIC, Conclusion.UNDECIDED}:
        return "no tactic" if decision.conclusion is Conclusion.NO_TACTIC else "undecided"
    named = {
        choices
        for choices, group in zip(found.choices, found.class_of.tolist(), strict=True)
        if group in decision.classes
    }
    return "right" if builds.culprit in named else "wrong"


def stock(builds: Builds) -> str:
    """What set difference says of the culprit: "alone", "with others", "acquitted" (not in its list though in a bad build)."""
    codes = builds.picks + np.arange(builds.network.layers) * builds.network.tactics
    suspects = set(codes[builds.bad].ravel().tolist()) - set(codes[~builds.bad].ravel().tolist())
    hits = suspects & set(builds.culprit)
    if not hits:
        return "acquitted"
    return "alone" if suspects <= set(builds.culprit) else "with others"


def until_decided(builds: Builds) -> tuple[str, int]:
    """Look again and again at a growing set: what is concluded first, and after how many builds."""
    most = len(builds.bad)
    for number in itertools.chain(range(2, EVERY_BUILD), range(EVERY_BUILD, most + 1, 5)):
        if (said := judge(builds.first(number))) != "undecided":
            return said, number
    return "undecided", most


def passive(runs: int, generator: np.random.Generator) -> None:
    """Print how often the goal of 80 builds is met."""
    print(f"\nPassive goal: 80 builds, {runs} runs a row")
    print(f"{'network':14} {'a':>4} {'b':>4} | {'right':>6} {'wrong':>6} | set difference: alone")
    for layers, tactics, a, b in ((100, 6, 0.05, 0.95), (100, 3, 0.0, 0.5)):
        network = Network(name=f"{layers} x {tactics}", layers=layers, tactics=tactics)
        drawn = [draw(network, 80, a, b, generator) for _ in range(runs)]
        said = Counter(map(judge, drawn))
        alone = Counter(map(stock, drawn))["alone"]
        print(
            f"{network.name:14} {a:4.2f} {b:4.2f} | {said['right'] / runs:6.1%} {said['wrong'] / runs:6.1%} | {alone / runs:6.1%}"
        )


NETWORKS: Final = (
    Network(name="100 x 3 equal", layers=100, tactics=3),
    Network(name="20 x 6 equal", layers=20, tactics=6),
    Network(name="5 x 2 equal", layers=5, tactics=2),
    Network(name="60 x 2 90/10", layers=60, tactics=2, rare=0.1),
    Network(name="60 x 3 bound", layers=60, tactics=3, bound=4),
    Network(name="30 x 3 kernels", layers=30, tactics=3, kernels=24),
)


def rates_of(flake: float) -> Iterable[tuple[float, float]]:
    """A check that passes by mistake, that fails by mistake, and that does both half as often."""
    return ((0.0, 1 - flake), (flake, 1.0), (flake / 2, 1 - flake / 2))


def calibration(runs: int, generator: np.random.Generator) -> None:
    """Print how often what is claimed at 95 % is right."""
    sizes = (8, 20, 60, 150)
    print(f"\nCalibration: claims at 95 %, {3 * runs * len(sizes)} runs a row ({sizes} builds)")
    print(f"{'network':16} {'flake':>5} | {'claims':>6} {'right':>6} {'share':>7}")
    for network in NETWORKS:
        for flake in (0.0, 0.1, 0.2, 0.3, 0.5):
            said: Counter[str] = Counter()
            for (a, b), size, _ in itertools.product(rates_of(flake), sizes, range(runs)):
                said[judge(draw(network, size, a, b, generator))] += 1
            claims = said["right"] + said["wrong"]
            share = f"{said['right'] / claims:7.1%}" if claims else "      -"
            print(f"{network.name:16} {flake:5.2f} | {claims:6} {said['right']:6} {share}", flush=True)


RATES: Final = (0.05, 0.1, 0.3, 0.5, 0.7, 0.9)


def no_culprit(runs: int, generator: np.random.Generator) -> None:
    """Print what is concluded where failures have nothing to do with tactics."""
    print(f"\nFailures that have nothing to do with tactics: {2 * runs} runs a row (20 and 80 builds)")
    print(f"{'network':16} {'rate':>5} | {'no tactic':>9} {'undecided':>9} {'named':>7}")
    for network in NETWORKS:
        for rate in RATES:
            drawn = [draw(network, size, rate, rate, generator) for size in (20, 80) for _ in range(runs)]
            _print_conclusions(f"{network.name:16} {rate:5.2f}", Counter(map(judge, drawn)))
    print(
        f"\nThe same, looked at again and again until it is decided or 100 builds are made: {runs} runs a row"
    )
    print(f"{'network':16} {'rate':>5} | {'no tactic':>9} {'undecided':>9} {'named':>7}")
    for rate in RATES:
        network = NETWORKS[1]
        drawn = [draw(network, 100, rate, rate, generator) for _ in range(runs)]
        _print_conclusions(
            f"{network.name:16} {rate:5.2f}", Counter(said for said, _ in map(until_decided, drawn))
        )


def _print_conclusions(row: str, said: Counter[str]) -> None:
    total = said.total() if hasattr(said, "total") else sum(said.values())
    named = said["right"] + said["wrong"]
    print(
        f"{row} | {said['no tactic'] / total:9.1%} {said['undecided'] / total:9.1%} {named / total:7.1%}",
        flush=True,
    )


def flaky_checks(runs: int, generator: np.random.Generator) -> None:
    """Print how many builds it takes, beside what set difference says of the very same builds."""
    network = Network(name="50 x 4", layers=50, tactics=4)
    print(
        f"\nBuilds until the culprit is named with 95 % ({network.name}, at most 300 builds, {runs} runs a row)"
    )
    print(
        f"{'passes':>6} | {'median':>6} {'95th':>5} {'right':>6} {'wrong':>6} | set difference: alone, with others, acquitted"
    )
    for flake in (0.0, 0.1, 0.3, 0.5):
        results, sizes, theirs = Counter[str](), [], Counter[str]()
        for _ in range(runs):
            builds = draw(network, 300, 0.0, 1 - flake, generator)
            said, size = until_decided(builds)
            results[said] += 1
            sizes.append(size)
            theirs[stock(builds.first(size))] += 1
        shares = " ".join(f"{theirs[key] / runs:6.0%}" for key in ("alone", "with others", "acquitted"))
        print(
            f"{flake:6.0%} | {np.median(sizes):6.0f} {np.quantile(sizes, 0.95):5.0f} {results['right'] / runs:6.1%} "
            f"{results['wrong'] / runs:6.1%} | {shares}",
            flush=True,
        )


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    share = 5 if arguments.quick else 1
    started = time.monotonic()
    print(f"seed {arguments.seed}")
    for number, (question, runs) in enumerate(
        ((passive, 1000), (calibration, 50), (no_culprit, 100), (flaky_checks, 100))
    ):
        question(runs // share, np.random.default_rng([arguments.seed, number]))
    print(f"\n{time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
