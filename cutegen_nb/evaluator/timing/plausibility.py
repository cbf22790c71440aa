"""Plausibility of a candidate's times, checked against traces, timed outputs and measured ceilings.

There is a finding and an outcome for each reason to refuse a time. Outputs are wrong when timed, or kept from
an earlier call. Work is done outside the timed interval, by a library or on the host. Times are below what
the device's measured ceilings allow.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import Judged, NotJudged, NotJudgedReason, Outcome, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.timing import Timing
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.observe import memory_contents
from cutegen_nb.evaluator.observe.dispatch_watch import SMALL_FRACTION
from cutegen_nb.evaluator.observe.isolation import candidate_code
from cutegen_nb.evaluator.timing import cold_l2, floors, timed_outputs
from cutegen_nb.evaluator.timing.bench import Bench
from cutegen_nb.evaluator.timing.cuda_trace import KernelTrace, trace_calls
from cutegen_nb.evaluator.timing.kernel_names import DSL
from cutegen_nb.evaluator.timing.statistics import AGAIN, CANDIDATE
from cutegen_nb.evaluator.trial.compare import cloned
from cutegen_nb.evaluator.trial.evidence import TimingTask
from cutegen_nb.evaluator.trial.host_copies import LEAST_BYTES

OUTSIDE_FRACTION = 1.5
"""Kernel time ÷ time between the events from which kernels count as run outside the events."""
LIBRARY_FRACTION = 0.1
"""Largest share of a call's kernel time that kernels of a library may take."""
_BUSY_MS = 0.020
"""Least kernel time in ms for `outside_the_clock`: below it the profiler's own resolution matters."""
_COPIES = 12
"""Memory that comparing a few changed elements takes, in sizes of inputs and outputs; float64 included."""
DISAGREE_FRACTION = 1.3
"""Largest plausible ratio of profiled time (the shortest of several calls, warm L2) to median latency."""
_PROFILER_OVERHEAD_MS = 0.003
"""Generous bound in ms on the time by which the profiler lengthens short kernels."""
_TRACED_AGAIN = 4
"""Further traces, of two calls each, before times count as disagreeing."""
RIVAL = "best before"
"""Name among the samples of the best candidate so far."""

Refusal = tuple[Finding, Outcome]
"""Finding that refuses a time, and the outcome that follows."""
Traces = tuple[KernelTrace, KernelTrace]
"""Traces of two equal calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HardwareLimits:
    """Least memory traffic of a problem and the bandwidth, which bound the time of every kernel for it."""

    least_bytes: int
    """Least memory traffic in bytes, at full size."""
    bandwidth: float
    """Measured bandwidth of a copy in bytes/s."""
    given_bytes: int
    """Size of the inputs in bytes."""
    made_bytes: int
    """Size of the outputs in bytes."""


def refused(
    task: TimingTask,
    timing: Timing,
    traces: Traces | None,
    limits: HardwareLimits,
    bench: Bench,
) -> Refusal | None:
    """Return the finding and the outcome where the times are not plausible; None where they are."""
    if traces is not None:
        hidden = second_call_launched_nothing(*traces) or outside_the_clock(timing.median_ms, *traces)
        others = computed_by_a_library(*traces) or computed_on_host(traces[0], limits.given_bytes)
        if hidden is None and others is not None:
            return others, Judged(verdict=Verdict.NOT_OWN_WORK)
        hidden = hidden or _beside_the_baseline(bench, traces[0])
        if hidden is not None:
            return hidden, Judged(verdict=Verdict.CHEATED)
    wrong = bench.outputs.wrong or recheck(task, bench.pool)
    if wrong is not None:
        return wrong, Judged(verdict=Verdict.WRONG_VALUES)
    # Implausible times alone give no verdict (`NotJudged`).
    return _impossible(timing, limits) or _disagreeing(task, timing, traces, bench)


def _impossible(timing: Timing, limits: HardwareLimits) -> Refusal | None:
    """Refusal of a time below one of the memory floors."""
    cache_bytes = cold_l2.l2_bytes()
    # Least traffic less the outputs leaves the bytes that have to be read.
    roof = floors.above_roof(
        timing.median_ms, limits.least_bytes, limits.bandwidth, cache_bytes
    ) or floors.faster_than_reading_inputs(
        timing.median_ms, limits.least_bytes - limits.made_bytes, limits.bandwidth
    )
    return (roof, NotJudged(reason=NotJudgedReason.ABOVE_ROOF)) if roof is not None else None


def traced(task: TimingTask, given: list[Any]) -> tuple[Traces | None, Finding | None]:
    """Trace two equal calls; the finding says that their outputs are wrong.

    A candidate may do less under the profiler, as it may when it is timed. Calls that change their inputs are
    not compared.
    """
    returned: list[Any] = []
    drawn = cloned(given)
    with candidate_code():
        traces = trace_calls(lambda: returned.append(task.candidate(*given)), task.library)
    drifting = any(
        isinstance(one, torch.Tensor) and not tolerance.bits_equal(one, two)
        for one, two in zip(given, drawn, strict=True)
    )
    if traces is None or drifting:  # the second call had other inputs
        return traces, None
    for outputs in map(timed_outputs.outputs_of, returned):
        wrong = timed_outputs.wrong(task, tuple(outputs), drawn, (), "In a call that was traced")
        if wrong is not None:
            return traces, wrong
    return traces, None


def _disagreeing(task: TimingTask, timing: Timing, traces: Traces | None, bench: Bench) -> Refusal | None:
    """Refusal where profiled times exceed the events' times, in further traces on a warm device too."""
    if traces is None or times_disagree(timing.median_ms, traces) is None:
        return None
    more = list(traces)
    for _ in range(_TRACED_AGAIN):
        given = bench.pool[0]
        memory_contents.change(given, task.draw(secrets.randbits(31)), few=False)
        again, wrong = traced(task, given)
        if wrong is not None:
            return wrong, Judged(verdict=Verdict.WRONG_VALUES)
        more += again or ()
    found = times_disagree(timing.median_ms, more)
    return None if found is None else (found, NotJudged(reason=NotJudgedReason.TIMES_DISAGREE))


