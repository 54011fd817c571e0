"""Puts our subtools among those of `polygraphy debug`: a stock one of the same name gives way, others are added."""

from __future__ import annotations

import argparse
import functools
from typing import TYPE_CHECKING, Any

import polygraphy
from polygraphy.logger import G_LOGGER

from polygraphy_debug_ext import __version__

if TYPE_CHECKING:
    from collections.abc import Callable

    Subtools = tuple[str, list[Any]]

_MARK = "polygraphy_debug_ext"

#: The newest Polygraphy that our subtools were tested with; a newer one is tried out first, which takes a few milliseconds.
_TESTED = (0, 53, 6)


def hang() -> None:
    """Add our subtools to the `debug` tool; say so, and leave it alone, if it is not as we know it."""
    try:
        from polygraphy.tools.debug.debug import Debug  # noqa: PLC0415 - another Polygraphy may not have it

        # One that it inherits would say nothing of its subtools.
        stock = vars(Debug)["get_subtools_impl"]
        if not hasattr(stock, _MARK):
            Debug.get_subtools_impl = _with_ours(stock)
    except Exception as error:  # noqa: BLE001 - whatever is wrong, Polygraphy's own commands must go on working
        _explain(error)


def _with_ours(stock: Callable[[Any], Subtools]) -> Callable[[Any], Subtools]:
    @functools.wraps(stock)
    def get_subtools_impl(self: Any) -> Subtools:  # noqa: ANN401 - Polygraphy has no types
        title, subtools = stock(self)
        try:
            ours = _our_subtools()
            if not _is_tested(polygraphy.__version__):
                _try_out(ours)
        except Exception as error:  # noqa: BLE001 - as above
            _explain(error)
            return title, subtools
        return title, [*ours, *(tool for tool in subtools if tool.name not in {each.name for each in ours})]

    setattr(get_subtools_impl, _MARK, True)
    return get_subtools_impl


def _our_subtools() -> list[Any]:
    from polygraphy_debug_ext.cli.bisect import BisectTactics  # noqa: PLC0415 - what is missing in it must be caught above
    from polygraphy_debug_ext.cli.build import Build  # noqa: PLC0415
    from polygraphy_debug_ext.cli.convert import ConvertTactics  # noqa: PLC0415
    from polygraphy_debug_ext.cli.diff_tactics import DiffTactics  # noqa: PLC0415
    from polygraphy_debug_ext.cli.report import Report  # noqa: PLC0415

    return [Build(), DiffTactics(), BisectTactics(), ConvertTactics(), Report()]


def _is_tested(version: str) -> bool:
    numbers = version.split(".")
    return all(number.isdecimal() for number in numbers) and tuple(map(int, numbers)) <= _TESTED


def _try_out(tools: list[Any]) -> None:
    """Let each tool set up its parser: a fault found later would take stock subtools with it."""
    subparsers = argparse.ArgumentParser(add_help=False).add_subparsers()
    for tool in tools:
        type(tool)().setup_parser(subparsers)


def _explain(error: Exception) -> None:
    G_LOGGER.warning(
        f"polygraphy-debug-ext {__version__} does not fit Polygraphy {getattr(polygraphy, '__version__', '(unknown version)')}, so "
        f"`polygraphy debug` has its stock subtools only ({type(error).__name__}: {error}). Install another version of either."
    )
