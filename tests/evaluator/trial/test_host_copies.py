"""An answer that came by way of the host is found from the copies of one call; what launches need is not."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.observe.dispatch_watch import HostCopy
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.host_copies import judge_transfers

X = torch.zeros(256)


def called(*moved, from_host=()):
    copies = tuple(
        HostCopy(down=down, size_bytes=size, address=n, line=40 + n) for n, (down, size) in enumerate(moved)
    )
    return CallRecord(
        leaves=[torch.zeros(256)],
        computed=[],
        launches=None,
        origins=None,
        written=(),
        unexplained=(),
        moved=copies,
        from_host=from_host,
        seconds=0.0,
    )


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (called((True, 1024), (False, 1024), from_host=(0,)), "decoy-launch"),
        (called((True, 1024), (False, 1024)), "read-from-host"),
        (called((True, 128), (False, 64)), "read-from-host"),
    ],
)
def test_down_and_up_again_is_an_accusation_with_its_lines(call, kind):
    state = Evidence()
    ended = judge_transfers(call, [X], "the first call", state)
    assert ended[0] == Judged(verdict=Verdict.CHEATED)
    assert state.findings[0].kind == kind
    assert state.exhibits[0].lines == (40, 41)
    assert state.exhibits[0].trace[0].endswith("bytes down, line 40")


@pytest.mark.parametrize(
    "call",
    [
        called(),
        called((True, 1024)),
        called((False, 1024), from_host=(0,)),
        called((True, 4), (False, 1024)),
        called((True, 1024), (False, 8)),
    ],
    ids=["no copies", "only down", "a table from the host", "one number down", "a number up"],
)
def test_copies_one_way_or_of_single_numbers_are_none(call):
    state = Evidence()
    assert judge_transfers(call, [X], "the first call", state) is None
    assert state.findings == []
    assert [item.state.value for item in state.results.values()] == ["ran"]
