"""Requests of one device's workers: whom the loss of a template is blamed on, and how a GPU is measured once."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from types import SimpleNamespace

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, EvaluationLost, WorkerDied
from cutegen_nb.evaluator.process import device as devices
from cutegen_nb.evaluator.process.fork_server import TemplateLost
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, WorkerRun

ENDED = WorkerRun(end={"how": "exited", "code": 0, "log": "", "left": 0}, folder="run-1")
LIMITS = ProcessLimits(deadline_s=1.0)


class Server:
    """A fork server whose requests end as a test says: an error, or a run."""

    def __init__(self, *endings, alive=False):
        self.endings = list(endings)
        self.alive = alive
        self.discarded = []
        self.confine_files = True
        self.confined = []

    async def run(self, request, limits, answer, **_):
        self.confined.append(self.confine_files)
        ending = self.endings.pop(0)
        if isinstance(ending, Exception):
            raise ending
        if isinstance(ending, dict):
            answer(ending)
            return ENDED
        return ending

    def discard(self, folder):
        self.discarded.append(folder)


def workers(server=None, **settings):
    asked = {
        "device": "simulator",
        "architecture": None,
        "deadline_s": None,
        "memory_bytes": 1 << 30,
        "spare": None,
    }
    made = Workers(**asked | settings)
    made.server = server
    return made


def run(server, *, others=0, stage=""):
    """One request of an evaluation beside this many others, whose worker had named this stage."""

    async def whole():
        made, heard = workers(server), RecordHandler(lambda _: None, stage=stage)
        with contextlib.ExitStack() as running:
            for _ in range(1 + others):
                running.enter_context(made.occupied())
            return await made.run({}, LIMITS, heard)

    return asyncio.run(whole())


def test_a_template_that_was_lost_before_the_worker_began_is_tried_once_more():
    server = Server(TemplateLost(), ENDED)
    assert run(server, others=1) is ENDED
    assert server.discarded == ["run-1"]
    with pytest.raises(TemplateLost):
        run(Server(TemplateLost(), TemplateLost()))


def test_a_template_that_one_evaluation_alone_lost_is_that_candidates_doing():
    assert run(Server(TemplateLost()), stage="importing").end is None


def test_a_template_that_several_lost_is_nobodys_doing():
    with pytest.raises(EvaluationLost):
        run(Server(TemplateLost()), stage="importing", others=1)


def test_a_worker_that_died_under_a_living_template_is_our_fault():
    with pytest.raises(WorkerDied, match="before it began"):
        run(Server(WorkerDied("It ended before it began."), alive=True), stage="importing")


def test_who_was_ever_beside_another_is_not_to_blame_until_all_have_ended():
    made = workers()
    with made.occupied():
        with made.occupied():
            pass
        assert made._crowded
    with made.occupied():
        assert not made._crowded


@pytest.mark.parametrize(
    ("deadline_s", "longer_s", "expected"), [(None, 0.0, 60.0), (None, 15.0, 75.0), (3.0, 1.5, 4.5)]
)
def test_the_simulators_limits_are_those_of_its_settings(deadline_s, longer_s, expected):
    found = asyncio.run(workers(deadline_s=deadline_s).limits(longer_s))
    assert found == ProcessLimits(deadline_s=expected, address_space_bytes=1 << 30, resident_bytes=None)


MEASURED = {
    "kind": "measured",
    "bandwidth": 4e12,
    "peak_flops": {"tensor.f16": 7e14},
    "sm_count": 132,
    "l2_bytes": 9,
    "memory_bytes": 11,
}
NO_DEVICE = {"kind": "error", "error": "DeviceUnavailable", "message": "CUDA finds no device"}


@pytest.fixture
def h200(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = dataclasses.replace(
        devices.simulated("sm_90a"), kind=DeviceKind.GPU, name="NVIDIA H200", uuid="GPU-1", driver="1"
    )
    monkeypatch.setattr(devices, "choose", lambda *_: found)


def measured(*endings):
    made = workers(Server(*endings), device="cuda")
    return made, asyncio.run(made.device())


@pytest.mark.usefixtures("h200")
def test_a_gpu_is_measured_once_and_then_known_by_all_evaluators():
    made, found = measured(MEASURED)
    assert (found.bandwidth_bytes_per_s, found.sm_count) == (4e12, 132)
    assert (found.l2_bytes, found.memory_bytes) == (9, 11)
    assert found.peak_flops["tensor.f16"] == 7e14
    assert found.source.startswith("copy bandwidth and tensor.f16 measured here on ")
    assert (made.confine_files, made.peak_flops) == (True, 7e14)
    again, recalled = measured()  # any request would fail
    assert recalled == found
    assert (again.confine_files, again.peak_flops) == (True, 7e14)


@pytest.mark.usefixtures("h200")
def test_files_stay_open_only_where_cuda_finds_no_device_otherwise():
    made, _ = measured(NO_DEVICE, MEASURED)
    assert made.server.confined == [True, False]
    assert not made.confine_files
    assert not measured()[0].confine_files, "it is kept with the measurement"


@pytest.mark.usefixtures("h200")
@pytest.mark.parametrize(
    ("endings", "words"),
    [([NO_DEVICE, NO_DEVICE], "CUDA finds no device"), ([ENDED], "did not answer; `nvidia-smi`")],
)
def test_a_gpu_that_does_not_answer_is_told(endings, words):
    with pytest.raises(DeviceUnavailable, match=words):
        measured(*endings)


@pytest.mark.usefixtures("h200")
def test_on_a_gpu_resident_memory_is_limited_and_not_the_address_space(monkeypatch):
    sizes = {"SC_PHYS_PAGES": 1 << 20, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr("cutegen_nb.evaluator.process.pool.os", SimpleNamespace(sysconf=sizes.get))
    found = asyncio.run(workers(device="cuda").limits())
    assert found == ProcessLimits(deadline_s=180.0, address_space_bytes=None, resident_bytes=2 << 30)


@pytest.mark.parametrize(("kind", "growing"), [(DeviceKind.GPU, True), (DeviceKind.SIMULATOR, False)])
def test_workers_on_a_gpu_grow_segments_of_memory_and_tools_do_not(kind, growing, monkeypatch):
    workers = Workers(device="auto", architecture=None, deadline_s=None, memory_bytes=1 << 30, spare=None)
    chosen = SimpleNamespace(kind=kind, architecture="sm_90a", uuid="")

    async def choice():
        return chosen

    monkeypatch.setattr(workers, "choice", choice)
    monkeypatch.setattr(devices, "_listed", tuple)
    server = asyncio.run(workers.forks())
    assert ("PYTORCH_CUDA_ALLOC_CONF" in server._variables) is growing
    assert workers.variables(chosen) == {}


def test_a_request_that_comes_after_the_end_starts_no_process():
    made = workers()

    async def asked():
        await made.close()
        await made.run({}, LIMITS, RecordHandler(print))

    with pytest.raises(WorkerDied, match="was closed"):
        asyncio.run(asked())
    assert made.server is None


def test_a_request_whose_template_was_closed_is_not_asked_again():
    """A cancelled request could start a new template after an interrupt, and wait for all of its answer."""
    made = workers()

    class Closing(Server):
        async def run(self, request, limits, answer, **options):
            await made.close()
            return await super().run(request, limits, answer, **options)

        def close(self):
            """End the template."""

    made.server = Closing(TemplateLost(), ENDED)
    with pytest.raises(TemplateLost):
        asyncio.run(made.run({}, LIMITS, RecordHandler(print)))
