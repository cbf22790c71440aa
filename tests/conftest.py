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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Mark as ``long`` the cases of a sweep after its first ones, and order the tests that are left."""
    _mark_later_cases(items)
    yield
    _put_slow_files_first(items)


def _mark_later_cases(items: list[pytest.Item]) -> None:
    cases: collections.Counter[str] = collections.Counter()
    for item in items:
        marker = item.get_closest_marker("first")
        if marker is not None:
            function = item.nodeid.partition("[")[0]
            cases[function] += 1
            if cases[function] > marker.args[0]:
                item.add_marker("long")


def _put_slow_files_first(items: list[pytest.Item]) -> None:
    """Files of slow tests first: a long one at the end would keep one process busy and leave the others idle."""
    slow = {item.path for item in items if _is_slow(item)}
    items.sort(key=lambda item: item.path not in slow)


def _is_slow(item: pytest.Item) -> bool:
    return item.path.parent.name == "browser" or item.get_closest_marker("slow") is not None
