"""Bad candidates in a row against one evaluator: every verdict right, nothing left, the parent's memory flat.

A sample runs in ``make test``; ``make test-long`` runs sixty.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.evaluator.process import process_tree as sandbox

LONG = bool(os.environ.get("CUTEGEN_LONG"))
SOON_S = 3.0
"""For candidates that never end."""
LATE_S = 60.0
"""For the others: their verdict is no matter of how busy the machine is."""
READS_STDIN = "import sys\nLINE = sys.stdin.readline()\nassert LINE == '', LINE\n"
HANGS_AT_IMPORT = "while True:\n    pass\n"

KINDS = {
    "hangs": (HANGS_AT_IMPORT, {Verdict.TIMED_OUT}),
    "endless_kernel_loop": (None, {Verdict.TIMED_OUT}),
    "fork_bomb": (None, {Verdict.CRASHED, Verdict.EXITED, Verdict.CHEATED}),
    "eats_memory": (None, {Verdict.OUT_OF_MEMORY}),
    "prints_much": (None, {Verdict.PASSED}),
    "segfault": (None, {Verdict.CRASHED}),
    "reads_stdin": (READS_STDIN, {Verdict.PASSED}),
    "hard_exit": (None, {Verdict.EXITED}),
    "exit_at_import": (None, {Verdict.EXITED}),
    "raises": (None, {Verdict.CRASHED}),
    "compile_error": (None, {Verdict.COMPILE_FAILED}),
    "out_of_range": (None, {Verdict.OUT_OF_BOUNDS}),
    "zeros": (None, {Verdict.WRONG_VALUES}),
    "relu": (None, {Verdict.PASSED}),
}
SAMPLE = ("hangs", "relu", "fork_bomb", "reads_stdin", "hard_exit")
"""In ``make test``, where each of the others has its verdict in test_evaluator.py."""


@pytest.fixture(scope="module")
def pool(judge_class, template):
    made = judge_class(template=template, device="simulator", deadline_s=LATE_S, memory_bytes=1 << 30)
    yield made
    made.close()


def _open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def _order():
    if not LONG:
        return SAMPLE
    shuffled = random.Random(7)
    return tuple(shuffled.choice(list(KINDS)) for _ in range(60))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.timeout(1800)
def test_each_of_many_bad_candidates_has_its_verdict_and_none_leaves_anything(pool):
    assert pool("relu", "relu").passed
    memory, files = sandbox.resident_bytes(os.getpid()), _open_files()
    for name in _order():
        prefix, verdicts = KINDS[name]
        source = (prefix or "") + pool.source("relu" if prefix else name)
        pool.evaluator._workers._deadline_s = SOON_S if verdicts == {Verdict.TIMED_OUT} else LATE_S
        evaluation = pool("relu", source)
        assert getattr(evaluation.outcome, "verdict", None) in verdicts, (name, evaluation.summary)
        until = time.monotonic() + 2.0
        while sandbox.descendants(pool.template) and time.monotonic() < until:
            time.sleep(0.02)
        assert sandbox.descendants(pool.template) == (), name
    assert _open_files() <= files + 1
    assert sandbox.resident_bytes(os.getpid()) - memory < 48 << 20
