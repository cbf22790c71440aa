"""The arithmetic of timing: ratios, their interval, the roof. Measuring itself needs a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from cutegen_nb.evaluator.timing import (
    bench as sampling,
)
from cutegen_nb.evaluator.timing import (
    plausibility as believing,
)
from cutegen_nb.evaluator.timing import (
    statistics as ratios,
)
from cutegen_nb.evaluator.timing.cuda_trace import (
    KernelTrace,
    TraceEvent,
    sizes_of,
    split_by_markers,
    trace_of,
)


def _blocks(median, noise, seed, count=8, size=10):
    generator = np.random.default_rng(seed)
    return (median * (1 + noise * generator.standard_normal((count, size)))).tolist()


def test_the_interval_holds_the_true_ratio():
    middle, low, high = ratios.ratio_interval(_blocks(3.0, 0.02, 1), _blocks(2.0, 0.02, 2))
    assert low <= 1.5 <= high
    assert low <= middle <= high


def test_a_kernel_against_itself_is_neither_faster_nor_slower():
    for seed in range(20):
        _, low, high = ratios.ratio_interval(_blocks(1.0, 0.03, seed), _blocks(1.0, 0.03, 100 + seed))
        assert low <= 1.02
        assert high >= 0.98


def test_drift_common_to_both_cancels():
    drift = np.linspace(1.0, 2.0, 80).reshape(8, 10)
    middle, low, high = ratios.ratio_interval((3 * drift).tolist(), (2 * drift).tolist())
    assert (middle, low, high) == pytest.approx((1.5, 1.5, 1.5))


def ran(busy, *elsewhere, span=0.0):
    return KernelTrace(
        names=("mine",),
        span_ms=span or busy,
        own_ms=busy,
        library=(),
        library_ms=0.0,
        elsewhere=elsewhere,
        busy_ms=busy,
    )


def test_kernels_that_run_outside_the_events_are_found_and_short_or_equal_ones_are_not():
    late = ran(3.0, "mine")
    finding = believing.outside_the_clock(0.01, late, late)
    assert finding is not None
    assert "3 ms" in finding.message
    assert "mine ran on another stream" in finding.message
    assert believing.outside_the_clock(3.0, ran(3.1, "mine"), ran(3.1, "mine")) is None
    assert believing.outside_the_clock(0.004, ran(0.015, "mine"), ran(0.015, "mine")) is None
    assert believing.outside_the_clock(0.01, late, ran(0.01, "mine")) is None  # once is chance


def test_gaps_between_kernels_are_the_hosts_or_another_processs():
    gaps = ran(0.03, span=0.114)
    assert believing.outside_the_clock(0.032, gaps, gaps) is None


def test_two_halves_on_two_streams_that_are_joined_are_no_work_outside_the_clock():
    # As an H200 traced it: a tenth of a millisecond in all, since the host launched one after the other.
    halves = ran(0.056, "mine", span=0.1066)
    assert believing.outside_the_clock(0.05853, halves, halves) is None


def test_the_time_in_which_any_kernel_runs_counts_what_overlaps_once():
    events = [event("a", 0, 100), event("b", 50, 120, stream=9), event("c", 200, 210)]
    assert trace_of(events, 7).busy_ms == pytest.approx(130e-6)
    assert trace_of([], 7).busy_ms == 0.0


def test_traces_longer_than_the_timed_calls_are_found_and_shorter_ones_are_not():
    finding = believing.times_disagree(0.063, [ran(0.45), ran(0.46)])
    assert finding is not None
    assert "0.45 ms" in finding.message
    assert believing.times_disagree(0.063, [ran(0.45), ran(0.062)]) is None  # others used the GPU
    assert believing.times_disagree(0.002, [ran(0.004), ran(0.004)]) is None  # the profiler's own
    assert believing.times_disagree(1.0, [ran(0.95), ran(0.97)]) is None


def test_a_candidates_kernel_beside_a_baseline_is_found_and_a_compiled_baselines_is_not():
    def trace(*names):
        return KernelTrace(names=names, span_ms=1.0, own_ms=1.0, library=(), library_ms=0.0)

    burning = trace("kernel_cutlass_burn_0")
    assert believing.beside_the_baseline("eager", ("relu_0",), burning, burning).kind == "beside-the-baseline"
    assert believing.beside_the_baseline("eager", ("relu_0",), trace("relu_0"), trace("relu_0")) is not None
    assert believing.beside_the_baseline("eager", ("relu_0",), burning, trace()) is None
    fused = trace("fused_0")
    assert believing.beside_the_baseline("torch.compile", ("relu_0",), fused, fused) is None


def test_a_baseline_against_itself_is_the_noise():
    blocks = {"": _blocks(1.0, 0.0, 1), "eager": _blocks(2.0, 0.01, 2), ratios.AGAIN: _blocks(2.0, 0.01, 3)}
    assert 0 < ratios.noise_fraction(blocks) < 0.02
    blocks[ratios.AGAIN] = _blocks(2.2, 0.0, 3)
    assert ratios.noise_fraction(blocks) > 0.05
    del blocks[ratios.AGAIN]
    assert ratios.noise_fraction(blocks) is None


def test_what_the_clock_cannot_tell_apart_is_noise():
    # As an H200 timed a kernel of 3 µs: steps of 32 ns, most samples the same.
    blocks = {"": [[0.003168] * 10], "eager": [[0.0032] * 9 + [0.003232]]}
    assert ratios.resolution_fraction(blocks) == pytest.approx(2 * 0.000032 / 0.003168, rel=1e-3)
    assert ratios.resolution_fraction({"": [[0.5, 0.5]], "eager": [[0.5, 0.5]]}) == 0.0
    fine = {"": _blocks(1.0, 0.01, 1), "eager": _blocks(2.0, 0.01, 2)}
    assert ratios.resolution_fraction(fine) < 0.001


def test_the_gap_between_two_calls_is_no_step_of_the_clock():
    steady = {"": [[0.003168] * 5], "best before": [[0.0048] * 5], "eager": [[0.0064] * 5]}
    assert ratios.resolution_fraction(steady) == pytest.approx(2 * 0.000032 / 0.003168, rel=1e-3)
    assert ratios.resolution_fraction({"": [[0.0, 0.0]], "eager": [[0.5, 0.6]]}) == 0.0


def test_the_second_call_of_a_baseline_does_not_decide_when_sampling_ends():
    wide = _blocks(1.0, 0.5, 5, count=5)
    assert ratios.settled({"": _blocks(1.0, 0.0, 1, count=5), ratios.AGAIN: wide})
    assert not ratios.settled({"": _blocks(1.0, 0.0, 1, count=5), "eager": wide})


def test_a_call_that_a_library_computes_is_found_and_a_little_of_it_is_not():
    def trace(own, library):
        return KernelTrace(
            names=("mine",), span_ms=own, own_ms=own, library=("cublasLt gemm",), library_ms=library
        )

    most = trace(0.01, 3.0)
    finding = believing.computed_by_a_library(most, most)
    assert finding is not None
    assert "cublasLt gemm" in finding.message
    little = trace(1.0, 0.05)
    assert believing.computed_by_a_library(little, little) is None
    assert believing.computed_by_a_library(trace(0.0, 0.0), trace(0.0, 0.0)) is None


def test_a_weight_prepared_by_pytorch_in_the_first_of_two_calls_is_no_librarys_work():
    # As an H200 traced it: a vector of 512 normalised once more, its version having changed.
    def trace(own, library):
        return KernelTrace(
            names=("mine",),
            span_ms=own,
            own_ms=own,
            library=("at::native::reduce_kernel",),
            library_ms=library,
        )

    assert believing.computed_by_a_library(trace(0.001408, 0.003136), trace(0.001408, 0.0)) is None


def test_a_head_start_grows_until_the_host_is_done_and_gives_up_on_a_call_that_waits():
    head = sampling.BusyWait()
    first = head.cycles
    head.lengthen(0.0)
    assert head.cycles == 2 * first
    head.lengthen(0.001)
    assert head.cycles == 4_000_000  # twice a millisecond of the host's, in cycles
    while not head.exposed:
        assert head.cycles <= 40_000_000
        head.lengthen(0.0)
    assert head.cycles == first


def event(name, start, end, size=0, stream=7):
    return TraceEvent(name=name, start_ns=start, end_ns=end, size_bytes=size, stream=stream)


MARK = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def test_two_traced_calls_are_parted_by_the_marks_after_each():
    events = [
        event("mine", 10, 20),
        event(MARK, 30, 31),
        event("mine", 40, 55, stream=21),
        event("Memcpy DtoH (Device -> Pageable)", 56, 60, 400),
        event(MARK, 70, 71),
    ]
    first, second, stream = split_by_markers(events)
    assert [item.name for item in first] == ["mine"]
    one, two = trace_of(first, stream), trace_of(second, stream)
    assert (one.elsewhere, two.elsewhere) == ((), ("mine",))
    assert one.own_ms == pytest.approx(10e-6)
    assert two.span_ms == pytest.approx(15e-6)
    assert (two.down_bytes, two.up_bytes) == (400, 0)
    assert two.names == ("mine",)
    assert two.library == ()


def test_without_marks_nothing_was_recorded():
    assert split_by_markers([]) is None
    assert split_by_markers([event("mine", 1, 2)]) is None


@pytest.mark.parametrize("waits", [(1, 1), (3, 0), (0, 3), (5, 2)], ids=str)
def test_waits_of_a_candidates_own_leave_the_calls_apart(waits):
    """Ours take 40 µs each here, give or take the profiler's own uncertainty."""
    events, now = [], 0
    for number, ours in zip(waits, (40_000, 40_300), strict=True):
        for name, long in [*[(MARK, 25_000)] * number, ("mine", 9000), (MARK, ours)]:
            events.append(event(name, now, now + long))
            now += long + 1000
    first, second, stream = split_by_markers(events)
    for found, number in zip((first, second), waits, strict=True):
        assert [item.name for item in found] == [*[MARK] * number, "mine"]
        assert trace_of(found, stream).names == ("mine",)


