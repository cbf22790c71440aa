"""How fast a correct candidate is, against baselines, on a GPU.

The protocol, from the top: what the call launched is traced; latencies are sampled (`sampling`, or
`graph_mode` for kernels under 10 µs); one more call is compared on new contents in the same memory; and a
time that the measured ceilings do not allow is no verdict. Reported are medians, and the median ratio of
pairs with a bootstrap interval over blocks.
"""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import (
    BaselineTiming,
    Clocks,
    Finding,
    Judged,
    NotJudged,
    NotJudgedReason,
    Outcome,
    Severity,
    Timing,
    Verdict,
)
from cutegen_nb.gpu import clocks, graph_mode, sampling
from cutegen_nb.gpu.baselines import Call, prepare
from cutegen_nb.gpu.ceilings import copy_bandwidth
from cutegen_nb.gpu.kernel_trace import KernelTrace, trace_call
from cutegen_nb.gpu.sampling import AGAIN, CANDIDATE, ColdCache, Samples
from cutegen_nb.gpu.trial import TimingTask

ROOF_SLACK = 0.85
"""A kernel that only reads can be a little faster than the copy that the bandwidth was measured with."""
OUTSIDE_FRACTION = 1.5
"""Kernels that run so much longer than the events around the call say have run outside of them."""
LIBRARY_FRACTION = 0.1
"""Share of a call's device time from which kernels of a library are what the candidate hides behind."""
_SPAN_MS = 0.020
"""Below this the profiler's own resolution matters."""
_POOL_BYTES_SHARE = 0.1
"""Of free GPU memory, for rotating input sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What to time against, and what no kernel can beat."""

    baselines: tuple[str, ...]
    """``eager``, ``torch.compile``."""
    least_bytes: int
    """Least traffic of the problem at full size."""
    flops: int
    """Its floating-point operations."""
    peak_flops: float
    """Highest measured FLOP/s of this GPU over all types; 0 when unknown."""
    noise_fraction: float | None
    """Of an earlier evaluation of the same problem; None has it measured."""
    longest_s: float
    """Sampling ends here even when the interval is still wide."""


Measured = tuple[Timing | None, tuple[Finding, ...], Outcome | None]
Timer = Callable[[TimingTask], Measured]


def timer(order: Order) -> Timer:
    """What times a candidate by `order`."""

    def measure(task: TimingTask) -> Measured:
        torch.cuda.set_per_process_memory_fraction(0.95)
        pool = _input_pool(task)
        trace = trace_call(lambda: task.candidate(*pool[0]))
        if trace is not None and not trace.names:
            return _not_traced()
        calls, failures = prepare(order.baselines, task.reference, pool[0])
        found = (*(_NO_TRACE if trace is None else ()), *failures)
        bandwidth = copy_bandwidth()
        timing = _timing(task, calls, pool, order, bandwidth)
        outcome = _refused(task, timing, trace, order, pool)
        if outcome is None:
            return timing, found, None
        return timing, (outcome[0], *found), outcome[1]

    return measure


_NO_TRACE = (
    Finding(
        kind="no-trace",
        message="The profiler records no kernel on this machine, so that no trace was looked at.",
        severity=Severity.FLAG,
    ),
)


def _not_traced() -> Measured:
    message = (
        "The trace of one call shows no kernel of the candidate's own. Nothing can be said of it: "
        "either the profiler missed it, or something else computed the output."
    )
    return (
        None,
        (Finding(kind="empty-trace", message=message),),
        NotJudged(reason=NotJudgedReason.EMPTY_TRACE),
    )


def _refused(
    task: TimingTask, timing: Timing, trace: KernelTrace | None, order: Order, pool: Sequence[list[Any]]
) -> tuple[Finding, Outcome] | None:
    """The finding and the outcome when these times are not to be believed."""
    wrong = _recheck(task, pool)
    if wrong is not None:
        return wrong, Judged(verdict=Verdict.WRONG_VALUES)
    cheat = trace and (outside_the_clock(timing.median_ms, trace.span_ms) or computed_by_a_library(trace))
    if cheat:
        return cheat, Judged(verdict=Verdict.CHEATED)
    roof = above_roof(
        timing.median_ms, order.least_bytes, timing.bandwidth_bytes_per_s, sampling.l2_bytes()
    ) or above_arithmetic_roof(timing.median_ms, order.flops, order.peak_flops)
    return (roof, NotJudged(reason=NotJudgedReason.ABOVE_ROOF)) if roof is not None else None


def _input_pool(task: TimingTask) -> list[list[Any]]:
    """Up to four sets of inputs, so that neither pointers nor contents repeat from call to call."""
    first = task.draw(task.seed)
    size = sum(x.numel() * x.element_size() for x in tree_leaves(first) if isinstance(x, torch.Tensor))
    free, _ = torch.cuda.mem_get_info()
    count = max(1, min(4, int(free * _POOL_BYTES_SHARE / max(1, size))))
    return [first, *(task.draw(task.seed + k) for k in range(1, count))]


