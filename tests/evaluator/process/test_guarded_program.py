"""A program around a candidate ends when it should, with everything that it started."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from cutegen_nb.evaluator.process.guarded_program import Ended, GuardedProgram, run


def program(code, tmp_path, *, deadline_s=20.0, **limits):
    return GuardedProgram(
        command=[sys.executable, "-c", code],
        folder=str(tmp_path),
        environment={},
        deadline_s=deadline_s,
        **limits,
    )


def ended(code, tmp_path, **limits):
    return asyncio.run(run(program(code, tmp_path, **limits)))


def alive(marker):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if marker.encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


def test_a_program_that_ends_gives_its_status_and_the_end_of_its_output(tmp_path):
    end = ended("import sys; print('x' * 100_000); print('last', file=sys.stderr); sys.exit(3)", tmp_path)
    assert (end.how, end.code) == (Ended.ITSELF, 3)
    assert end.log.rstrip().endswith("last")
    assert len(end.log) < 20_000


def test_a_program_that_is_not_there_says_so(tmp_path):
    missing = GuardedProgram(command=["/nowhere/tool"], folder=str(tmp_path), environment={}, deadline_s=5)
    end = asyncio.run(run(missing))
    assert end.code == 127
    assert "No such file" in end.log


@pytest.mark.parametrize(
    ("what", "code", "how", "limits"),
    [
        ("hangs", "import time; time.sleep(60)", Ended.DEADLINE, {"deadline_s": 0.5}),
        ("eats", "x = bytearray(300 << 20); import time; time.sleep(60)", Ended.MEMORY, {"resident_bytes": 100 << 20}),
        (
            "forks",
            "import os, time\nfor _ in range(40):\n  if os.fork() == 0: break\ntime.sleep(60)",
            Ended.PROCESSES,
            {},
        ),
    ],
)  # fmt: skip
def test_what_it_may_not_do_ends_it(tmp_path, what, code, how, limits):
    assert ended(code, tmp_path, **limits).how is how, what


def test_nothing_that_it_started_outlives_it_even_when_it_left_the_family(tmp_path):
    marker = f"left-{time.monotonic_ns()}"
    code = f"""
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", "{marker}"])
    os._exit(0)
time.sleep(0.5)
"""
    assert ended(code, tmp_path).how is Ended.ITSELF
    assert not alive(marker)


def test_a_caller_that_is_cancelled_ends_it(tmp_path):
    marker = f"cancelled-{time.monotonic_ns()}"

    async def cancelled():
        task = asyncio.ensure_future(run(program(f"import time; time.sleep(60) # {marker}", tmp_path)))
        deadline = time.monotonic() + 10
        while not alive(f"# {marker}") and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    deadline = time.monotonic() + 10
    while alive(f"# {marker}") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(f"# {marker}")
