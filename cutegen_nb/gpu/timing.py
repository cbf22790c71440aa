"""How fast a correct candidate is, against baselines and the best before it, on a GPU.

The protocol, from the top: what two equal calls launched is traced; latencies are sampled (`sampling`, or
`graph_mode` for kernels under 10 µs); more calls are compared on new contents in the same memory; and a
time that the measured ceilings do not allow is no verdict (`believing`). Reported are medians, and the
median ratio of pairs with a bootstrap interval over blocks. The candidate is in custody from the first timed
call to the last: taking it anew for each call would cost more than the call.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

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
from cutegen_nb.gpu import believing, clocks, graph_mode
from cutegen_nb.gpu.baselines import Call, Configuration, configuration, prepare
from cutegen_nb.gpu.believing import RIVAL, Limits, size_of
from cutegen_nb.gpu.ceilings import copy_bandwidth
from cutegen_nb.gpu.cold_cache import ColdCache, set_aside
from cutegen_nb.gpu.comparing import cloned
from cutegen_nb.gpu.custody import candidate_code
from cutegen_nb.gpu.faults import CandidateFault
from cutegen_nb.gpu.interception import threads
from cutegen_nb.gpu.kernel_trace import KernelTrace
from cutegen_nb.gpu.ratios import AGAIN, CANDIDATE, Samples, noise_of, ratio_interval, resolution_fraction
from cutegen_nb.gpu.record import TimingTask
from cutegen_nb.gpu.sampling import Bench
from cutegen_nb.gpu.timed_outputs import TimedOutputs

_POOL_BYTES_SHARE = 0.1
"""Of free GPU memory, for rotating input sets."""
_RESAMPLES = 2000


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
    """What times a candidate by `order`. Made before the candidate's import: what it changes is seen."""
    usual_bytes, compiler = set_aside(), configuration(order.baselines)

    def measure(task: TimingTask) -> Measured:
        torch.cuda.set_per_process_memory_fraction(0.95)
        task.stage("timing: drawing inputs")
        pool = _input_pool(task)
        outputs = TimedOutputs(task=task, pool=pool)
        task.stage("timing: tracing two calls")
        traces, wrong = believing.traced(task, pool[0])
        if traces is not None and not traces[0].names:
            return _not_traced()
        if wrong is not None:
            return None, (wrong,), Judged(verdict=Verdict.WRONG_VALUES)
        task.stage("timing: preparing baselines")
        calls, found = _calls(task, order, pool, compiler)
        running = threads()
        bench = _bench(calls, order, outputs, ColdCache(usual_bytes))
        timing = _timing(task, bench, order)
        task.stage("timing: comparing again")
        outputs.settle_all()
        flags = (*found, *_flags(bench, threads() - running))
        return _concluded(task, timing, traces, order, bench, flags)

    return measure


def _concluded(  # noqa: PLR0913, PLR0917 - once, from measure
    task: TimingTask,
    timing: Timing,
    traces: tuple[KernelTrace, KernelTrace] | None,
    order: Order,
    bench: Bench,
    found: tuple[Finding, ...],
) -> Measured:
    limits = Limits(
        least_bytes=order.least_bytes,
        flops=order.flops,
        bandwidth=timing.bandwidth_bytes_per_s,
        peak_flops=order.peak_flops,
        given_bytes=size_of(bench.pool[0]),
        made_bytes=bench.outputs.made_bytes,
    )
    refused = believing.refused(task, timing, traces, limits, bench)
    if traces is None:
        found = (_NO_TRACE, *found)
    elif refused is None and traces[0].names != traces[1].names:
        found = (*found, believing.launches_differ(*traces))
    if refused is None:
        return timing, found, None
    return timing, (refused[0], *found), refused[1]


def _flags(bench: Bench, more_threads: int) -> tuple[Finding, ...]:
    """What a person should see of how it was timed."""
    kept = bench.flush.kept()
    found = tuple(bench.changed.values()) + (() if kept is None else (kept,))
    if bench.outputs.too_large:
        message = "No timed call was compared on changed contents: memory does not hold the copies."
        found = (*found, Finding(kind="not-examined", message=message, severity=Severity.FLAG))
    if more_threads <= 0:
        return found
    message = (
        f"{more_threads} thread(s) were started while it was timed, and still run: work outside the clock?"
    )
    return (*found, Finding(kind="threads", message=message, severity=Severity.FLAG))


