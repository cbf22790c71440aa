"""What the operating system keeps a candidate from. Where this kernel offers less, the tests say so and skip."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.evaluator.process import confinement, system_calls

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


def _said(judge, code):
    """What a right kernel prints that evaluates `code` first; an exception as its name."""
    attempt = (
        "import os, socket\nimport torch\n"
        "def attempt():\n"
        f"    try:\n        return {code}\n"
        "    except Exception as error:\n        return type(error).__name__\n"
        "print('SAID', attempt())\n"
    )
    evaluation = judge("relu", judge.source("relu").replace("import torch\n", attempt, 1))
    assert evaluation.passed, evaluation.summary
    return evaluation.log.partition("SAID ")[2].splitlines()[0]


def test_a_key_in_the_notebooks_own_environment_cannot_be_read(judge, offered):
    _needs(offered, "files")
    assert Path("/proc/self/environ").read_bytes()  # by the person's own programs it can
    assert _said(judge, f"open('/proc/{os.getpid()}/environ').read()") == "PermissionError"


def test_the_persons_files_are_neither_read_nor_written(judge, offered, tmp_path):
    _needs(offered, "files")
    mine = tmp_path / "mine.txt"
    mine.write_text("private")
    assert _said(judge, f"open({str(mine)!r}).read()") == "PermissionError"
    assert _said(judge, f"open({str(mine)!r}, 'w').write('x')") == "PermissionError"
    assert _said(judge, f"os.unlink({str(mine)!r})") == "PermissionError"
    assert mine.read_text() == "private"


def test_nothing_is_left_for_the_next_run_to_find(judge, offered):
    _needs(offered, "files")
    scratch = "os.path.dirname(os.environ['HOME'])"
    assert _said(judge, f"open({scratch} + '/answers', 'w').write('x')") == "PermissionError"
    assert _said(judge, "open('/dev/shm/answers', 'w').write('x')") == "PermissionError"
    assert _said(judge, "open('/tmp/answers', 'w').write('x')") == "PermissionError"
    assert _said(judge, "open(os.environ['TMPDIR'] + '/answers', 'w').write('x')") == "1"
    assert _said(judge, "os.path.exists(os.environ['TMPDIR'] + '/answers')") == "False"


def test_threads_may_be_named_as_cuda_does_and_nothing_else_in_proc_is_written(judge, offered):
    _needs(offered, "files")
    comm = "'/proc/self/task/%d/comm' % __import__('threading').get_native_id()"
    assert _said(judge, f"open({comm}, 'w').write('cuda')") == "4"
    assert _said(judge, "open('/proc/self/oom_score_adj', 'w').write('0')") == "PermissionError"
    assert _said(judge, "open('/proc/sys/kernel/core_pattern', 'r+').write('x')") == "PermissionError"


def test_it_talks_to_nobody(judge, offered):
    _needs(offered, "network")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert _said(judge, f"socket.create_connection(('127.0.0.1', {port}), 2)") in {
            "OSError", "ConnectionRefusedError", "PermissionError",
        }  # fmt: skip


def test_it_has_no_capability_even_where_the_notebook_is_roots(judge, offered):
    _needs(offered, "rights")
    said = _said(judge, "open('/proc/self/status').read().partition('CapEff:')[2].split()[0]")
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


def test_a_system_call_that_no_kernel_needs_is_refused(judge, offered):
    _needs(offered, "system calls")
    trace_me = "__import__('ctypes').CDLL(None).ptrace(0, 0, 0, 0)"
    assert _said(judge, trace_me) == "-1"


def test_every_refused_call_has_a_number_on_this_machine():
    seccompy = pytest.importorskip("seccompy")
    assert all(seccompy.syscall_nr(name) > 0 for name in system_calls.REFUSED)
