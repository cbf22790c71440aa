"""One JupyterLab on loopback with a throw-away configuration, and one browser that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ROOT = Path(__file__).resolve().parents[2]
KERNELS = tuple(name for name in os.environ.get("CUTEGEN_BROWSER_KERNELS", "python3").split(",") if name)
"""Kernelspecs the suite runs on; `make test-browser` adds one for each ipykernel it installs."""
SHOTS = os.environ.get("CUTEGEN_BROWSER_SHOTS", "")
"""Where screenshots are kept; nowhere when empty."""

PATIENCE_S = 120.0
"""Seconds that a wait takes at most: a machine under load is slow and nothing is wrong with it."""

_SETTINGS = {
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "notebook-extension/tracker": {"windowingMode": "none"},
    # A test saves its file itself. Beside JupyterLab's own saving, on a slow machine, that asked whether to
    # overwrite a file that "changed on disk", and waited for an answer.
    "docmanager-extension/plugin": {"autosave": False},
}
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_READY = """async (patience) => {
  const ready = async () => {
    const app = window.jupyterapp;
    await app.restored;
    const panel = app.shell.currentWidget;
    await panel.context.ready;
    await panel.sessionContext.ready;
    await panel.sessionContext.session.kernel.info;
    return true;
  };
  const late = new Promise((resolve) => setTimeout(() => resolve(false), patience));
  return Promise.race([ready(), late]);
}"""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: needs Chromium and JupyterLab")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _missing()
    for item in items:
        if Path(item.path).parent != Path(__file__).parent:
            continue
        item.add_marker("browser")
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _missing() -> str:
    if not Path(CHROMIUM).exists():
        return f"no browser at {CHROMIUM}: `apt-get install chromium`, or set CHROMIUM to one"
    for module in ("playwright", "jupyterlab", "anywidget"):
        try:
            __import__(module)
        except ImportError:
            return f"{module} is not installed: pip install -e '.[lab,test]'"
    return ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kernel_name" in metafunc.fixturenames:
        metafunc.parametrize("kernel_name", KERNELS, scope="session")


@dataclass
class Lab:
    """A running server."""

    url: str
    folder: Path

    def api(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"{self.url}/api/{path}", method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read().decode()
        return json.loads(text) if text else None

    def end_kernels(self, notebook: str = "") -> None:
        """End the kernels of one notebook, or of all."""
        for item in self.api("GET", "sessions"):
            if notebook in {"", item["path"]}:
                self.api("DELETE", f"sessions/{item['id']}")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("notebooks")
    for name, value in _SETTINGS.items():
        extension, _, plugin = name.partition("/")
        path = home / "config/lab/user-settings/@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER_", "JPY", "OPENAI", "PYTEST"))},
        "JUPYTER_PATH": os.environ.get("JUPYTER_PATH", ""),
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "config/lab/user-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}"),
        *("--ServerApp.port_retries=0", "--allow-root", "--expose-app-in-browser"),
        *("--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.disable_check_xsrf=True"),
        f"--ServerApp.root_dir={folder}",
    ]
    log = (home / "lab.log").open("w")
    server = subprocess.Popen(
        command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    running = Lab(url=f"http://127.0.0.1:{port}", folder=folder)
    try:
        _await_server(running, server, home / "lab.log")
        yield running
        running.end_kernels()
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()
        shutil.rmtree(home, ignore_errors=True)


def _await_server(running: Lab, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if server.poll() is not None:
            break
        try:
            running.api("GET", "status")
        except OSError:
            time.sleep(0.1)
        else:
            return
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium for the tests of one file.

    Playwright keeps an event loop running in this thread, in which `asyncio.run` of another file's test fails.
    """
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as play:
        launched = play.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=list(_ARGUMENTS), timeout=PATIENCE_S * 1000
        )
        expect.set_options(timeout=PATIENCE_S * 1000)
        yield launched
        launched.close()


