"""Latency of a correct candidate on a GPU, against baselines and the best candidate so far.

The protocol in order: the kernels of two equal calls are traced. Latencies are sampled (`bench`, or
`cuda_graph` for kernels under 10 µs). Further calls are compared on new contents in the same memory. A time
that the measured ceilings do not allow gives no verdict (`plausibility`). Results are medians, and the median
ratio of pairs with a bootstrap interval over blocks.

`candidate_code` is entered once for all timed calls: entering it for each would cost more than the call.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from cutegen_nb.core.evaluation import EAGER, Judged, NotJudged, NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.timing import BaselineTiming, Clocks, Timing
from cutegen_nb.evaluator.observe.dispatch_watch import threads
from cutegen_nb.evaluator.observe.isolation import candidate_code
from cutegen_nb.evaluator.timing import cuda_graph, floors, gpu_state, plausibility
from cutegen_nb.evaluator.timing.baselines import Call, Configuration, configuration, prepare
from cutegen_nb.evaluator.timing.bench import Bench
from cutegen_nb.evaluator.timing.ceilings import copy_bandwidth
from cutegen_nb.evaluator.timing.cold_l2 import ColdCache, persisting_l2_bytes
from cutegen_nb.evaluator.timing.cuda_trace import KernelTrace, work_share
from cutegen_nb.evaluator.timing.plausibility import RIVAL, HardwareLimits, size_of
from cutegen_nb.evaluator.timing.statistics import (
    AGAIN,
    CANDIDATE,
    Samples,
    noise_fraction,
    ratio_interval,
    resolution_fraction,
)
from cutegen_nb.evaluator.timing.timed_outputs import TimedOutputs
from cutegen_nb.evaluator.trial.candidate_fault import CandidateFault
from cutegen_nb.evaluator.trial.compare import cloned
from cutegen_nb.evaluator.trial.evidence import Measure, MeasuredSpeed, TimingTask

_POOL_BYTES_SHARE = 0.1
"""Share of free GPU memory for rotating input sets."""
_RESAMPLES = 2000
"""Bootstrap resamples of each reported ratio."""
_QUICK_S = 0.4
"""Seconds of sampling in a quick measurement, which only decides whether closer checks are worthwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRequest:
    """Baselines, lower bounds and sampling time of one measurement."""

    baselines: tuple[str, ...]
    """Names of the baselines: ``eager``, ``torch.compile``."""
    least_bytes: int
    """Least memory traffic of the problem in bytes, at full size."""
    flops: int
    """Floating-point operations of the problem."""
    peak_flops: float
    """Highest measured FLOP/s of this GPU over all types; 0 when unknown."""
    noise_fraction: float | None
    """Noise floor from an earlier evaluation of the same problem; None to measure it."""
    longest_s: float
    """Seconds after which sampling ends even when an interval is still wide."""


def timer(full: TimingRequest) -> Measure:
    """Make the function that times a candidate by `full`, and in a quick measurement by less.

    Call this before the candidate's import: settings are recorded here, to find what the candidate changes.
    """
    usual_bytes, compiler = persisting_l2_bytes(), configuration(full.baselines)

    def measure(task: TimingTask, *, quick: bool = False) -> MeasuredSpeed:
        order = _quick(full) if quick else full
        torch.cuda.set_per_process_memory_fraction(0.95)
        task.stage("timing: drawing inputs")
        pool = _input_pool(task)
        outputs = TimedOutputs(task=task, pool=pool)
        task.stage("timing: tracing two calls")
        traces, wrong = plausibility.traced(task, pool[0])
        if traces is not None and not traces[0].names:
            return _not_traced()
        if wrong is not None:
            return MeasuredSpeed(findings=(wrong,), outcome=Judged(verdict=Verdict.WRONG_VALUES))
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


def _quick(full: TimingRequest) -> TimingRequest:
    """Reduce a request to the eager baseline and at most `_QUICK_S` seconds."""
    baselines = tuple(name for name in full.baselines if name == EAGER)
    return replace(full, baselines=baselines, longest_s=min(full.longest_s, _QUICK_S))


def _concluded(  # noqa: PLR0913, PLR0917 - once, from measure
    task: TimingTask,
    timing: Timing,
    traces: tuple[KernelTrace, KernelTrace] | None,
    order: TimingRequest,
    bench: Bench,
    found: tuple[Finding, ...],
) -> MeasuredSpeed:
    limits = HardwareLimits(
        least_bytes=order.least_bytes,
        bandwidth=timing.bandwidth_bytes_per_s,
        given_bytes=size_of(bench.pool[0]),
        made_bytes=bench.outputs.made_bytes,
    )
    refused = plausibility.refused(task, timing, traces, limits, bench)
    if traces is None:
        found = (_NO_TRACE, *found)
    elif refused is None and traces[0].names != traces[1].names:
        found = (*found, plausibility.launches_differ(*traces))
    fewer = floors.fewer_operations(timing.median_ms, order.flops, order.peak_flops)
    found = (*found, *(() if fewer is None else (fewer,)))
    work = None if traces is None else work_share(traces[1])
    if refused is None:
        return MeasuredSpeed(timing=timing, findings=found, work=work)
    return MeasuredSpeed(timing=timing, findings=(refused[0], *found), outcome=refused[1], work=work)


