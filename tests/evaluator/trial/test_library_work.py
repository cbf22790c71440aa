"""A policy leaves parts of a problem to PyTorch; where kernels did none of the rest, that is not own work."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.evaluator.observe.dispatch_watch import TorchCompute
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.library_work import judge_library

X = torch.zeros(4)


def called(*, alone=(), copied=(), outputs=(X,), library=(LibraryFamily.MATMUL,)):
    product = TorchCompute(
        op="aten.mm.default", elements=9, line=7, family=LibraryFamily.MATMUL, allowed=True
    )
    return CallRecord(
        leaves=list(outputs),
        computed=[product],
        launches=None,
        origins=None,
        written=(),
        unexplained=(),
        moved=(),
        from_host=(),
        seconds=0.0,
        library=library,
        alone=alone,
        copied=copied,
    )


def judged(call, state=None, *, only_library=False):
    return judge_library(call, [X], "the first call", state or Evidence(), only_library=only_library)


@pytest.mark.parametrize(
    ("call", "only_library"),
    [
        (called(), False),
        (called(alone=(0,), library=()), False),
        (called(outputs=(X, X), alone=(0,)), False),
        (called(copied=(0,)), False),
        (called(outputs=(X, X), alone=(0,), copied=(0,)), True),
    ],
    ids=["a kernel's output", "no library", "one of two", "copied by a kernel", "one of two, all allowed"],
)
def test_a_part_done_by_kernels_is_own_work(call, only_library):
    assert judged(call, only_library=only_library) is None


@pytest.mark.parametrize(
    ("call", "only_library", "next_step"),
    [
        (called(alone=(0,)), False, "Write the rest of the problem in a kernel."),
        (called(outputs=(X, torch.zeros(0)), alone=(0,)), False, "Write the rest of the problem in a kernel."),
        (
            called(copied=(0,)), True,
            ("The policy --library matmul leaves nothing of this problem to a kernel: take the option away, or write that "
            "part in a kernel."),
        ),
    ],
    ids=["the library's alone", "beside an output without elements", "only copied"],
)  # fmt: skip
def test_outputs_that_only_the_library_made_are_not_own_work(call, only_library, next_step):
    state = Evidence()
    ended = judged(call, state, only_library=only_library)
    assert ended[0] == Judged(verdict=Verdict.NOT_OWN_WORK)
    assert ended[1] == (
        "PyTorch's aten.mm.default in line 7 made every output of the first call, and no kernel did a part of the "
        f"work. {next_step}"
    )
    assert state.exhibits[0].lines == (7, 7)


def test_one_call_that_a_kernel_changed_shows_that_it_runs():
    state = Evidence()
    assert judged(called(), state) is None
    assert judged(called(alone=(0,)), state) is None
