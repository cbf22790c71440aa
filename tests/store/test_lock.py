"""The writer's lock: one at a time, named, and released however its process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import StoreError
from cutegen_nb.store.lock import WriterLock

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys, time
from pathlib import Path
from cutegen_nb.store.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(600)
"""


def test_a_second_writer_is_told_the_first_ones_process_and_enters_after_it(tmp_path):
    first, second = WriterLock(tmp_path / "lock"), WriterLock(tmp_path / "lock")
    first.acquire()
    with pytest.raises(StoreError, match=rf"process {os.getpid()} \(.*\) is writing .* another --store"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_kill_9_releases_the_lock(tmp_path):
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "held\n"
        lock = WriterLock(path)
        with pytest.raises(StoreError, match=f"process {process.pid} "):
            lock.acquire()
        process.send_signal(signal.SIGKILL)
    lock.acquire()
    assert f"process {os.getpid()} " in path.read_text()
    lock.release()


def test_a_folder_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(StoreError, match=r"cannot write in .*nowhere.*--store"):
        WriterLock(tmp_path / "nowhere" / "lock").acquire()