def _flags(bench: Bench, more_threads: int) -> tuple[Finding, ...]:
    """Flags, for a person, about how the candidate was timed."""
    kept = bench.flush.kept()
    found = tuple(bench.changed.values()) + (() if kept is None else (kept,))
    if bench.outputs.too_large:
        message = "No timed call was compared on changed contents: the copies do not fit into memory."
        found = (*found, Finding(kind="not-examined", message=message, severity=Severity.FLAG))
    if more_threads <= 0:
        return found
    message = (
        f"{more_threads} thread(s) were started while it was timed and still run: they may work outside the "
        "timed calls."
    )
    return (*found, Finding(kind="threads", message=message, severity=Severity.FLAG))


_NO_TRACE = Finding(
    kind="no-trace",
    message="The profiler records no kernel on this machine, so that no trace was looked at.",
    severity=Severity.FLAG,
)


def _not_traced() -> MeasuredSpeed:
    message = (
        "The trace of one call shows no kernel of the candidate's own. Nothing can be said of it: "
        "either the profiler missed it, or something else computed the output."
    )
    return MeasuredSpeed(
        findings=(Finding(kind="empty-trace", message=message),),
        outcome=NotJudged(reason=NotJudgedReason.EMPTY_TRACE),
    )


def _input_pool(task: TimingTask) -> list[list[Any]]:
    """Up to four sets of inputs, so that neither pointers nor contents repeat from call to call.

    The inputs are copies, as in every other call: each element of an expanded input has memory of its own.
    """
    first = cloned(task.draw(task.seed))
    free, _ = torch.cuda.mem_get_info()
    count = max(1, min(4, int(free * _POOL_BYTES_SHARE / max(1, size_of(first)))))
    return [first, *(cloned(task.draw(task.seed + k)) for k in range(1, count))]


def _calls(
    task: TimingTask, order: TimingRequest, pool: list[list[Any]], compiler: Configuration
) -> tuple[dict[str, Call], tuple[Finding, ...]]:
    """Baselines and rival to time beside the candidate, with a flag for each that cannot be made or run."""
    calls, found = prepare(order.baselines, task.reference, pool[0], compiler)
    rival = task.rival() if task.rival_digest else ""
    if isinstance(rival, str):
        if rival:
            message = f"The best revision so far was not timed beside this candidate: {rival}"
            found = (*found, Finding(kind="no-rival", message=message, severity=Severity.FLAG))
        return calls, found
    try:
        with candidate_code():
            rival(*pool[0])  # compiles
            torch.cuda.synchronize()
    except CandidateFault as fault:
        message = f"The best revision so far did not run beside this candidate: {fault.finding.message}"
        return calls, (*found, Finding(kind="no-rival", message=message, severity=Severity.FLAG))
    return calls | {RIVAL: rival}, found


def _bench(others: dict[str, Call], order: TimingRequest, outputs: TimedOutputs, flush: ColdCache) -> Bench:
    calls = {CANDIDATE: outputs.task.candidate, **others}
    baselines = _baselines(others)
    if baselines and order.noise_fraction is None:
        # The same baseline a second time in each turn: its ratio to itself is the noise floor.
        calls[AGAIN] = others[baselines[0]]
    return Bench(calls=calls, pool=outputs.pool, flush=flush, outputs=outputs)


def _baselines(calls: Iterable[str]) -> list[str]:
    return [name for name in calls if name not in {CANDIDATE, AGAIN, RIVAL}]


def _timing(task: TimingTask, bench: Bench, order: TimingRequest) -> Timing:
    task.stage("timing: copy bandwidth")
    bandwidth = copy_bandwidth()
    task.stage("timing: sampling")
    before = gpu_state.read()
    with candidate_code():
        samples, method, not_by_graph = _sampled(bench, order.longest_s)
        warm_ms, host_ms = bench.warm_ms(), bench.host_ms()
    noise = noise_fraction(samples)
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
        clocks=_both(before, gpu_state.read()),
        rival=_against(RIVAL, samples) if RIVAL in samples else None,
        rival_digest=task.rival_digest if RIVAL in samples else "",
        not_by_graph=not_by_graph,
        # An exposed call waits for the device itself, so its events enclose host time; a graph never does.
        host_included=method == "events" and bench.heads[CANDIDATE].exposed,
    )


def _sampled(bench: Bench, longest_s: float) -> tuple[Samples, str, str]:
    """Samples, the method (``events``, ``graph``), and the reason against a graph for a short kernel."""
    if bench.look() >= cuda_graph.SHORT_MS:
        return bench.sample(longest_s), "events", ""
    try:
        samples = cuda_graph.sample(bench.calls, bench.pool, bench.flush.overwrite, bench.outputs)
    except cuda_graph.NotCapturedError as error:
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
