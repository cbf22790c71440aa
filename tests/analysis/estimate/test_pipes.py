"""Clocks of pipes and tensor cores in an estimate."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.estimate.constants import CONSTANTS
from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.targets import find_target

H200, A100 = find_target("H200"), find_target("A100")


def test_wgmma_reaches_more_of_the_tensor_cores_than_mma_sync(call):
    """A warp of an ``mma.sync`` does 4,096 operations an instruction, one of an m64n128k16 ``wgmma`` 65,536."""
    flops = 1 << 44
    times = [
        estimate(
            call(counters={"flops": {"tensor.f16": flops}, "instructions": {"tensor.f16": flops // each}}),
            H200,
        ).seconds
        for each in (4096, 65536)
    ]
    assert times[0] / times[1] == pytest.approx(0.78 / H200.mma_sync_fraction, rel=0.05)


def test_integer_work_keeps_the_whole_clock_and_sums_of_floats_do_not(call):
    """Both pipes take a warp's instruction in the same time, but only fp32 draws the power that lowers it."""
    seconds = {
        pipe: next(
            term.seconds
            for term in estimate(call(counters={"instructions": {pipe: amount}}), H200).terms
            if term.name == f"{pipe} pipe"
        )
        for pipe, amount in (("alu", 1 << 32), ("fp32", 1 << 33))
    }
    assert seconds["alu"] / seconds["fp32"] == pytest.approx(CONSTANTS.peak_fraction)