def _beside_the_baseline(bench: Bench, own: KernelTrace) -> Finding | None:
    """Finding for kernels of the candidate that run while the first baseline is called."""
    name = next((name for name in bench.calls if name not in {CANDIDATE, AGAIN}), None)
    if name is None or name == RIVAL:  # a rival's kernels are compiled by the DSL too
        return None
    traces = trace_calls(lambda: bench.calls[name](*bench.pool[0]))
    return None if traces is None else beside_the_baseline(name, own.names, *traces)


def recheck(task: TimingTask, pool: Sequence[list[Any]]) -> Finding | None:
    """Compare further calls on a random pool entry: a few random elements changed, then all contents new.

    Contents change in place, and the tensors' version counters do not: a result kept by pointer or by version
    is then wrong.
    """
    given = pool[secrets.randbelow(len(pool))]
    fresh = task.draw(secrets.randbits(31))
    wrong = _few_changed(task, given, fresh)
    if wrong is not None:
        return wrong
    how = memory_contents.change(given, fresh, few=False)
    return timed_outputs.wrong(task, _called(task, given), fresh, (), f"After timing, with {how}")


def _few_changed(task: TimingTask, given: list[Any], fresh: list[Any]) -> Finding | None:
    """Compare a call after a few random elements changed; skipped where memory does not hold the copies."""
    before = _called(task, given)
    free, _ = torch.cuda.mem_get_info()
    if _COPIES * (size_of(given) + size_of(before)) > free:
        return None
    how = memory_contents.change(given, fresh, few=True)
    drawn = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
    return timed_outputs.wrong(task, _called(task, given), drawn, before, f"After timing, with {how}")


def size_of(items: Sequence[Any]) -> int:
    """Return the bytes of all tensors in a tree."""
    return sum(x.numel() * x.element_size() for x in tree_leaves(list(items)) if isinstance(x, torch.Tensor))


def _called(task: TimingTask, given: list[Any]) -> tuple[torch.Tensor, ...]:
    with candidate_code():
        returned = task.candidate(*given)
        torch.cuda.synchronize()
    return tuple(item.clone() for item in tree_leaves(returned) if isinstance(item, torch.Tensor))


def second_call_launched_nothing(first: KernelTrace, second: KernelTrace) -> Finding | None:
    """Finding for a second, equal call that launched no kernel although the first did; None otherwise."""
    if second.names or not first.names:
        return None
    message = (
        f"In the trace one call launched {', '.join(dict.fromkeys(first.names))} and an equal one after it "
        "launched nothing: the answer was kept and handed out again."
    )
    return Finding(kind="no-kernel", message=message)


