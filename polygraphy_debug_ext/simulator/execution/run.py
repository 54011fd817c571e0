"""Runs an engine: a session per profile, flaky faults drawn afresh for every inference."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import numpy as np

from polygraphy_debug_ext.simulator.compiler.kernels import fraction
from polygraphy_debug_ext.simulator.compiler.sessions import open_session
from polygraphy_debug_ext.simulator.compiler.timing import ITERATION, REPETITION
from polygraphy_debug_ext.simulator.execution import device
from polygraphy_debug_ext.simulator.execution.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from polygraphy_debug_ext.simulator.compiler.records import Engine
    from polygraphy_debug_ext.simulator.faults import Fault
    from polygraphy_debug_ext.simulator.settings import Settings


class Executor:
    """One profile of an engine, ready to run."""

    def __init__(self, engine: Engine, profile: int, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._program = rewrite(engine, profile, settings.faults())
        self._session = open_session(self._program.model)

    def run(self, feeds: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.generic]]:
        """The outputs for these inputs, by the names of the bindings."""
        root = self._root()
        for fault in self._program.crashes:
            if self._happens(root, fault):
                device.crash()
        values = {self._program.inputs[name]: value for name, value in feeds.items()}
        for fault, switch in self._program.switches.items():
            values[switch] = np.asarray(self._happens(root, fault))
        results = self._session.run(list(self._program.outputs.values()), values)
        return dict(zip(self._program.outputs, (np.asarray(result) for result in results), strict=True))

    def _root(self) -> str:
        """What the chance of this inference depends on."""
        index = device.DEVICE.inferences
        device.DEVICE.inferences += 1
        if self._settings.seed is None:
            return secrets.token_hex(16)
        places = [os.environ.get(name, "") for name in (ITERATION, REPETITION)]
        return "/".join([str(self._settings.seed), self._engine.nonce, *places, str(index)])

    @staticmethod
    def _happens(root: str, fault: Fault) -> bool:
        return fault.rate >= 1 or fraction(root, fault.kernel, fault.layer, fault.effect) < fault.rate
