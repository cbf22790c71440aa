"""Are the times of a candidate to be believed? What was timed is held against what it must have done.

One sentence and an outcome for each reason not to: outputs wrong when timed, an answer kept, work outside the
clock, in a library or on the host, and times that the device's measured ceilings do not allow.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import (
    Finding,
    Judged,
    NotJudged,
    NotJudgedReason,
    Outcome,
    Severity,
    Timing,
    Verdict,
)
from cutegen_nb.gpu import cold_cache, contents, correctness, roofs, timed_outputs
from cutegen_nb.gpu.checks.host_copies import LEAST_BYTES
from cutegen_nb.gpu.comparing import cloned
from cutegen_nb.gpu.custody import candidate_code
from cutegen_nb.gpu.interception import SMALL_FRACTION
from cutegen_nb.gpu.kernel_names import DSL
from cutegen_nb.gpu.kernel_trace import KernelTrace, trace_calls
from cutegen_nb.gpu.ratios import AGAIN, CANDIDATE
from cutegen_nb.gpu.record import TimingTask
from cutegen_nb.gpu.sampling import Bench

OUTSIDE_FRACTION = 1.5
"""Kernels that run so much longer than the events around the call say have run outside of them."""
LIBRARY_FRACTION = 0.1
"""Share of a call's device time from which kernels of a library are what the candidate hides behind."""
_BUSY_MS = 0.020
"""Below this the profiler's own resolution matters."""
_COPIES = 12
"""So many times the inputs and outputs are taken up while a few changed elements are compared, doubles
included."""
DISAGREE_FRACTION = 1.3
"""The profiler's times are the shortest of several with a warm L2, so that they should be shorter."""
_PROFILER_MS = 0.003
"""By so much the profiler makes short kernels longer, generously."""
_TRACED_AGAIN = 4
"""Two calls each time."""
RIVAL = "best before"
"""Name of the candidate to beat among the samples."""

Refusal = tuple[Finding, Outcome]
Traces = tuple[KernelTrace, KernelTrace]
"""Of two equal calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What no kernel for the problem can beat on this device."""

    least_bytes: int
    """Least traffic at full size."""
    flops: int
    """Floating-point operations."""
    bandwidth: float
    """Measured bytes/s of a copy."""
    peak_flops: float
    """Highest measured FLOP/s; 0 when unknown."""
    given_bytes: int
    """Size of the inputs."""
    made_bytes: int
    """Size of the outputs."""


def refused(
    task: TimingTask,
    timing: Timing,
    traces: Traces | None,
    limits: Limits,
    bench: Bench,
) -> Refusal | None:
    """The finding and the outcome when these times are not to be believed."""
    if traces is not None:
        cheat = (
            answer_kept(*traces)
            or outside_the_clock(timing.median_ms, *traces)
            or computed_by_a_library(*traces)
            or by_way_of_the_host(traces[0], limits.given_bytes)
            or _beside_the_baseline(bench, traces[0])
        )
        if cheat:
            return cheat, Judged(verdict=Verdict.CHEATED)
    wrong = bench.outputs.wrong or recheck(task, bench.pool)
    if wrong is not None:
        return wrong, Judged(verdict=Verdict.WRONG_VALUES)
    return _impossible(timing, limits) or _disagreeing(task, timing, traces, bench)


def _impossible(timing: Timing, limits: Limits) -> Refusal | None:
    cache_bytes = cold_cache.l2_bytes()
    roof = (
        roofs.above_roof(timing.median_ms, limits.least_bytes, limits.bandwidth, cache_bytes)
        or roofs.above_reading_roof(
            timing.median_ms, limits.least_bytes - limits.made_bytes, limits.bandwidth
        )
        or roofs.above_arithmetic_roof(timing.median_ms, limits.flops, limits.peak_flops)
    )
    return (roof, NotJudged(reason=NotJudgedReason.ABOVE_ROOF)) if roof is not None else None