def launches_differ(first: KernelTrace, second: KernelTrace) -> Finding:
    """Make the flag for two equal calls that launch different kernels."""
    message = (
        f"Two equal calls launched different kernels: {', '.join(first.names)}, then "
        f"{', '.join(second.names)}. See whether a call skips work."
    )
    return Finding(kind="launches-differ", message=message, severity=Severity.FLAG)


def outside_the_clock(median_ms: float, first: KernelTrace, second: KernelTrace) -> Finding | None:
    """Finding for calls whose kernels run longer than the time between the events; None where they agree.

    Both calls must show it, each with a kernel on another stream than the events'. Only the time in which
    the device works counts: gaps between kernels depend on the host and on other users of the GPU.
    """
    elsewhere = first.elsewhere and second.elsewhere
    busy_ms = min(first.busy_ms, second.busy_ms)
    if not elsewhere or busy_ms < _BUSY_MS or busy_ms < OUTSIDE_FRACTION * median_ms:
        return None
    message = (
        f"The trace shows {busy_ms:.4g} ms of kernels in one call over all streams, but CUDA events "
        f"measure {median_ms:.4g} ms. {', '.join(dict.fromkeys(elsewhere))} ran on another stream than the "
        "events, so that its time is not measured."
    )
    return Finding(kind="outside-the-clock", message=message)


def times_disagree(median_ms: float, traces: Sequence[KernelTrace]) -> Finding | None:
    """Finding for traced calls that keep the device busy for longer than timed calls take; None otherwise.

    The shortest traced call counts. Traced calls have a warm L2 and should be faster.
    """
    busy_ms = min(item.busy_ms for item in traces)
    # A factor for any length, plus a constant that dominates it below 10 µs (0.3 · 10 µs = 3 µs).
    if busy_ms <= DISAGREE_FRACTION * median_ms + _PROFILER_OVERHEAD_MS:
        return None
    message = (
        f"The profiler shows the GPU busy for at least {busy_ms:.4g} ms in each of {len(traces)} traced "
        f"calls, but CUDA events measure {median_ms:.4g} ms for a timed call. Either timed calls do less "
        "work than traced ones, or the events were changed."
    )
    return Finding(kind="times-disagree", message=message)


def beside_the_baseline(
    name: str, own: Sequence[str], first: KernelTrace, second: KernelTrace
) -> Finding | None:
    """Finding where both traces of a baseline's call hold kernels of the candidate; None otherwise."""
    guests = [item for item in first.names if item in own or item.startswith(DSL)]
    if not guests or not any(item in own or item.startswith(DSL) for item in second.names):
        return None
    message = (
        f"Kernels of the candidate ({', '.join(dict.fromkeys(guests))}) ran while only the baseline {name} "
        "was called: they slow the baseline down."
    )
    return Finding(kind="beside-the-baseline", message=message)


def computed_by_a_library(first: KernelTrace, second: KernelTrace) -> Finding | None:
    """Finding for calls that spend over `LIBRARY_FRACTION` of their kernel time in library kernels.

    The call with the smaller share counts: the first may prepare a weight that has changed.
    """
    trace = min((first, second), key=_library_fraction)
    whole = trace.own_ms + trace.library_ms
    if _library_fraction(trace) <= LIBRARY_FRACTION:
        return None
    names = ", ".join(dict.fromkeys(name[:80] for name in trace.library))
    message = (
        f"In the trace of one call {trace.library_ms:.4g} of {whole:.4g} ms go into kernels of PyTorch or of "
        f"a library: {names}."
    )
    return Finding(kind="library-kernels", message=message)


def _library_fraction(trace: KernelTrace) -> float:
    whole = trace.own_ms + trace.library_ms  # kernels that only move or fill are in neither
    return trace.library_ms / whole if whole else 0.0


def computed_on_host(trace: KernelTrace, given_bytes: int) -> Finding | None:
    """Finding for a call that copies much of its inputs' size to the host, and something back."""
    # An answer from the host needs both ways; few bytes down are numbers that a launch needs.
    if not trace.up_bytes or trace.down_bytes < max(LEAST_BYTES, SMALL_FRACTION * given_bytes):
        return None
    message = (
        f"In the trace of one call {trace.down_bytes} bytes were copied to the host and {trace.up_bytes} "
        f"back, with {given_bytes} bytes of inputs: the host computed from them."
    )
    return Finding(kind="host-work", message=message)