@dataclass
class Notebook:
    """One notebook in the browser."""

    page: Any
    path: Path
    lab: Lab
    outside: list[str] = field(default_factory=list)
    """Requests that left loopback."""
    errors: list[str] = field(default_factory=list)
    """Errors of the page's own scripts."""

    def open(self) -> None:
        """Load the page, again where its kernel does not answer: JupyterLab waits without an end for one."""
        for _ in range(3):
            self.page.goto(f"{self.lab.url}/lab/tree/{self.path.name}?reset")
            self.page.wait_for_selector(".jp-Notebook .jp-Cell")
            if self.page.evaluate(_READY, PATIENCE_S * 1000):
                return
        pytest.fail(f"the kernel of {self.path.name} did not answer in three times {PATIENCE_S:.0f} s")

    def run(self, index: int, *, wait: bool = True, timeout_s: float = PATIENCE_S) -> None:
        """Run a cell; with `wait` until its reply came."""
        self.page.evaluate(
            """(i) => { const panel = window.jupyterapp.shell.currentWidget;
            panel.content.activeCellIndex = i; panel.content.deselectAll();
            panel.content.model.cells.get(i).sharedModel.execution_count = null;
            void window.jupyterapp.commands.execute('notebook:run-cell'); }""",
            index,
        )
        if wait:
            self.until(
                lambda: self.cell(index)["execution_count"] is not None,
                timeout_s,
                f"cell {index} to finish",
            )

    def cell(self, index: int) -> dict[str, Any]:
        found: dict[str, Any] = self.page.evaluate(
            "(i) => window.jupyterapp.shell.currentWidget.content.model.cells.get(i).toJSON()", index
        )
        return found

    def cells(self) -> int:
        count: int = self.page.evaluate(
            "() => window.jupyterapp.shell.currentWidget.content.model.cells.length"
        )
        return count

    def add(self, source: str) -> int:
        """A new cell at the end, not run."""
        count: int = self.page.evaluate(
            """(source) => { const cells = window.jupyterapp.shell.currentWidget.content.model.sharedModel;
            cells.insertCell(cells.cells.length, { cell_type: 'code', source });
            return cells.cells.length; }""",
            source,
        )
        return count - 1

    def say(self, source: str, timeout_s: float = PATIENCE_S) -> str:
        """What a new cell prints."""
        index = self.add(source)
        self.run(index, timeout_s=timeout_s)
        return self.text(index)

    def text(self, index: int) -> str:
        """What a cell printed."""
        parts = []
        for output in self.cell(index)["outputs"]:
            text = output.get("text", output.get("data", {}).get("text/plain", output.get("traceback", "")))
            parts.append("".join(text) if isinstance(text, list) else text)
        return "".join(parts)

    def until(self, holds: Any, timeout_s: float = PATIENCE_S, what: str = "it") -> None:
        end = time.monotonic() + timeout_s
        while not holds():
            if time.monotonic() > end:
                self.shot("timeout")
                pytest.fail(f"waited {timeout_s:.0f} s for {what}; {self.said()}")
            self.page.wait_for_timeout(50)

    def outputs(self, index: int) -> Any:
        """The outputs of a cell: found by the notebook's own list, since the page holds other cells as well."""
        self.page.evaluate(
            """(i) => window.jupyterapp.shell.currentWidget.content.widgets[i]
            .node.setAttribute('data-test-cell', String(i))""",
            index,
        )
        return self.page.locator(f'[data-test-cell="{index}"] .jp-OutputArea')

    def panel(self, index: int) -> Any:
        """The panel below a cell."""
        return self.outputs(index).locator(".cgn-panel")

    def until_panel(self, index: int, words: str) -> None:
        """Wait for words in the panel below a cell."""
        self.until(lambda: words in _shown_text(self.panel(index)), what=repr(words))

    def until_revision(self, index: int, number: int) -> None:
        """Wait until the panel below a cell asks about a round's revision."""
        asked = tuple(f"r{number} waits for you: {words}?" for words in _AT_REVISION)
        self.until(
            lambda: any(words in _shown_text(self.panel(index)) for words in asked),
            what=f"r{number} to decide on",
        )

    def until_output(self, index: int, words: str) -> None:
        """Wait for words anywhere in the outputs of a cell."""
        self.until(lambda: words in _shown_text(self.outputs(index)), what=repr(words))

    @staticmethod
    def expect(found: Any) -> Any:
        """Playwright's assertions on what a locator finds; each waits until it holds."""
        from playwright.sync_api import expect

        return expect(found)

    def said(self) -> str:
        """What every panel of the page says and, where it has none, every output, for a message."""
        panels = self.page.locator(".cgn-panel").all_inner_texts()
        if panels:
            return "the panel says: " + "\n---\n".join(text[:1500] for text in panels)
        outputs = self.page.locator(".jp-Notebook .jp-OutputArea").all_inner_texts()
        views = self.page.locator(".jp-Notebook .jp-OutputArea-output").evaluate_all(
            "(found) => found.map((one) => one.className)"
        )
        return f"no panel; the outputs say: {outputs}, of classes {views}; errors of scripts: {self.errors}"

    def save(self) -> None:
        """Save the file, and wait until it is written."""
        self.page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")

    def set_theme(self, theme: str) -> None:
        """Show the page ``light`` or ``dark``. The server keeps the choice for the notebooks opened later."""
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })",
            f"JupyterLab {theme.capitalize()}",
        )
        is_light = "true" if theme == "light" else "false"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{is_light}']", state="attached")
        # JupyterLab fades its splash for 200 ms, and fails to remove it twice where a second change is sooner.
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")

    def restart_kernel(self) -> None:
        self.page.evaluate(
            """async () => { const context = window.jupyterapp.shell.currentWidget.sessionContext;
            await context.session.kernel.restart(); await context.session.kernel.info; }"""
        )

    def shot(self, name: str, selector: str = "") -> None:
        if SHOTS:
            target = self.page.locator(selector).first if selector else self.page
            target.screenshot(path=str(Path(SHOTS) / f"{self.path.stem}-{name}.png"))


