"""A worker that waits ahead of its request: the same verdicts, nothing to see, nothing left, nothing lost."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from pathlib import Path

import pytest

from cutegen_nb.core.errors import WorkerDied
from cutegen_nb.evaluator.process import process_tree as sandbox
from cutegen_nb.evaluator.process.device import find_gpu
from cutegen_nb.evaluator.process.exit_report import never_started_error
from cutegen_nb.evaluator.process.supervisor import supervise
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, WaitingWorker, WorkerNeverStarted

pytestmark = pytest.mark.slow
PROBE = """
import gc, hashlib, os, sys
import torch
SEEN = {
    "modules": hashlib.sha256(repr(sorted(sys.modules)).encode()).hexdigest(),
    "threads": len(os.listdir("/proc/self/task")),
    "files": len(os.listdir("/proc/self/fd")),
    "folder": sorted(os.listdir(os.environ["HOME"])),
    "variables": sorted(os.environ),
    "random": hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest(),
    "settings": (torch.get_num_threads(), torch.get_default_dtype(), torch.is_grad_enabled()),
    "compiled": [item for item in gc.get_objects() if type(item).__name__.endswith("JitCompiledFunction")],
    "tensors": sum(type(item) is torch.Tensor for item in gc.get_objects()),
}
print("SEEN", SEEN)
"""
"""At the import of a candidate."""


@pytest.fixture(scope="module")
def spared(judge_class):
    made = judge_class(device="simulator", deadline_s=20.0, memory_bytes=1 << 30, spare=True)
    assert made("relu", "relu").passed
    yield made
    made.close()


def _server(judge):
    return judge.evaluator._workers.server


def _spare(judge):
    """The processes of the spare that waits, its supervisor first; found once it is warm."""
    until = time.monotonic() + 20.0
    while time.monotonic() < until:
        family = sandbox.descendants(judge.template)
        if len(family) == 2 and _quiet(family[1]):
            return family
        time.sleep(0.05)
    raise AssertionError(f"no spare came to wait: {sandbox.descendants(judge.template)}")


def _quiet(pid):
    """Return whether a process used no processor time for a while."""

    def used():
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return None  # the process has ended; the next one is found instead
        return words[11:13]

    before = used()
    time.sleep(0.3)
    return before is not None and used() == before


def _launches(evaluation):
    """Counts depend on the inputs, which are drawn afresh."""
    return evaluation.profile and [
        (item.kernel, item.grid, item.block) for item in evaluation.profile.launches
    ]


def _assert_gone(*pids):
    until = time.monotonic() + 5.0
    while any(map(_runs, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not [pid for pid in pids if _runs(pid)]


def _runs(pid):
    """One that has ended may stay on the list until somebody waits for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except OSError:
        return False


@pytest.mark.long
@pytest.mark.parametrize("name", ["relu", "zeros", "segfault", "eats_memory"])
def test_the_verdict_is_the_same_with_and_without_one(judge, spared, name):
    waiting = _server(spared)._spare
    with_one, without = spared("relu", name), judge("relu", name)
    assert _server(spared)._spare is not waiting
    assert with_one.outcome == without.outcome
    assert [item.kind for item in with_one.findings] == [item.kind for item in without.findings]
    assert _launches(with_one) == _launches(without)
    assert [(item.name, item.state) for item in with_one.checks] == [
        (item.name, item.state) for item in without.checks
    ]


@pytest.mark.long
def test_a_candidate_sees_nothing_of_the_warming(judge, spared):
    source = PROBE + judge.source("relu")
    _spare(spared)
    evaluations = [item("relu", source) for item in (spared, judge)]
    assert all("SEEN" in item.log for item in evaluations), evaluations[0].summary
    seen = [item.log.partition("SEEN ")[2].splitlines()[0] for item in evaluations]
    assert "'compiled': []" in seen[0]
    assert seen[0] == seen[1]