def traced(task: TimingTask, given: list[Any]) -> tuple[Traces | None, Finding | None]:
    """Traces of two equal calls, and the finding where what they gave is wrong.

    Less may be done where the profiler looks on as well as where a clock does.
    """
    returned: list[Any] = []
    drawn = cloned(given)
    with candidate_code():
        traces = trace_calls(lambda: returned.append(task.candidate(*given)))
    drifting = any(
        isinstance(one, torch.Tensor) and not correctness.bits_equal(one, two)
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
    """Where the profiler's times are longer than the events', also when it looks again at a warm device."""
    if traces is None or times_disagree(timing.median_ms, traces) is None:
        return None
    more = list(traces)
    for _ in range(_TRACED_AGAIN):
        given = bench.pool[0]
        contents.change(given, task.draw(secrets.randbits(31)), few=False)
        again, wrong = traced(task, given)
        if wrong is not None:
            return wrong, Judged(verdict=Verdict.WRONG_VALUES)
        more += again or ()
    found = times_disagree(timing.median_ms, more)
    return None if found is None else (found, NotJudged(reason=NotJudgedReason.TIMES_DISAGREE))


def _beside_the_baseline(bench: Bench, own: KernelTrace) -> Finding | None:
    """The finding where kernels of the candidate's run while a baseline is called."""
    name = next((name for name in bench.calls if name not in {CANDIDATE, AGAIN}), None)
    if name is None or name == RIVAL:
        return None
    traces = trace_calls(lambda: bench.calls[name](*bench.pool[0]))
    return None if traces is None else beside_the_baseline(name, own.names, *traces)


def recheck(task: TimingTask, pool: Sequence[list[Any]]) -> Finding | None:
    """Compare more calls on a pool entry chosen now: a few secret elements changed, then all contents new.

    Both in the same memory and past the version counter, by which an answer may be kept as well.
    """
    given = pool[secrets.randbelow(len(pool))]
    fresh = task.draw(secrets.randbits(31))
    wrong = _few_changed(task, given, fresh)
    if wrong is not None:
        return wrong
    how = contents.change(given, fresh, few=False)
    return timed_outputs.wrong(task, _called(task, given), fresh, (), f"After timing, with {how}")


def _few_changed(task: TimingTask, given: list[Any], fresh: list[Any]) -> Finding | None:
    """A few secret elements changed, where memory holds the copies that this takes."""
    before = _called(task, given)
    free, _ = torch.cuda.mem_get_info()
    if _COPIES * (size_of(given) + size_of(before)) > free:
        return None
    how = contents.change(given, fresh, few=True)
    drawn = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
    return timed_outputs.wrong(task, _called(task, given), drawn, before, f"After timing, with {how}")


def size_of(items: Sequence[Any]) -> int:
    """Bytes of all tensors in a tree."""
    return sum(x.numel() * x.element_size() for x in tree_leaves(list(items)) if isinstance(x, torch.Tensor))


def _called(task: TimingTask, given: list[Any]) -> tuple[torch.Tensor, ...]:
    with candidate_code():
        returned = task.candidate(*given)
        torch.cuda.synchronize()
    return tuple(item.clone() for item in tree_leaves(returned) if isinstance(item, torch.Tensor))


def answer_kept(first: KernelTrace, second: KernelTrace) -> Finding | None:
    """The finding for a second, equal call that launched nothing; None where it launched."""
    if second.names or not first.names:
        return None
    message = (
        f"In the trace one call launched {', '.join(dict.fromkeys(first.names))} and an equal one after it "
        "launched nothing: the answer was kept and handed out again."
    )
    return Finding(kind="no-kernel", message=message)


def launches_differ(first: KernelTrace, second: KernelTrace) -> Finding:
    """A flag for two equal calls that launch different kernels."""
    message = (
        f"Of two equal calls one launches {', '.join(first.names)}, the next {', '.join(second.names)}: "
        "is less done at some calls?"
    )
    return Finding(kind="launches-differ", message=message, severity=Severity.FLAG)


def outside_the_clock(median_ms: float, first: KernelTrace, second: KernelTrace) -> Finding | None:
    """The finding for calls that end later than the events around them say; None when they agree.

    Twice so, and with a kernel on another stream than the events'. What counts is how long kernels run:
    between them there may be any time, as the host gets to the next or as others use the GPU.
    """
    elsewhere = first.elsewhere and second.elsewhere
    busy_ms = min(first.busy_ms, second.busy_ms)
    if not elsewhere or busy_ms < _BUSY_MS or busy_ms < OUTSIDE_FRACTION * median_ms:
        return None
    message = (
        f"The kernels of one call run for {busy_ms:.4g} ms by the trace over all streams, the events around "
        f"the call say {median_ms:.4g} ms, and {', '.join(dict.fromkeys(elsewhere))} ran on another stream "
        "than theirs: work is done that the clock does not see."
    )
    return Finding(kind="outside-the-clock", message=message)


def times_disagree(median_ms: float, traces: Sequence[KernelTrace]) -> Finding | None:
    """The finding for calls in whose traces kernels run longer than the events say that timed calls take.

    The shortest of the traced calls counts, which had a warm L2 besides.
    """
    busy_ms = min(item.busy_ms for item in traces)
    if busy_ms <= DISAGREE_FRACTION * median_ms + _PROFILER_MS:
        return None
    message = (
        f"In each of {len(traces)} traced calls the device was at work for {busy_ms:.4g} ms or more, and "
        f"the events around timed calls say {median_ms:.4g} ms: other work is done when it is timed, or "
        "the events are not what they were."
    )
    return Finding(kind="times-disagree", message=message)


def beside_the_baseline(
    name: str, own: Sequence[str], first: KernelTrace, second: KernelTrace
) -> Finding | None:
    """The finding where both traces of a baseline's call hold kernels that are the candidate's."""
    guests = [item for item in first.names if item in own or item.startswith(DSL)]
    if not guests or not any(item in own or item.startswith(DSL) for item in second.names):
        return None
    message = (
        f"While the baseline {name} was called and nothing of the candidate, "
        f"{', '.join(dict.fromkeys(guests))} ran on the device: the baseline is slowed down."
    )
    return Finding(kind="beside-the-baseline", message=message)


def computed_by_a_library(first: KernelTrace, second: KernelTrace) -> Finding | None:
    """The finding for calls whose time goes, in good part, into kernels that are not the candidate's.

    Both of them: in the first a weight that has changed may be prepared.
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
    whole = trace.own_ms + trace.library_ms
    return trace.library_ms / whole if whole else 0.0


def by_way_of_the_host(trace: KernelTrace, given_bytes: int) -> Finding | None:
    """The finding for a call that copies much of its inputs' size to the host, and something back."""
    if not trace.up_bytes or trace.down_bytes < max(LEAST_BYTES, SMALL_FRACTION * given_bytes):
        return None
    message = (
        f"In the trace of one call {trace.down_bytes} bytes were copied to the host and {trace.up_bytes} "
        f"back, with {given_bytes} bytes of inputs: the host computed from them."
    )
    return Finding(kind="read-from-host", message=message)