def _shown_text(found: Any) -> str:
    """The visible text of what a locator finds; empty while it finds nothing. It does not wait."""
    return "\n".join(found.all_inner_texts())


_AT_REVISION = ("build on it", "keep it", "mend or reject it")


@dataclass
class Sitting:
    """One session in one cell of a notebook, with its panel and its rows in the store."""

    notebook: Notebook
    name: str
    index: int

    @property
    def panel(self) -> Any:
        return self.notebook.panel(self.index)

    def shown(self) -> str:
        """What the panel says now; empty while there is none."""
        return _shown_text(self.panel)

    def button(self, name: str) -> Any:
        return self.panel.get_by_role("button", name=name, exact=True)

    def click(self, name: str) -> None:
        self.button(name).click()

    def until_status(self, words: str) -> None:
        """Wait for words in the panel's line of refusals."""
        self.expect(self.panel.locator(".cgn-status")).to_contain_text(words)

    def expect(self, found: Any) -> Any:
        """Playwright's assertions on what a locator finds; each waits until it holds."""
        return self.notebook.expect(found)

    def expect_disabled(self, name: str) -> None:
        """Wait until a button is of no use; it stays in the order of the keys."""
        self.expect(self.button(name)).to_have_attribute("aria-disabled", "true")

    def until(self, words: str, timeout_s: float = PATIENCE_S) -> None:
        self.notebook.until(lambda: words in self.shown(), timeout_s, repr(words))

    def at_prompt(self, number: int) -> None:
        self.until(f"r{number} waits for you: send the request?")

    def until_request(self, number: int, words: str) -> None:
        """Wait for words at the head of the request that waits; an editor draws only what is in sight."""
        self.at_prompt(number)
        editor = self.panel.get_by_label(f"Request for r{number}, editable")

        # The editor is made anew with the request, maybe between a look for it and its scrolling.
        def is_shown() -> bool:
            editor.evaluate("(element) => element.scrollIntoView({ block: 'start' })")
            return words in editor.inner_text()

        self.notebook.until(is_shown, PATIENCE_S, repr(words))

    def at_revision(self, number: int) -> None:
        self.notebook.until_revision(self.index, number)

    def ask(self, number: int) -> None:
        """Send the request for a round, and wait for its revision."""
        self.at_prompt(number)
        self.click("Ask")
        self.at_revision(number)

    def editor(self, number: int) -> Any:
        """The editor of the source that waits."""
        return self.panel.get_by_label(f"Source of r{number}, editable")

    def add_to_source(self, number: int, text: str) -> None:
        """Type at the end of the source that waits."""
        self.editor(number).press("Control+End")
        self.notebook.page.keyboard.insert_text(text)

    def replace_source(self, number: int, text: str) -> None:
        """Type over the whole of the source that waits."""
        self.editor(number).press("Control+a")
        self.notebook.page.keyboard.insert_text(text)

    def versions(self) -> Any:
        """The buttons of the versions of the round's kernel; none where there is only one version."""
        return self.panel.locator(".cgn-versions [aria-pressed]")

    def evaluate_edit(self, number: int) -> None:
        """Have the edited source evaluated, and wait for its verdict."""
        before = self.versions().count()
        self.click("Evaluate my edit")
        self.notebook.until(lambda: self.versions().count() > before, what="the edited version")
        self.at_revision(number)

    def rounds(self) -> list[dict[str, Any]]:
        """The bodies of the stored rounds."""
        rows = self.query(
            "SELECT rounds.body FROM rounds JOIN sessions ON sessions.id = session_id "
            "WHERE sessions.name = ? ORDER BY number",
            self.name,
        )
        return [json.loads(row[0]) for row in rows]

    def query(self, words: str, *values: object) -> list[tuple[Any, ...]]:
        path = self.notebook.lab.folder / ".cutegen" / "sessions.sqlite"
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return connection.execute(words, values).fetchall()
        finally:
            connection.close()

    def stored(self, number: int) -> dict[str, Any]:
        """A round, once it is in the store."""
        self.notebook.until(lambda: len(self.rounds()) > number, what=f"r{number} in the store")
        return self.rounds()[number]

    def stopped(self) -> str:
        """Why the session ended, as it is stored."""
        found = self.query("SELECT stopped FROM sessions WHERE name = ?", self.name)
        return str(found[0][0]) if found else ""