def trace(names, down=0, up=0):
    return KernelTrace(
        names=names, span_ms=0.0, own_ms=0.0, library=(), library_ms=0.0, down_bytes=down, up_bytes=up
    )


def test_an_equal_call_that_launches_nothing_handed_out_what_it_kept():
    finding = believing.second_call_launched_nothing(trace(("mine",)), trace(()))
    assert finding.kind == "no-kernel"
    assert "mine" in finding.message
    assert believing.second_call_launched_nothing(trace(("mine",)), trace(("other",))) is None
    assert believing.second_call_launched_nothing(trace(()), trace(())) is None


def test_copies_both_ways_of_the_inputs_size_are_found_and_single_numbers_are_not():
    assert believing.computed_on_host(trace(("k",), down=4096, up=4096), 4096).kind == "host-work"
    assert believing.computed_on_host(trace(("k",), down=4096), 4096) is None
    assert believing.computed_on_host(trace(("k",), down=4, up=4096), 4096) is None
    assert believing.computed_on_host(trace(("k",), down=4, up=4), 16) is None


def test_sizes_of_copies_are_read_in_order_of_time_from_a_written_trace():
    written = [
        {"ph": "X", "cat": "gpu_memcpy", "ts": 5.5, "args": {"bytes": 40}},
        {"ph": "X", "cat": "kernel", "ts": 1.0, "args": {}},
        {"ph": "X", "cat": "gpu_memcpy", "ts": 2.0, "args": {"bytes": 8}},
        {"ph": "M", "name": "process_name"},
    ]
    assert sizes_of(written) == [8, 40]
