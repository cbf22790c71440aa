"""Work that the host did on the inputs is found from the copies of one call; what launches need is not."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.observe.dispatch_watch import HostCopy
from cutegen_nb.evaluator.trial.call import CallRecord
from cutegen_nb.evaluator.trial.evidence import Evidence
from cutegen_nb.evaluator.trial.host_copies import judge_transfers

X = torch.zeros(256)
"""Input and output of 1024 bytes each, of which a sixteenth is 64."""
INPUTS, OTHERS, UP = "inputs", "others", "up"


def called(*moved, from_host=()):
    """Record of a call with these copies: what was copied, and its bytes."""
    copies = tuple(
        HostCopy(down=what != UP, size_bytes=size, address=n, line=40 + n, of_inputs=what == INPUTS)
        for n, (what, size) in enumerate(moved)
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
    "call",
    [
        called((INPUTS, 1024)),
        called((INPUTS, 32), (INPUTS, 32)),
        called((INPUTS, 1024), (UP, 1024), from_host=(0,)),
        called((OTHERS, 1024), (UP, 1024)),
        called((OTHERS, 1024), (UP, 8), from_host=(0,)),
        called((OTHERS, 64), (UP, 64)),
    ],
    ids=[
        "inputs", "a sixteenth of them in two copies", "inputs and back", "others and back",
        "others and an output's memory", "a sixteenth of others and of the outputs",
    ],
)  # fmt: skip
def test_a_share_read_on_the_host_is_not_own_work_and_shown_with_its_lines(call):
    state = Evidence()
    ended = judge_transfers(call, [X], "the first call", state)
    assert ended[0] == Judged(verdict=Verdict.NOT_OWN_WORK)
    assert state.findings[0].kind == "host-work"
    assert "In the first call the host read" in state.findings[0].message
    up = sum(item.size_bytes for item in call.moved if not item.down)
    said = f"and copied {up} bytes to the GPU; " if up else "and copied nothing back to it; "
    assert said in state.findings[0].message
    assert state.exhibits[0].lines == (40, 39 + len(call.moved))
    assert state.exhibits[0].trace[0] == f"{call.moved[0].size_bytes} bytes down, line 40"


@pytest.mark.parametrize(
    "call",
    [
        called(),
        called((INPUTS, 60)),
        called((OTHERS, 1024)),
        called((UP, 1024), from_host=(0,)),
        called((OTHERS, 4), (UP, 1024)),
        called((OTHERS, 1024), (UP, 8)),
    ],
    ids=["no copies", "a few numbers", "others", "a table up", "one number down", "a number up"],
)
def test_copies_one_way_or_of_single_numbers_are_none(call):
    state = Evidence()
    assert judge_transfers(call, [X], "the first call", state) is None
    assert state.findings == []
    assert [item.state.value for item in state.results.values()] == ["ran"]


def test_a_tiny_problem_may_be_read_to_launch_for_it():
    state = Evidence()
    assert judge_transfers(called((INPUTS, 16)), [torch.zeros(4)], "the first call", state) is None