PROBLEM = """import torch
def relu(x):
    return torch.relu(x)
def get_inputs():
    return [torch.randn(64, 256)]
"""


@pytest.fixture(scope="module")
def desk(lab: Lab, browser: Any, kernel_name: str, request: pytest.FixtureRequest) -> Iterator[Notebook]:
    """A notebook with the extension loaded, on one kernel: its evaluator is shared by the tests of a file."""
    name = f"desk_{request.path.stem}_{kernel_name}"
    context, notebook = _open(lab, browser, name, ["%load_ext cutegen_nb"], kernel_name)
    notebook.run(0)
    yield notebook
    context.close()
    lab.end_kernels()


@pytest.fixture
def sit(desk: Notebook, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A function that starts a session in a new cell; whatever is left of it is stopped afterwards."""
    sittings: list[Sitting] = []

    def start(options: str = "", problem: str = PROBLEM, name: str = "") -> Sitting:
        name = name or "".join(c if c.isalnum() else "_" for c in request.node.name).strip("_")
        words = f"%%cutegen --name {name} --policy ask --device simulator {options}"
        sitting = Sitting(notebook=desk, name=name, index=desk.add(f"{words}\n{problem}"))
        desk.run(sitting.index)
        sittings.append(sitting)
        return sitting

    yield start
    desk.shot(f"{request.node.name}-end")
    for sitting in sittings:
        if not sitting.stopped():
            desk.say(f"%cutegen stop --name {sitting.name}")
    assert desk.errors == []
    assert desk.outside == []


@pytest.fixture
def make_notebook(lab: Lab, browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A function that opens a notebook of the given cells on a kernel of its own."""
    contexts = []

    def make(sources: list[str], kernel: str = "python3") -> Notebook:
        name = "".join(c if c.isalnum() else "_" for c in request.node.name)
        context, notebook = _open(lab, browser, name, sources, kernel)
        contexts.append(context)
        return notebook

    yield make
    for context in contexts:
        context.close()


def _open(lab: Lab, browser: Any, name: str, sources: list[str], kernel: str) -> tuple[Any, Notebook]:
    path = lab.folder / f"{name}.ipynb"
    cells = [
        {
            "cell_type": "code",
            "id": f"c{i}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for i, source in enumerate(sources)
    ]
    kernelspec = {"name": kernel, "display_name": kernel, "language": "python"}
    content = {"cells": cells, "metadata": {"kernelspec": kernelspec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content))
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_S * 1000)
    page = context.new_page()
    notebook = Notebook(page=page, path=path, lab=lab)
    page.on("request", lambda sent: _watch(sent.url, lab, notebook.outside))
    page.on("console", lambda said: _note(said, notebook.errors))
    page.on("pageerror", lambda error: notebook.errors.append(str(error.stack or error)))
    notebook.open()
    return context, notebook


def _note(said: Any, errors: list[str]) -> None:
    """Errors that the panel's own code reports; JupyterLab's are not ours to judge."""
    if said.type == "error" and "panel" in (said.location or {}).get("url", "") + said.text:
        errors.append(said.text)


def _watch(url: str, lab: Lab, outside: list[str]) -> None:
    if not url.startswith((lab.url, lab.url.replace("http", "ws"), "data:", "blob:", "about:")):
        outside.append(url)