_NO_TRACE = Finding(
    kind="no-trace",
    message="The profiler records no kernel on this machine, so that no trace was looked at.",
    severity=Severity.FLAG,
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


def _input_pool(task: TimingTask) -> list[list[Any]]:
    """Up to four sets of inputs, so that neither pointers nor contents repeat from call to call.

    Copies, as in every other call: of an expanded input each element has memory of its own.
    """
    first = cloned(task.draw(task.seed))
    free, _ = torch.cuda.mem_get_info()
    count = max(1, min(4, int(free * _POOL_BYTES_SHARE / max(1, size_of(first)))))
    return [first, *(cloned(task.draw(task.seed + k)) for k in range(1, count))]


def _calls(
    task: TimingTask, order: Order, pool: list[list[Any]], compiler: Configuration
) -> tuple[dict[str, Call], tuple[Finding, ...]]:
    """What is timed beside the candidate, with a flag for each that cannot be had."""
    calls, found = prepare(order.baselines, task.reference, pool[0], compiler)
    rival = task.rival() if task.rival_digest else ""
    if isinstance(rival, str):
        if rival:
            message = f"The best before it was not timed beside it: {rival}"
            found = (*found, Finding(kind="no-rival", message=message, severity=Severity.FLAG))
        return calls, found
    try:
        with candidate_code():
            rival(*pool[0])  # compiles
            torch.cuda.synchronize()
    except CandidateFault as fault:
        message = f"The best before it did not run beside it: {fault.finding.message}"
        return calls, (*found, Finding(kind="no-rival", message=message, severity=Severity.FLAG))
    return calls | {RIVAL: rival}, found


def _bench(others: dict[str, Call], order: Order, outputs: TimedOutputs, flush: ColdCache) -> Bench:
    calls = {CANDIDATE: outputs.task.candidate, **others}
    baselines = _baselines(others)
    if baselines and order.noise_fraction is None:
        calls[AGAIN] = others[baselines[0]]
    return Bench(calls=calls, pool=outputs.pool, flush=flush, outputs=outputs)


def _baselines(calls: Iterable[str]) -> list[str]:
    return [name for name in calls if name not in {CANDIDATE, AGAIN, RIVAL}]


def _timing(task: TimingTask, bench: Bench, order: Order) -> Timing:
    task.stage("timing: copy bandwidth")
    bandwidth = copy_bandwidth()
    task.stage("timing: sampling")
    before = clocks.read()
    with candidate_code():
        samples, method, not_by_graph = _sampled(bench, order.longest_s)
        warm_ms, host_ms = bench.warm_ms(), bench.host_ms()
    noise = noise_of(samples)
    return Timing(
        median_ms=_median(samples[CANDIDATE]),
        samples_ms=tuple(value for block in samples[CANDIDATE] for value in block),
        baselines=tuple(_against(name, samples) for name in _baselines(samples)),
        bandwidth_bytes_per_s=bandwidth,
        compile_s=task.compile_s,
        method=method,
        warm_ms=warm_ms,
        host_ms=host_ms,
        noise_fraction=order.noise_fraction if noise is None else noise,
        resolution_fraction=resolution_fraction(samples),
        clocks=_both(before, clocks.read()),
        rival=_against(RIVAL, samples) if RIVAL in samples else None,
        rival_digest=task.rival_digest if RIVAL in samples else "",
        not_by_graph=not_by_graph,
        host_included=method == "events" and bench.heads[CANDIDATE].exposed,
    )


def _sampled(bench: Bench, longest_s: float) -> tuple[Samples, str, str]:
    """Samples, the method, and why a short kernel was not timed by a graph."""
    if bench.look() >= graph_mode.SHORT_MS:
        return bench.sample(longest_s), "events", ""
    try:
        samples = graph_mode.sample(bench.calls, bench.pool, bench.flush.overwrite, bench.outputs)
    except graph_mode.NotCapturedError as error:
        return bench.sample(longest_s), "events", str(error)
    return samples, "graph", ""


def _both(before: Clocks | None, after: Clocks | None) -> tuple[Clocks, ...]:
    return (before, after) if before is not None and after is not None else ()


def _against(name: str, samples: Samples) -> BaselineTiming:
    middle, low, high = ratio_interval(samples[name], samples[CANDIDATE], resamples=_RESAMPLES)
    return BaselineTiming(
        name=name, median_ms=_median(samples[name]), speedup=middle, speedup_low=low, speedup_high=high
    )


def _median(blocks: list[list[float]]) -> float:
    return statistics.median(value for block in blocks for value in block)
