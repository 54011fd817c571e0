"""Our subtools hang under `polygraphy debug`; where Polygraphy has changed shape, its own commands go on working."""

from __future__ import annotations

import subprocess
import sys

import pytest

from polygraphy_debug_ext import __version__

RUN = "import sys, polygraphy.tools; sys.exit(polygraphy.tools.main())"


def polygraphy(*arguments: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run Polygraphy in a fresh interpreter, after the statements `before`."""
    command = [sys.executable, "-c", f"{before}\n{RUN}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_our_subtools_are_under_debug_beside_the_stock_ones() -> None:
    done = polygraphy("debug", "--help")
    assert done.returncode == 0
    for name in ("build", "diff-tactics", "precision", "reduce", "repeat"):
        assert f"\n    {name}" in done.stdout
    assert "does not fit" not in done.stdout


def test_build_is_ours() -> None:
    assert "--build-failure" in polygraphy("debug", "build", "--help").stdout


CHANGES = {
    "debug is elsewhere": "import polygraphy.tools.debug.debug as debug; debug.Moved = debug.Debug; del debug.Debug",
    "subtools are listed otherwise": (
        "from polygraphy.tools.debug.debug import Debug; Debug.get_subtools = Debug.get_subtools_impl; "
        "del Debug.get_subtools_impl"
    ),
    "an argument group is gone": (
        "import polygraphy.tools.debug.subtool.iterative_debug_args as groups; del groups.CheckCmdArgs"
    ),
    "an argument group takes other arguments": (
        "from polygraphy_debug_ext.cli.build import Build\n"
        "def changed(self): raise TypeError('unexpected keyword argument')\n"
        "Build.get_subscriptions_impl = changed"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_polygraphy_of_another_shape_is_explained_and_goes_on_working(change: str) -> None:
    before = f"import polygraphy.tools.registry\npolygraphy.__version__ = '99.1.0'\n{change}"
    done = polygraphy("inspect", "data", "--help", before=before)
    assert done.returncode == 0
    sentence = f"polygraphy-debug-ext {__version__} does not fit Polygraphy 99.1.0"
    assert (done.stdout + done.stderr).count(sentence) == 1
    assert "Install another version of either" in done.stdout + done.stderr


def test_a_newer_polygraphy_of_the_same_shape_has_our_subtools() -> None:
    before = "import polygraphy.tools.registry\npolygraphy.__version__ = '99.1.0'"
    done = polygraphy("debug", "build", "--help", before=before)
    assert "--build-failure" in done.stdout
    assert "does not fit" not in done.stdout


def test_registering_twice_changes_nothing() -> None:
    program = (
        "from polygraphy_debug_ext.plugin import register\n"
        "from polygraphy.tools.debug.debug import Debug\n"
        "assert register() == register() == []\n"
        "names = [tool.name for tool in Debug().get_subtools_impl()[1]]\n"
        "assert len(names) == len(set(names)), names\n"
        "print(names)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "diff-tactics" in done.stdout


def test_a_start_of_polygraphy_imports_nothing_heavy() -> None:
    program = (
        "import sys, polygraphy.tools\n"
        "try:\n    polygraphy.tools.main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'tensorrt', 'onnx', 'onnxruntime', 'numpy', 'msgspec', 'rich', 'psutil', 'jinja2', 'dask'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, "-h"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy: []"
