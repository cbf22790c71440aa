"""Environment and limits of a child process, and its end: nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import cutegen_nb
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.process import process_tree

pytestmark = pytest.mark.slow


def _with(judge, code):
    """The right kernel, with a line of other code at the start of its forward."""
    source = judge.source("relu").replace("import torch\n", "import os\nimport torch\n", 1)
    return source.replace("        y = torch", f"        {code}\n        y = torch", 1)


def test_the_environment_is_an_allow_list():
    given = {
        "PATH": "/bin",
        "PYTHONPATH": "/lib",
        "OPENAI_API_KEY": "k",
        "HF_TOKEN": "t",
        "HOME": "/home/me",
        "LANG": "C",
    }
    seen = process_tree.environment(given, Path("/scratch"))
    assert "OPENAI_API_KEY" not in seen
    assert "HF_TOKEN" not in seen
    assert seen["HOME"] == seen["TMPDIR"] == "/scratch"
    assert seen["PATH"] == "/bin"
    assert seen["PYTHONPATH"] == f"{Path(cutegen_nb.__file__).parents[1]}{os.pathsep}/lib"


def test_a_candidate_sees_no_key_and_no_home(judge):
    assert os.environ["SOME_API_KEY"] == "secret"
    code = "print('KEY', os.environ.get('SOME_API_KEY'), 'HOME', os.environ['HOME'])"
    evaluation = judge("relu", _with(judge, code))
    assert evaluation.passed, evaluation.summary
    assert "KEY None" in evaluation.log
    assert f"HOME {Path.home()}\n" not in evaluation.log


def test_a_lower_limit_of_the_persons_own_shell_is_kept():
    code = (
        "import resource\n"
        "from cutegen_nb.evaluator.process.process_tree import limit_worker\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "limit_worker(2**33)\n"
        "print(resource.getrlimit(resource.RLIMIT_FSIZE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(5000, 5000)\n", done.stderr


def _open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def _assert_family_ends(judge):
    until = time.monotonic() + 10.0
    while process_tree.descendants(judge.template) and time.monotonic() < until:
        time.sleep(0.02)
    assert process_tree.descendants(judge.template) == ()


@pytest.mark.first(2)
@pytest.mark.parametrize("name", ["fork_bomb", "segfault", "hard_exit", "eats_memory"])
def test_no_process_is_left_after_a_fault(judge, name):
    judge("relu", name)
    _assert_family_ends(judge)


@pytest.mark.long
def test_a_process_that_left_its_session_is_ended_too(judge):
    code = "os.fork() == 0 and (os.setsid(), os.fork() == 0 and __import__('time').sleep(60), os._exit(0))"
    evaluation = judge("relu", _with(judge, code))
    assert any(item.kind == "left-processes" for item in evaluation.findings)
    _assert_family_ends(judge)


def test_cancelling_ends_the_candidate(judge):
    stages = []

    async def cancelled():
        task = asyncio.ensure_future(
            judge.evaluator.evaluate(
                judge.problem("relu"), judge.candidate("endless_host_loop"), stages.append
            )
        )
        async with asyncio.timeout(60):
            while not any("running" in stage for stage in stages):  # noqa: ASYNC110 - asked of a list
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    _assert_family_ends(judge)


@pytest.mark.long
def test_a_killed_template_is_replaced(judge):
    assert judge("relu", "relu").passed
    os.kill(judge.template, signal.SIGKILL)
    assert judge("relu", "relu").passed


@pytest.mark.long
def test_a_candidate_that_kills_the_template_is_judged_and_the_next_one_runs(judge):
    parent_of_parent = "int(open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1])"
    evaluation = judge("relu", _with(judge, f"os.kill({parent_of_parent}, 9); os.kill(os.getppid(), 9)"))
    assert evaluation.outcome == Judged(verdict=Verdict.CRASHED), evaluation.summary
    assert judge("relu", "relu").passed


def test_killing_the_supervisor_is_a_verdict_and_leaves_nothing(judge):
    evaluation = judge("relu", _with(judge, "os.kill(os.getppid(), 9); __import__('time').sleep(30)"))
    assert evaluation.outcome == Judged(verdict=Verdict.CRASHED)
    _assert_family_ends(judge)


@pytest.fixture(scope="module")
def hurried(judge_class, template):
    """An evaluator with a short deadline, whose template a test may end: the next request starts another."""
    made = judge_class(template=template, device="simulator", deadline_s=4.0, memory_bytes=1 << 30)
    yield made
    made.close()


@pytest.mark.long
@pytest.mark.first(1)
@pytest.mark.parametrize("seconds", [2, 60])
def test_a_stopped_supervisor_is_a_verdict_and_leaves_nothing(hurried, monkeypatch, seconds):
    """By whom does not matter: where signals are confined a candidate does not come that far."""
    monkeypatch.setattr("cutegen_nb.evaluator.process.worker_handle._REPORT_GRACE_S", 1.0)
    assert hurried("relu", "relu").passed
    template = hurried.template

    def stop():
        while not process_tree.children(template):
            time.sleep(0.01)
        time.sleep(0.5)
        for supervisor in process_tree.children(template):
            os.kill(supervisor, signal.SIGSTOP)

    stopping = threading.Thread(target=stop)
    stopping.start()
    evaluation = hurried("relu", _with(hurried, f"__import__('time').sleep({seconds})"))
    stopping.join()
    assert evaluation.outcome == Judged(verdict=Verdict.CRASHED), evaluation.summary
    assert evaluation.findings[0].kind == "supervisor-killed"
    assert not Path(f"/proc/{template}").exists()


@pytest.mark.long
def test_a_forged_record_is_no_result(judge):
    code = (
        "[os.write(fd, b'\\0\\0\\0\\x02{}') for fd in range(3, 64) "
        "if os.path.exists(f'/proc/self/fd/{fd}') and 'socket' in os.readlink(f'/proc/self/fd/{fd}')]; os._exit(0)"
    )
    evaluation = judge("relu", _with(judge, code))
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert evaluation.findings[0].kind == "forged-result"


def _nested(folder, depth):
    """Folders in each other, deeper than any path reaches."""
    place = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d" * 200, dir_fd=place)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


def test_a_folder_goes_whatever_a_candidate_made_in_it(tmp_path):
    folder, kept = tmp_path / "run", tmp_path / "kept"
    kept.mkdir(mode=0o500)
    (folder / "a" / "shut").mkdir(parents=True)
    (folder / "a" / "shut" / "file").write_text("x")
    (folder / "a" / "link").symlink_to(kept)
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    _nested(folder / "a", 1500)
    (folder / "a" / "shut").chmod(0)
    (folder / "a").chmod(0)
    process_tree.remove_folder(folder)
    assert list(tmp_path.iterdir()) == [kept]
    assert kept.stat().st_mode & 0o777 == 0o500


def test_what_is_no_folder_or_is_gone_is_left():
    process_tree.remove_folder(Path("/nowhere"))
    process_tree.remove_folder(Path("/dev/null"))
    assert Path("/dev/null").exists()


STARTS_AND_IS_KILLED = """
import asyncio, os, sys
sys.dont_write_bytecode = True
from cutegen_nb.evaluator.process.fork_server import ForkServer
server = ForkServer('simulator', 'sm_80')
asyncio.run(server.ready())
print(server.process_id, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.long
def test_a_killed_parent_leaves_neither_process_nor_folder_but_the_templates_bytecode(tmp_path):
    """The package runs from a copy without bytecode, as some installers leave it."""
    package = tmp_path / "site" / "cutegen_nb"
    shutil.copytree(Path(cutegen_nb.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    environment = os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": str(package.parent)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.pop("PYTHONPYCACHEPREFIX", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", STARTS_AND_IS_KILLED],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    template = int(done.stdout)
    until = time.monotonic() + 10.0
    while Path(f"/proc/{template}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{template}").exists()
    assert list(scratch.iterdir()) == []
    cached = {path.name.split(".")[0] for path in package.rglob("*.pyc")}
    assert {"supervisor", "worker"} <= cached


@pytest.mark.long
def test_what_a_candidate_imports_is_not_cached_and_its_garbage_is_collected(judge):
    told = "import gc, sys; print('writes', not sys.dont_write_bytecode, 'collects', gc.isenabled())"
    found = judge("relu", _with(judge, told))
    assert found.passed, found.summary
    assert "writes False collects True" in found.log


@pytest.mark.long
def test_twenty_bad_candidates_in_a_row_leave_the_parent_as_it_was(judge):
    judge("relu", "relu")
    before, open_before = process_tree.resident_bytes(os.getpid()), _open_files()
    for name in ("hard_exit", "segfault", "exit_at_import", "raises") * 5:
        assert not judge("relu", name).passed
    assert _open_files() <= open_before + 1
    assert process_tree.resident_bytes(os.getpid()) - before < 32 << 20
    _assert_family_ends(judge)
