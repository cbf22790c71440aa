"""Launches of a compiled program that run for a sample of their CTAs."""

import math
import time

import cutlass
import pytest
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

from cutegen_nb.simulator.sampling.sample import SampleEnded


@cute.kernel
def row_sum_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for column in range(tidx, x.shape[1], 128):
        total += x[row, column]
    y[row, tidx] = total


@cute.jit
def row_sum(x: cute.Tensor, y: cute.Tensor):
    row_sum_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(128, 1, 1))


ROWS, COLUMNS = 400, 4000


def compiled():
    x, y = torch.ones(ROWS, COLUMNS, device="cuda"), torch.zeros(ROWS, 128, device="cuda")
    function = cute.compile(
        row_sum, from_dlpack(x).mark_layout_dynamic(), from_dlpack(y).mark_layout_dynamic()
    )
    return y, lambda: function(from_dlpack(x).mark_layout_dynamic(), from_dlpack(y).mark_layout_dynamic())


def sampled(simulation, call):
    simulation.sampling = True
    try:
        call()
    finally:
        simulation.sampling = False


def counts_of_a_sample_are_those_of_the_whole_launch(simulation):
    y, call = compiled()
    call()
    (whole,) = simulation.launches
    assert y.sum().item() == ROWS * COLUMNS
    y.zero_()
    simulation.reset()
    sampled(simulation, call)
    (sample,) = simulation.samples
    assert simulation.launches == []
    assert sample.profile.counters == whole.counters
    assert sample.profile.lines == whole.lines
    assert (sample.profile.resources, sample.profile.code) == (whole.resources, whole.code)
    assert sample.profile.gmem_distinct_sectors == whole.gmem_distinct_sectors
    assert sample.ctas < 20
    assert sample.skipped_fraction > 0
    # Rows of CTAs that did not run hold copies of those that did, for the launches after this one.
    assert y.count_nonzero() == y.numel()


def nothing_is_recorded_or_checked(simulation):
    _, call = compiled()
    sampled(simulation, call)
    assert simulation.reads == []
    assert simulation.written == {}
    assert simulation.findings == ()
    simulation.reset()
    assert simulation.samples == []


def a_launch_that_is_not_done_in_time_is_no_sample(simulation):
    _, call = compiled()
    simulation.stop_at = time.monotonic()
    with pytest.raises(SampleEnded, match="was not finished in time") as ended:
        sampled(simulation, call)
    simulation.stop_at = math.inf
    assert str(ended.value) == simulation.not_sampled
    assert simulation.samples == []
    simulation.reset()
    assert simulation.not_sampled == ""
    sampled(simulation, call)
    assert len(simulation.samples) == 1


CASES = (
    counts_of_a_sample_are_those_of_the_whole_launch,
    nothing_is_recorded_or_checked,
    a_launch_that_is_not_done_in_time_is_no_sample,
)
