"""Shares of a call's work by candidate, PyTorch and host: bytes on the simulator."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cutegen_nb.core.evaluation import WorkShare
from cutegen_nb.evaluator.observe.dispatch_watch import HostCopy, TorchCompute
from cutegen_nb.evaluator.trial import work_share
from cutegen_nb.evaluator.trial.call import CallRecord, Origin


def launch(load, store, atomics=0):
    counters = SimpleNamespace(gmem_load_bytes=load, gmem_store_bytes=store, gmem_atomic_sectors=atomics)
    return SimpleNamespace(counters=counters)


def called(launches, *, computed=0, down=0, up=0, made=0):
    origin = {"address": 1, "explained": False, "changed_on_host": False}
    return CallRecord(
        leaves=[],
        computed=[TorchCompute(op="aten.mm.default", elements=1, line=1, size_bytes=computed)],
        launches=launches,
        origins=(
            Origin(size_bytes=made, from_kernel=True, **origin),
            Origin(size_bytes=999, from_kernel=False, **origin),
        ),
        written=(),
        unexplained=(),
        moved=(
            HostCopy(down=True, size_bytes=down, address=0, line=1),
            HostCopy(down=False, size_bytes=up, address=0, line=1),
        ),
        from_host=(),
        seconds=0.0,
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (called((launch(60, 40),)), (1.0, 0.0, 0.0)),
        (called((launch(30, 20), launch(10, 8, 1)), computed=100), (0.5, 0.5, 0.0)),
        (called((launch(60, 40),), computed=60, down=40, up=500), (0.5, 0.3, 0.2)),
        (called((launch(20, 0),), computed=80, made=80), (0.5, 0.5, 0.0)),
        (called((), computed=80, made=80), (0.0, 1.0, 0.0)),
    ],
    ids=["kernels alone", "two launches and atomics", "host", "stores of the copy engine", "no launch"],
)
def test_shares_are_those_of_the_bytes_read_and_written(call, expected):
    found = work_share.of_call(call)
    assert (found.own_fraction, found.library_fraction, found.host_fraction) == pytest.approx(expected)


def test_nothing_is_said_where_nothing_was_counted():
    assert work_share.of_call(called(None, computed=80)) is None
    assert work_share.of_call(called((launch(0, 0),))) is None


def test_the_sentence_is_left_out_where_nearly_all_is_the_candidates():
    assert WorkShare(own_fraction=0.95, library_fraction=0.05, host_fraction=0.0).sentence == ""
    assert WorkShare(own_fraction=0.5, library_fraction=0.3, host_fraction=0.2).sentence == (
        "Whose work it is: the candidate's kernels stand for 50%, PyTorch and libraries for 30%, the host for 20%."
    )