def _timing(
    task: TimingTask, baselines: dict[str, Call], pool: list[list[Any]], order: Order, bandwidth: float
) -> Timing:
    calls = {CANDIDATE: task.candidate, **baselines}
    if baselines and order.noise_fraction is None:
        calls[AGAIN] = next(iter(baselines.values()))
    flush = ColdCache()
    before = clocks.read()
    samples, method = sampling.sample(calls, pool, flush, order.longest_s), "events"
    if _median(samples[CANDIDATE]) < graph_mode.SHORT_MS:
        replays = graph_mode.sample(calls, pool[0], flush.overwrite)
        if replays is not None:
            samples, method = replays, "graph"
    noise = sampling.noise(samples)
    return Timing(
        median_ms=_median(samples[CANDIDATE]),
        samples_ms=tuple(value for block in samples[CANDIDATE] for value in block),
        baselines=tuple(_against(name, samples) for name in baselines),
        bandwidth_bytes_per_s=bandwidth,
        compile_s=task.compile_s,
        method=method,
        warm_ms=sampling.warm_ms(task.candidate, pool),
        host_ms=sampling.host_ms(task.candidate, pool),
        noise_fraction=order.noise_fraction if noise is None else noise,
        clocks=_both(before, clocks.read()),
    )


def _both(before: Clocks | None, after: Clocks | None) -> tuple[Clocks, ...]:
    return (before, after) if before is not None and after is not None else ()


def _against(name: str, samples: Samples) -> BaselineTiming:
    middle, low, high = sampling.ratio_interval(samples[name], samples[CANDIDATE], resamples=2000)
    return BaselineTiming(
        name=name, median_ms=_median(samples[name]), speedup=middle, speedup_low=low, speedup_high=high
    )


def _median(blocks: list[list[float]]) -> float:
    return statistics.median(value for block in blocks for value in block)


def _recheck(task: TimingTask, pool: Sequence[list[Any]]) -> Finding | None:
    """Compare one more call, on a pool entry chosen now, with new contents in the same memory."""
    given = pool[secrets.randbelow(len(pool))]
    fresh = task.draw(secrets.randbits(31))
    for old, new in zip(given, fresh, strict=True):
        if isinstance(old, torch.Tensor):
            old.copy_(new)
    outputs = tuple(
        item.clone() for item in tree_leaves(task.candidate(*given)) if isinstance(item, torch.Tensor)
    )
    torch.cuda.synchronize()
    compared = task.check(outputs, fresh)
    if compared and all(item.matches for item in compared):
        return None
    bad = next((item for item in compared if not item.matches), None)
    detail = f" {bad.bad_fraction:.2%} of output {bad.index} is wrong; {bad.pattern}" if bad else ""
    message = (
        "After timing, with new contents in the same memory, the output is wrong: an earlier result was "
        f"handed out again, or the calls that were timed did other work.{detail}"
    )
    return Finding(kind="wrong-when-timed", message=message)


def above_roof(median_ms: float, least_bytes: int, bandwidth: float, cache_bytes: int) -> Finding | None:
    """The finding for a time that memory does not allow; None for a possible one.

    Problems of less than four times the L2 are left out: their outputs may stay in the cache.
    """
    if least_bytes < 4 * cache_bytes:
        return None
    floor_ms = least_bytes / bandwidth * 1e3
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than memory allows: {least_bytes / 1e9:.3g} GB at the measured "
        f"{bandwidth / 1e12:.3g} TB/s take {floor_ms:.4g} ms. Some of the work is not done."
    )
    return Finding(kind="above-roof", message=message)


def above_arithmetic_roof(median_ms: float, flops: int, peak_flops: float) -> Finding | None:
    """The finding for a time in which this GPU's fastest units cannot do the problem's arithmetic."""
    floor_ms = flops / peak_flops * 1e3 if peak_flops else 0.0
    if median_ms >= floor_ms * ROOF_SLACK:
        return None
    message = (
        f"{median_ms:.4g} ms is less than arithmetic allows: {flops / 1e9:.4g} GFLOP at the highest measured "
        f"{peak_flops / 1e12:.4g} TFLOP/s take {floor_ms:.4g} ms. Some of the work is not done, or the "
        "problem can be had with less of it."
    )
    return Finding(kind="above-roof", message=message)


def outside_the_clock(median_ms: float, span_ms: float) -> Finding | None:
    """The finding for kernels that run longer than the events around their call; None when they agree."""
    if span_ms < _SPAN_MS or span_ms < OUTSIDE_FRACTION * median_ms:
        return None
    message = (
        f"The kernels of one call take {span_ms:.4g} ms by the trace over all streams, the events around the "
        f"call say {median_ms:.4g} ms: work is done on a stream that the clock does not see."
    )
    return Finding(kind="outside-the-clock", message=message)


def computed_by_a_library(trace: KernelTrace) -> Finding | None:
    """The finding for a call whose time goes, in good part, into kernels that are not the candidate's."""
    whole = trace.own_ms + trace.library_ms
    if trace.library_ms <= LIBRARY_FRACTION * whole:
        return None
    names = ", ".join(dict.fromkeys(name[:80] for name in trace.library))
    message = (
        f"In the trace of one call {trace.library_ms:.4g} of {whole:.4g} ms go into kernels of PyTorch or of "
        f"a library: {names}."
    )
    return Finding(kind="library-kernels", message=message)
