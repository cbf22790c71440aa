"""Order of the suite, and what each of its processes and tests starts with."""

from __future__ import annotations

import atexit
import collections
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cutegen_nb.evaluator.process.fork_server import ForkServer

os.environ.pop("COLUMNS", None)
"""pytest-xdist gives its workers one, by which our text is folded; a test that is about folding sets its own."""

DATA = tempfile.mkdtemp(prefix="cutegen-tests-")
"""Data folder of this process, in place of the user's: runs keep what they learn there."""
os.environ["XDG_DATA_HOME"] = DATA
atexit.register(shutil.rmtree, DATA, ignore_errors=True)
_NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def knowledge_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of strategies that one test's runs leave are not found by the next test."""
    if os.environ.get("XDG_DATA_HOME") == DATA:
        monkeypatch.setenv("XDG_DATA_HOME", f"{DATA}/{next(_NUMBERS)}")


@pytest.fixture(scope="session")
def templates() -> Iterator[dict[str, ForkServer]]:
    """Fork servers that outlive an evaluator, by architecture."""
    servers: dict[str, ForkServer] = {}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="module")
def one_template(templates: dict[str, ForkServer]) -> Iterator[None]:
    """Evaluators of this process on the simulator share a template: each would import torch and the DSL."""
    from cutegen_nb.evaluator.process.pool import Workers

    made_anew = Workers.forks

    async def kept(workers: Workers) -> ForkServer:
        architecture = (await workers.choice()).architecture
        workers.server = templates.get(architecture) or await made_anew(workers)
        return templates.setdefault(architecture, workers.server)

    async def left_running(workers: Workers) -> None:
        workers.server = None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Workers, "forks", kept)
        patch.setattr(Workers, "close", left_running)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests, and mark as ``long`` the cases of a sweep after its first ones."""
    _mark_later_cases(items)
    _move_browser_to_the_end(items)


def _mark_later_cases(items: list[pytest.Item]) -> None:
    cases: collections.Counter[str] = collections.Counter()
    for item in items:
        marker = item.get_closest_marker("first")
        if marker is not None:
            function = item.nodeid.partition("[")[0]
            cases[function] += 1
            if cases[function] > marker.args[0]:
                item.add_marker("long")


def _move_browser_to_the_end(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright keeps an event loop running in this thread until the session ends.

    `asyncio.run` in any test after them would fail with "cannot be called from a running event loop".
    """
    items.sort(key=lambda item: item.path.parent.name == "browser")