@pytest.mark.long
def test_a_request_is_served_by_the_worker_that_waited_and_the_next_one_gets_ready(judge, spared):
    worker = _spare(spared)[1]
    source = f"import os\nprint('PID', os.getpid())\n{judge.source('relu')}"
    assert f"PID {worker}\n" in spared("relu", source).log
    assert _spare(spared)[1] != worker


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1], ids=["its supervisor", "it"])
def test_one_that_died_while_it_waited_is_replaced_without_a_word(spared, which):
    process = _spare(spared)[which]
    os.kill(process, signal.SIGKILL)
    _assert_gone(process)
    assert spared("relu", "relu").passed
    _spare(spared)


@pytest.mark.long
def test_the_deadline_counts_from_the_request(spared, monkeypatch):
    monkeypatch.setattr(spared.evaluator._workers, "_deadline_s", 3.0)
    _spare(spared)
    time.sleep(3.5)
    assert spared("relu", "relu").passed


@pytest.mark.long
def test_it_ends_with_the_template_and_the_next_verdict_comes_all_the_same(spared):
    family = _spare(spared)
    os.kill(spared.template, signal.SIGKILL)
    _assert_gone(*family)
    assert spared("relu", "relu").passed
    assert _spare(spared)


@pytest.mark.long
def test_closing_ends_it(spared):
    assert spared("relu", "relu").passed
    family, scratch = _spare(spared), _server(spared)._scratch
    spared.close()
    _assert_gone(*family)
    assert not scratch.exists()


@pytest.mark.long
def test_a_worker_that_is_killed_before_it_began_is_no_verdict_and_says_how_it_ended(judge):
    assert judge("relu", "relu").passed

    def killed(_):
        """Called once the worker is ready and before it has its request."""
        os.kill(sandbox.descendants(judge.template)[1], signal.SIGKILL)
        return {}

    request = {"kind": "facts"}
    with pytest.raises(
        WorkerDied, match=r"before it ran the candidate \(SIGKILL, which the system sends when memory"
    ):
        asyncio.run(_server(judge).run(request, ProcessLimits(deadline_s=20.0), lambda _: None, files=killed))
    assert judge("relu", "relu").passed


def test_a_worker_that_fails_before_it_is_ready_leaves_its_traceback(tmp_path):
    """A supervisor and a worker of ours, forked as the template forks them."""
    worker_here, worker_there = socket.socketpair()
    supervisor_here, supervisor_there = socket.socketpair()

    def fail(_):
        raise OSError("no such device: landlock0")

    supervisor = os.fork()
    if supervisor == 0:
        worker_here.close()
        supervisor_here.close()
        supervise(supervisor_there, worker_there, fail)
        os._exit(0)
    worker_there.close()
    supervisor_there.close()
    waiting = WaitingWorker(
        worker=worker_here, supervisor=supervisor_here, nonce="n", folder=str(tmp_path), confine_files=False
    )
    with pytest.raises(WorkerNeverStarted) as caught:
        asyncio.run(waiting.carry_out(dict, ProcessLimits(deadline_s=20.0), lambda _: None))
    os.waitpid(supervisor, 0)
    said = str(never_started_error(caught.value.end))
    assert "ended before it ran the candidate (status 1)" in said
    assert said.endswith("OSError: no such device: landlock0")


@pytest.mark.gpu
@pytest.mark.skipif(find_gpu() is None, reason="nvidia-smi names no GPU on this machine")
def test_on_a_gpu_each_verdict_comes_from_the_worker_that_waited(judge_class):
    judge = judge_class(device="cuda")
    try:
        assert judge("relu", "relu").passed
        for _ in range(2):
            worker = _spare(judge)[1]
            evaluation = judge("relu", f"import os\nprint('PID', os.getpid())\n{judge.source('relu')}")
            assert evaluation.passed, evaluation.summary
            assert f"PID {worker}\n" in evaluation.log
    finally:
        judge.close()
