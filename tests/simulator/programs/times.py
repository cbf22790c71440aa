"""Times that nobody measured: finite, marked, and no figure is made of them."""

import pickle
import statistics

import cuda.bindings.driver as cuda
import cuda.bindings.runtime as cudart
import torch

MARKED = "999999.00"


def spans():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    first, second = cuda.cuEventCreate(0)[1], cuda.cuEventCreate(0)[1]
    return (
        start.elapsed_time(end),
        cuda.cuEventElapsedTime(first, second)[1],
        cudart.cudaEventElapsedTime(first, second)[1],
    )


def time_between_events(simulation):
    assert [f"{one:.2f}" for one in spans()] == [MARKED] * 3


def everything_computed_from_it(simulation):
    """A bandwidth, a mean or a speed-up prints as the mark too, and statistics of it can be taken."""
    for span in spans():
        made = (
            span / 100,
            1e9 / span * 2,
            span - span,
            3 / span,
            sum([span, span]) / 2,
            -span,
            span**2,
            1 + span,
        )
        assert [f"{one:.2f}" for one in made] == [MARKED] * len(made)
        assert statistics.mean([span, span]) == statistics.median([span] * 3) == 999_999.0
        assert min([span, span]) == span < float("inf")
        assert pickle.loads(pickle.dumps(span)) / 7 == 999_999.0


def repeat_counts_from_it(simulation):
    """A count of repeats that a program derives from an estimate is the smallest one."""
    for span in spans():
        assert max(1, int(200 / span)) == 1
        assert round(span) == 0
        assert f"{round(span / 3, 2):.2f}" == MARKED


CASES = (time_between_events, everything_computed_from_it, repeat_counts_from_it)
