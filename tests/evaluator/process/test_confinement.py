"""Confinement of a candidate by the operating system. Where this kernel offers less, the tests say so and skip."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.evaluator.process import confinement, system_calls

pytestmark = pytest.mark.slow

OPEN = {
    "files": "open to",
    "network": "open:",
    "rights": "those of the person",
    "system calls": "all allowed",
}


@pytest.fixture(scope="module")
def offered():
    command = [sys.executable, "-m", "cutegen_nb.evaluator.process.confinement"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _needs(offered, part):
    if f"{part}: {OPEN[part]}" in offered:
        pytest.skip(f"this machine offers no confinement of {part}: {offered}")


def _said(judge, *codes):
    """Evaluate these expressions at a right kernel's import; return what it printed, of an exception the name."""
    attempts = (
        "import ctypes, os, resource, socket\nimport torch\n"
        f"for code in {codes!r}:\n"
        "    try:\n        print('SAID', eval(code))\n"
        "    except Exception as error:\n        print('SAID', type(error).__name__)\n"
    )
    evaluation = judge("relu", judge.source("relu").replace("import torch\n", attempts, 1))
    assert evaluation.passed, evaluation.summary
    said = [line.partition("SAID ")[2] for line in evaluation.log.splitlines() if line.startswith("SAID ")]
    assert len(said) == len(codes), evaluation.log
    return said


REFUSED = "PermissionError"


def test_a_key_in_the_notebooks_own_environment_cannot_be_read(judge, offered):
    _needs(offered, "files")
    assert Path("/proc/self/environ").read_bytes()  # by the person's own programs it can
    assert _said(judge, f"open('/proc/{os.getpid()}/environ').read()") == [REFUSED]


def test_the_persons_files_are_neither_read_nor_written(judge, offered, tmp_path):
    _needs(offered, "files")
    mine = tmp_path / "mine.txt"
    mine.write_text("private")
    said = _said(
        judge,
        f"open({str(mine)!r}).read()",
        f"open({str(mine)!r}, 'w').write('x')",
        f"os.unlink({str(mine)!r})",
    )
    assert said == [REFUSED] * 3
    assert mine.read_text() == "private"


@pytest.mark.long
def test_nothing_is_left_for_the_next_run_to_find(judge, offered):
    _needs(offered, "files")
    scratch = "os.path.dirname(os.environ['HOME'])"
    places = (f"{scratch} + '/answers'", "'/dev/shm/answers'", "'/tmp/answers'")
    own = "os.environ['TMPDIR'] + '/answers'"
    said = _said(
        judge, *(f"open({place}, 'w').write('x')" for place in (*places, own)), f"os.path.exists({own})"
    )
    assert said == [REFUSED, REFUSED, REFUSED, "1", "True"]
    assert _said(judge, f"os.path.exists({own})") == ["False"]


@pytest.mark.long
def test_threads_may_be_named_as_cuda_does_and_nothing_else_in_proc_is_written(judge, offered):
    _needs(offered, "files")
    comm = "'/proc/self/task/%d/comm' % __import__('threading').get_native_id()"
    assert _said(
        judge,
        f"open({comm}, 'w').write('cuda')",
        "open('/proc/self/oom_score_adj', 'w').write('0')",
        "open('/proc/sys/kernel/core_pattern', 'r+').write('x')",
    ) == ["4", REFUSED, REFUSED]


@pytest.mark.long
def test_neither_secrets_of_services_nor_terminals_nor_shared_memory_are_in_reach(judge, offered):
    _needs(offered, "files")
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as shared:
        said = _said(judge, "os.listdir('/run')", f"open({shared.name!r})", "os.open('/dev/ptmx', os.O_RDWR)")
    assert said == [REFUSED] * 3


@pytest.mark.long
def test_modes_times_and_attributes_of_files_stay_as_they_are_even_its_own(judge, offered):
    _needs(offered, "system calls")
    own = "os.environ['HOME']"
    assert (
        _said(
            judge,
            f"os.chmod({own}, 0)",
            f"os.chown({own}, 0, 0)",
            f"os.utime({own})",
            f"os.setxattr({own}, 'user.answer', b'42')",
        )
        == [REFUSED] * 4
    )


@pytest.mark.long
def test_neither_limits_of_other_processes_nor_ways_to_them_are_in_reach(judge, offered):
    _needs(offered, "system calls")
    assert _said(
        judge,
        "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
        "resource.prlimit(0, resource.RLIMIT_CPU)[0] != 1",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('/answers')",
        "socket.socket(40, socket.SOCK_STREAM)",
        "ctypes.CDLL(None).shmget(1, 64, 0o1600)",
        "ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
    ) == [REFUSED, "True", REFUSED, REFUSED, REFUSED, "-1", "-1"]


def test_it_talks_to_nobody(judge, offered):
    _needs(offered, "network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        (said,) = _said(judge, f"socket.create_connection(('127.0.0.1', {port}), 2)")
        assert said in {"OSError", "ConnectionRefusedError", REFUSED}


@pytest.mark.long
def test_it_has_no_capability_even_where_the_notebook_is_roots(judge, offered):
    _needs(offered, "rights")
    (said,) = _said(judge, "open('/proc/self/status').read().partition('CapEff:')[2].split()[0]")
    assert int(said, 16) == 0


def test_the_evaluation_says_what_held(judge, offered):
    assert judge("relu", "relu").confinement == offered


def test_a_problem_that_reads_a_file_is_told_how(judge, offered, tmp_path):
    _needs(offered, "files")
    weights = tmp_path / "weights.bin"
    weights.write_bytes(b"w")
    source = (
        "import torch\n"
        f"data = open({str(weights)!r}, 'rb').read()\n"
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
        "def get_inputs():\n    return [torch.randn(8)]\ndef get_init_inputs():\n    return []\n"
    )
    with pytest.raises(ProblemError, match="CUTEGEN_READABLE"):
        judge.facts(source)


def test_named_folders_may_be_read(monkeypatch, tmp_path):
    monkeypatch.setenv(confinement.READABLE_VARIABLE, os.pathsep.join([str(tmp_path), "/no/such/folder"]))
    assert tmp_path in confinement.readable()
    assert Path("/no/such/folder") not in confinement.readable()
    assert Path.home() not in confinement.readable()


def test_every_refused_call_has_a_number_on_this_machine():
    seccompy = pytest.importorskip("seccompy")
    assert all(seccompy.syscall_nr(name) > 0 for name in system_calls.REFUSED)
