"""The supervisor of one worker keeps its limits, and ends and reports whatever the worker left."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutegen_nb.evaluator.process import process_tree, supervisor

RUNS = """
import contextlib, faulthandler, json, os, signal, socket, sys, time
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.process.supervisor import supervise

def serve(worker):
    faulthandler.register(signal.SIGUSR1)
    {worker}
    os._exit(0)

control, there = socket.socketpair()
here, worker = socket.socketpair()
parent = os.getpid()
if os.fork() == 0:
    control.close()
    here.close()
    supervise(there, worker, serve)
    os._exit(0)
there.close()
worker.close()
channel = Channel(control)
{evaluator}
print(json.dumps(channel.receive()))
"""


def run(worker, limits="deadline_s=20.0, resident_bytes=None", evaluator=None):
    """The report on a worker with these lines of code, in a process tree of its own."""
    lines = "\n    ".join(worker.strip().splitlines())
    # A worker that ends at once may be reported before its limits are sent.
    sending = f"with contextlib.suppress(BrokenPipeError):\n    channel.send('limits', {limits})"
    code = RUNS.format(worker=lines, evaluator=evaluator or sending)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_worker_that_ends_is_reported_with_its_status_and_the_end_of_its_output():
    end = run("print('x' * 100_000, flush=True)\nprint('last', file=sys.stderr, flush=True)\nos._exit(3)")
    assert (end["how"], end["code"], end["left"], end["processes"]) == ("exited", 3, 0, 1)
    assert end["log"].endswith("last\n")
    assert len(end["log"]) == supervisor.LOG_BYTES


@pytest.mark.parametrize(
    ("worker", "limits", "how", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "deadline_s=20.0", "signalled", -11),
        ("time.sleep(60)", "deadline_s=0.3", "deadline", None),
        (
            "x = bytearray(300 << 20)\ntime.sleep(60)",
            "deadline_s=20.0, resident_bytes=100 << 20",
            "memory",
            None,
        ),
        (
            "for _ in range(40):\n    if os.fork() == 0: break\ntime.sleep(60)",
            "deadline_s=20.0",
            "processes",
            None,
        ),
    ],
    ids=["signal", "deadline", "memory", "processes"],
)
def test_each_limit_ends_it(worker, limits, how, code):
    end = run(worker, limits)
    assert (end["how"], end["code"]) == (how, code)
    assert how != "memory" or end["peak_bytes"] > 100 << 20
    assert (end["processes"] > process_tree.PROCESSES) is (how == "processes")


def test_at_the_deadline_the_worker_prints_where_it_was():
    end = run("def endless():\n    while True: pass\nendless()", "deadline_s=0.3")
    assert "in endless" in end["log"]


def test_who_closes_the_channel_cancels_the_worker():
    evaluator = """
channel.send('limits', deadline_s=20.0)
control.shutdown(socket.SHUT_WR)"""
    assert run("time.sleep(60)", evaluator=evaluator)["how"] == "cancelled"


def test_without_a_request_the_deadline_does_not_run_and_the_end_is_reported():
    end = run("time.sleep(0.5); os._exit(4)", evaluator="")
    assert (end["how"], end["code"]) == ("exited", 4)


def test_a_failure_before_the_workers_own_error_handling_leaves_its_traceback():
    end = run("raise OSError('no such device: landlock0')")
    assert (end["how"], end["code"]) == ("exited", 1)
    assert end["log"].endswith("OSError: no such device: landlock0\n")


def test_what_left_the_family_is_counted_and_ended(tmp_path):
    sign = tmp_path / "pid"
    worker = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open({str(sign)!r}, 'w').write(str(os.getpid()))
        time.sleep(60)
    os._exit(0)
os.wait()
while not os.path.exists({str(sign)!r}) or not open({str(sign)!r}).read(): time.sleep(0.01)
os._exit(0)"""
    end = run(worker)
    assert (end["how"], end["left"]) == ("exited", 1)
    until = time.monotonic() + 5
    gone = Path(f"/proc/{sign.read_text()}")
    while gone.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not gone.exists()
