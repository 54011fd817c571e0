"""The stopwatch: times candidates, takes from the timing cache what it holds, and is where faulty kernels strike a build."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from polygraphy_debug_ext.simulator.compiler import cache as timing_cache
from polygraphy_debug_ext.simulator.compiler.log import INVALID_TACTIC, Log, combination
from polygraphy_debug_ext.simulator.errors import BuildFailure
from polygraphy_debug_ext.simulator.execution import device

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polygraphy_debug_ext.simulator.compiler.cache import TimingCache
    from polygraphy_debug_ext.simulator.compiler.catalogue import Candidate
    from polygraphy_debug_ext.simulator.compiler.timing import Dice
    from polygraphy_debug_ext.simulator.compiler.tuner import Subject
    from polygraphy_debug_ext.simulator.faults import Fault

# Seconds that the log says it takes to profile one candidate.
PROFILING_SECONDS = 0.004


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A candidate that ran, and how long it took."""

    candidate: Candidate
    time_ms: float


@dataclass(kw_only=True)
class Stopwatch:
    """Times the candidates of one build. Without a `cache` nothing is remembered; `strict` makes a miss an error.

    `editable` makes the log tell the keys of what it remembers.
    """

    log: Log
    dice: Dice
    faults: Sequence[Fault] = ()
    cache: TimingCache | None = None
    strict: bool = False
    editable: bool = False

    def time(
        self, subject: Subject, offered: Iterable[Candidate], costs: Iterable[float]
    ) -> tuple[Timed, ...]:
        """The candidates that ran, in the order in which they were offered."""
        groups: dict[tuple[object, ...], list[tuple[Candidate, float]]] = {}
        for candidate, cost in zip(offered, costs, strict=True):
            groups.setdefault((candidate.inputs, candidate.outputs), []).append((candidate, cost))
        self.log.verbose(f"=============== Computing costs for {subject.name}")
        found = [timed for group in groups.values() for timed in self._combination(subject, group)]
        return tuple(found)

    def _combination(self, subject: Subject, group: list[tuple[Candidate, float]]) -> list[Timed]:
        first = group[0][0]
        shapes = [subject.setting.shape(name) for name in subject.tensors]
        text = combination(first.inputs, first.outputs, shapes)
        known = [self._cached(candidate, subject) for candidate, _ in group]
        if all(time is not None for time in known):
            found = [
                Timed(candidate=entry[0], time_ms=time)
                for entry, time in zip(group, known, strict=True)
                if time is not None
            ]
            best = min(found, key=lambda timed: timed.time_ms)
            kernel = best.candidate.kernel
            self.log.verbose(
                f"{subject.name} [{text}] got cached result: {kernel.runner}, tactic 0x{kernel.tactic:016x}, "
                f"{self.log.time(best.time_ms)} ms"
            )
            return found
        self.log.verbose(f"*************** Autotuning format combination: {text} ***************")
        found = []
        for runner in dict.fromkeys(candidate.kernel.runner for candidate, _ in group):
            found += self._runner(
                subject, runner, [entry for entry in group if entry[0].kernel.runner == runner]
            )
        if found:
            best = min(found, key=lambda timed: timed.time_ms)
            self.log.verbose(
                f">>>>>>>>>>>>>>> Chose Runner Type: {best.candidate.kernel.runner} "
                f"Tactic: 0x{best.candidate.kernel.tactic:016x}"
            )
        return found

    def _runner(self, subject: Subject, runner: str, group: list[tuple[Candidate, float]]) -> list[Timed]:
        name = self.log.runner(runner)
        self.log.verbose(f"--------------- Timing Runner: {subject.name} ({name})")
        found = []
        for candidate, cost in group:
            time = self._measure(subject, candidate, cost)
            if time is None:
                continue
            found.append(Timed(candidate=candidate, time_ms=time))
            kernel = candidate.kernel
            prefix = f"Tactic Name: {kernel.name} " if kernel.named_in_log else ""
            self.log.verbose(f"{prefix}Tactic: 0x{kernel.tactic:016x} Time: {self.log.time(time)}")
        best = min(found, key=lambda timed: timed.time_ms, default=None)
        self.log.message(
            "profiled",
            layer=subject.name,
            runner=name,
            seconds=PROFILING_SECONDS * len(group),
            tactic=best.candidate.kernel.tactic if best else INVALID_TACTIC,
            time=self.log.time(best.time_ms if best else None),
        )
        return found

    def _cached(self, candidate: Candidate, subject: Subject) -> float | None:
        if self.cache is None or device.DEVICE.sticky:
            return None
        return self.cache.times.get(timing_cache.key(candidate, subject.setting))

    def _measure(self, subject: Subject, candidate: Candidate, cost: float) -> float | None:
        known = self._cached(candidate, subject)
        if known is not None:
            return known
        if self.strict and self.cache is not None:
            raise BuildFailure(
                "internal",
                why=f"tactic 0x{candidate.kernel.tactic:016x} of {subject.name} is missing in the timing cache",
            )
        trouble = device.DEVICE.sticky or self.struck(candidate.kernel.name, subject.name, subject.base)
        if trouble:
            self.log.message("skip", tactic=candidate.kernel.tactic, why=trouble)
            return None
        time = self.dice.measured(
            cost, subject.name, candidate.kernel.name, candidate.inputs, candidate.outputs
        )
        if self.cache is not None:
            self.cache.times[timing_cache.key(candidate, subject.setting)] = time
        return time

    def struck(self, kernel: str, *layers: str) -> str:
        """Let planted faults act: the reason why a kernel cannot be used at a layer, if it comes back at all."""
        for fault in self.faults:
            if not fault.matches(kernel, *layers):
                continue
            if not self.dice.happens(fault.rate, fault.kernel, fault.layer, fault.effect):
                continue
            if fault.effect == "build-crash":
                device.crash()
            elif fault.effect == "build-hang":
                device.hang()
            elif fault.effect == "build-error":
                return device.NO_KERNEL
            elif fault.effect == "sticky":
                device.DEVICE.poison()
                self.log.message("cuda", why=device.MISALIGNED)
                return device.MISALIGNED
        return ""
