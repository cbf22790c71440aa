"""Order of the suite, and what each of its processes and tests starts with."""

from __future__ import annotations

import atexit
import collections
import gc
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cutegen_nb.evaluator.process.fork_server import ForkServer

gc.disable()
"""Until the tests are collected: the modules and tests that are made until then stay."""
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background jobs ignore it, and the processes that a test interrupts would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the same of what runs under nohup
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
    os.environ["SOME_API_KEY"] = "secret"  # for the test that no candidate sees it
    servers: dict[str, ForkServer] = {}
    yield servers
    for server in servers.values():
        server.close()


@pytest.fixture(scope="session")
def template(templates: dict[str, ForkServer]) -> ForkServer:
    """Fork server of the simulator's first architecture, for evaluators of this process."""
    from cutegen_nb.evaluator.process.fork_server import ForkServer

    return templates.setdefault("sm_80", ForkServer("simulator", "sm_80"))


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
    """Mark the cases of sweeps that are ``long`` or ``sweep``, and order the tests that are left."""
    _mark_cases(items)
    yield
    _put_slow_files_first(items)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Collect garbage from now on, but not among what stays."""
    gc.freeze()
    gc.enable()


def _mark_cases(items: list[pytest.Item]) -> None:
    cases: collections.Counter[str] = collections.Counter()
    for item in items:
        function = item.nodeid.partition("[")[0]
        at = cases[function]
        cases[function] += 1
        first, every = item.get_closest_marker("first"), item.get_closest_marker("every")
        if first is not None and at >= first.args[0]:
            item.add_marker("long")
        if every is not None:
            if at % every.kwargs.get("test", 1):
                item.add_marker("long")
            if at % every.kwargs.get("long", 1) and item.get_closest_marker("long"):
                item.add_marker("sweep")


def _put_slow_files_first(items: list[pytest.Item]) -> None:
    """Files of slow tests first: a long one at the end would keep one process busy and leave the others idle."""
    slow = {item.path for item in items if _is_slow(item)}
    items.sort(key=lambda item: item.path not in slow)


SHARED = {
    "sm_90a programs": (
        "tests/simulator/ops/warpgroup/test_hopper_programs.py", "tests/simulator/ops/sync/test_pipeline_programs.py",
        "tests/simulator/state/test_tensor_map", "tests/simulator/host/test_tensor_maps.py",
    ),
    "sm_80 programs": ("tests/simulator/host/", "tests/simulator/checkers/"),
    "kernels on Hopper": (
        "tests/authors/test_offline_attention.py", "tests/authors/offline/test_examples.py",
        "tests/authors/offline/fused/test_residence.py",
    ),
    "kernels": (
        "tests/authors/test_offline_kernels.py", "tests/authors/test_offline_random_graphs.py",
        "tests/authors/offline/operators/", "tests/authors/offline/fused/", "tests/authors/offline/test_requests.py",
    ),
}  # fmt: skip
"""Files, by the start of their path, whose tests ask one simulator process: each worker would start its own."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep files that share a process on one worker, with ``--dist=loadfile``."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = (name for name, starts in SHARED.items() if nodeid.startswith(starts))
            return next(shared, super()._split_scope(nodeid))

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def _is_slow(item: pytest.Item) -> bool:
    return item.path.parent.name == "browser" or item.get_closest_marker("slow") is not None
