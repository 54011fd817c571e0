"""Hangs our doors in Polygraphy: the function that the entry point group `polygraphy.run.plugins` names.

Polygraphy loads it while it sets up `run`, which is before `debug`, and takes argument groups for `run` from it (we
have none). It never raises into Polygraphy: where Polygraphy has changed shape, one sentence says so and `debug` stays stock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polygraphy.tools.args.base import BaseArgs


def register() -> list[BaseArgs]:
    """Put our subtools under `polygraphy debug`, and return no argument groups for `run`."""
    from polygraphy_debug_ext.plugin import doors  # noqa: PLC0415 - Polygraphy reports a failing import without its cause

    doors.hang()
    return []
