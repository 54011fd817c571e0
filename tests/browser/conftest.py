"""A headless Chromium, driven by its DevTools protocol over two pipes: nothing listens on a port, and no driver is needed.

On a machine without one the tests that use it are skipped, unless PDE_REQUIRE_BROWSER=1 asks for it (as CI does).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from polygraphy_debug_ext.analysis import rank
from polygraphy_debug_ext.analysis.table import table_of
from polygraphy_debug_ext.cli import report_run
from polygraphy_debug_ext.formats import journal as form
from polygraphy_debug_ext.formats import replay
from polygraphy_debug_ext.model import Assignment, Source, Tactic
from polygraphy_debug_ext.reports.html_map import map_data
from polygraphy_debug_ext.reports.html_page import Build, Comparison, Page, render

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
    *("--disable-component-update", "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage"),
    *("--no-default-browser-check", "--mute-audio", "--remote-debugging-pipe"),
)
#: Seconds after which an answer will not come any more.
PATIENCE = 60.0

KEYS = {
    "Tab": 9,
    "Enter": 13,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "PageUp": 33,
    "PageDown": 34,
}


def find() -> str | None:
    """The browser of this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One process with one page. What the page complains of is kept in `complaints`, what it asks the network for in `requests`."""

    def __init__(self, program: str) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._process, self._to, self._from = _start(
            [program, *FLAGS, f"--user-data-dir={self._profile.name}"]
        )
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._from, selectors.EVENT_READ)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Ask for something, and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, path: Path) -> float:
        """Open a file, wait until its script is done, and return how many seconds that took since the navigation began."""
        self._loaded = False
        self.complaints.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.absolute().as_uri())
        end = time.monotonic() + PATIENCE
        while not self._loaded:
            self._receive(end)
        ready = self.run("document.documentElement.dataset.ready ?? null")
        return -1.0 if ready is None else float(ready) / 1000

    def run(self, expression: str) -> Any:  # noqa: ANN401 - whatever the expression is
        """Evaluate JavaScript in the page; return its value."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def frame(self) -> None:
        """Wait until the page has been drawn again: scroll events and observers are over then."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))")

    def press(self, key: str, *, shift: bool = False, ctrl: bool = False) -> None:
        """Press and release a key."""
        modifiers = 8 * shift + 2 * ctrl
        text = {"Enter": "\r", " ": " "}.get(key, "")
        usual = {"key": key, "windowsVirtualKeyCode": KEYS[key], "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **usual)
        self.call("Input.dispatchKeyEvent", type="keyUp", **usual)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def window(self, width: int, height: int, *, scheme: str = "light") -> None:
        """Set the size of the window, and whether people prefer light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def close(self) -> None:
        """End the process and all that it started."""
        self._selector.close()
        os.close(self._to)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._from)
        self._profile.cleanup()

    def _receive(self, end: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            assert self._selector.select(max(0.0, end - time.monotonic())), "the browser does not answer"
            chunk = os.read(self._from, 2**20)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning", "assert"}:
            self.complaints.append(json.dumps(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])


def _start(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], int, int]:
    """Start the browser, which reads from its descriptor 3 and writes to 4; return our ends."""
    their_read, to = os.pipe()
    from_, their_write = os.pipe()
    # The shell puts the descriptors where they belong; it is replaced by the browser then.
    program = f'exec "$@" 3<&{their_read} 4>&{their_write}'
    process = subprocess.Popen(
        ["bash", "-c", program, "bash", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(their_read, their_write),
        start_new_session=True,
    )
    os.close(their_read)
    os.close(their_write)
    return process, to, from_


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """One browser for all tests of a process."""
    program = find()
    if program is None:
        text = f"there is no Chromium on this machine (none of {', '.join(NAMES)}): as root, `apt-get install chromium`"
        if os.environ.get("PDE_REQUIRE_BROWSER") == "1":
            pytest.fail(f"PDE_REQUIRE_BROWSER=1, and {text}")
        pytest.skip(text)
    browser = Chromium(program)
    yield browser
    browser.close()


STAMP = "12-02-26_09-35-12"
#: Layer to number of its tactic, of each build; those with an odd number are bad, and so is tactic 2 of `conv1`.
BUILDS: tuple[dict[str, int], ...] = tuple(
    {
        "noise": 31 + number // 2 % 3,
        "conv1": 1 + number % 2,
        "pool": 3 + number // 4 % 2,
        "constant": 5,
        **({"reformat": 9} if number in {2, 5} else {}),
    }
    for number in range(15)
)
HOSTILE = (
    "</script><script>window.hacked=1</script>",
    '"><img src=x onerror=window.hacked=1>',
    "<b>\u202egnp.exe</b> & &lt;",
    "<!-- <script> ' ` ${window.hacked=1} {{ 7 * 7 }} {% raw %}",
)


def tactic(number: int, kernel: str = "") -> Tactic:
    return Tactic(implementation=7, tactic=number, kernel=kernel or f"kernel_{number}")


def write_builds(root: Path, builds: Sequence[Mapping[str, Tactic]]) -> None:
    """File replays as `debug build` does; those with an odd number are bad."""
    for number, layers in enumerate(builds):
        place = root / ("bad" if number % 2 else "good")
        place.mkdir(parents=True, exist_ok=True)
        made = Assignment(layers=layers, source=Source.SELECTOR, metadata={"tensorrt": "10.13.3.9"})
        replay.write(place / f"replay_{STAMP}_N{number}.json", made)


def write_journal(root: Path, trials: int) -> None:
    """Write the journal of a run whose last trial crashed, and a log of the build of each."""
    run = {"version": form.VERSION, "tool": "polygraphy-debug-ext", "directory": str(root), "settings": {}}
    command = ["polygraphy", "debug", "build", "a model.onnx"]
    start = form.RunStarted(stamp=STAMP, time="2026-12-02T09:35:12.381+00:00", command=command, **run)  # type: ignore[arg-type]
    events: list[form.Event] = [start, form.Surroundings(values={"tensorrt": "10.13.3.9", "host": "vm"})]
    for number in range(trials):
        verdict = "bad" if number % 2 else "good"
        place = form.Placement(
            source="replay.json", destination=f"{verdict}/replay_{STAMP}_N{number}.json", digest="sha256:0"
        )
        events += [
            form.TrialStarted(trial=number, time=f"2026-12-02T09:36:{number:02}.000+00:00"),
            form.TrialBuilt(trial=number, seconds=1.5),
            form.TrialChecked(
                trial=number,
                repetition=0,
                seconds=0.25,
                verdict=verdict,
                reason="CHECK_EXIT_CODE",
                exit_code=number % 2,
            ),
            form.TrialJudged(
                trial=number, verdict=verdict, reason="CHECK_EXIT_CODE", seconds=1.75, placements=[place]
            ),
            form.TrialEnded(trial=number),
        ]
    site = form.Site(layer="conv1", runner="CaskConvolution", tactic="0x0000000000000002")
    events += [
        form.TrialStarted(trial=trials, time="2026-12-02T09:37:00.000+00:00"),
        form.TrialBuilt(trial=trials, seconds=0.5, failure="BUILD_CRASH", text="signal 11", site=site),
        form.TrialJudged(
            trial=trials, verdict="unresolved", reason="BUILD_CRASH", seconds=0.5, detail="signal 11"
        ),
        form.TrialEnded(trial=trials),
        form.RunStopped(time="2026-12-02T09:37:01.000+00:00", reason="ITERATIONS_DONE"),
    ]
    (root / form.NAME).write_bytes(b"".join(map(form.encode, events)))
    (root / "logs").mkdir()
    for number in range(trials + 1):
        (root / "logs" / f"{STAMP}_N{number}_build.log").write_text("built\n")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of fifteen builds, where one tactic of `conv1` is at fault, and a crash."""
    root = tmp_path_factory.mktemp("a # run?")
    write_builds(root, [{name: tactic(each) for name, each in build.items()} for build in BUILDS])
    write_journal(root, len(BUILDS))
    assert report_run.run(str(root), None, "Tactic report") == 0
    return root / "report.html"


@pytest.fixture(scope="session")
def hostile_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page where everything that can have a name has a bad one."""
    root = tmp_path_factory.mktemp("hostile")
    write_builds(
        root, [{name: tactic(each % 2, f"{name}{each % 2}") for name in HOSTILE} for each in range(6)]
    )
    page = root / "javascript:report.html"
    assert report_run.run(str(root), str(page), HOSTILE[0]) == 0
    return page


@pytest.fixture(scope="session")
def constant_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of builds that all chose the same."""
    root = tmp_path_factory.mktemp("constant")
    write_builds(root, [{"conv1": tactic(1)}] * 4)
    assert report_run.run(str(root), None, "Tactic report") == 0
    return root / "report.html"


@pytest.fixture(scope="session")
def large_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of 100 builds and 3000 layers, most of which vary."""
    generator = random.Random(11)
    tactics = [
        [tactic(1000 * layer + each, f"kernel_{each}_" + "x" * 80) for each in range(6)]
        for layer in range(3000)
    ]
    names = [f"/model/layers.{layer // 7}/mlp/down_proj/MatMul_{layer}" for layer in range(3000)]
    builds = [
        Assignment(
            layers={
                name: generator.choice(each if number % 4 else each[:1])
                for number, (name, each) in enumerate(zip(names, tactics, strict=True))
            },
            source=Source.SELECTOR,
        )
        for _ in range(100)
    ]
    table = table_of(builds[:80], builds[80:])
    answer = rank(table)
    columns = tuple(
        Build(label=f"N{each}", name=f"replay_N{each}.json", bad=each >= 80) for each in range(100)
    )
    order = [*range(80, 100), *range(80)]
    comparison = Comparison(
        heading="",
        answer=answer,
        sentences=("A large page.",),
        builds=tuple(columns[each] for each in order),
        map=map_data(table, answer, order),
    )
    path = tmp_path_factory.mktemp("large") / "report.html"
    path.write_bytes(render(Page(title="Large", directory="/", made="", comparisons=(comparison,), runs=())))
    return path
