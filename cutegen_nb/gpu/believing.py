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
from cutegen_nb.gpu import cold_cache, correctness
from cutegen_nb.gpu.checks.host_copies import LEAST_BYTES
from cutegen_nb.gpu.custody import candidate_code
from cutegen_nb.gpu.interception import SMALL_FRACTION
from cutegen_nb.gpu.kernel_trace import KernelTrace
from cutegen_nb.gpu.record import TimingTask

ROOF_SLACK = 0.85
"""A kernel that only reads can be a little faster than the copy that the bandwidth was measured with."""
OUTSIDE_FRACTION = 1.5
"""Kernels that run so much longer than the events around the call say have run outside of them."""
LIBRARY_FRACTION = 0.1
"""Share of a call's device time from which kernels of a library are what the candidate hides behind."""
_SPAN_MS = 0.020
"""Below this the profiler's own resolution matters."""
_COPIES = 12
"""So many times the inputs and outputs are taken up while a few changed elements are compared, doubles
included."""
_FEW = 8
"""Elements that are changed in the memory of an input, in secret places."""

Refusal = tuple[Finding, Outcome]


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


def refused(
    task: TimingTask,
    timing: Timing,
    traces: tuple[KernelTrace, KernelTrace] | None,
    limits: Limits,
    pool: Sequence[list[Any]],
) -> Refusal | None:
    """The finding and the outcome when these times are not to be believed."""
    if traces is not None:
        cheat = (
            answer_kept(*traces)
            or outside_the_clock(timing.median_ms, *traces)
            or computed_by_a_library(traces[0])
            or by_way_of_the_host(traces[0], limits.given_bytes)
        )
        if cheat:
            return cheat, Judged(verdict=Verdict.CHEATED)
    wrong = recheck(task, pool)
    if wrong is not None:
        return wrong, Judged(verdict=Verdict.WRONG_VALUES)
    roof = above_roof(
        timing.median_ms, limits.least_bytes, limits.bandwidth, cold_cache.l2_bytes()
    ) or above_arithmetic_roof(timing.median_ms, limits.flops, limits.peak_flops)
    return (roof, NotJudged(reason=NotJudgedReason.ABOVE_ROOF)) if roof is not None else None


def recheck(task: TimingTask, pool: Sequence[list[Any]]) -> Finding | None:
    """Compare more calls on a pool entry chosen now: a few secret elements changed, then all contents new.

    Both in the same memory and past the version counter, by which an answer may be kept as well.
    """
    given = pool[secrets.randbelow(len(pool))]
    fresh = task.draw(secrets.randbits(31))
    wrong = _few_changed(task, given, fresh)
    if wrong is not None:
        return wrong
    for old, new in zip(given, fresh, strict=True):
        if isinstance(old, torch.Tensor):
            old.data.copy_(new)
    return _wrong(task, given, fresh, (), "new contents in the same memory")


def _few_changed(task: TimingTask, given: list[Any], fresh: list[Any]) -> Finding | None:
    """A few secret elements changed, where memory holds the copies that this takes."""
    before = _called(task, given)
    free, _ = torch.cuda.mem_get_info()
    if _COPIES * (size_of(given) + size_of(before)) > free:
        return None
    for old, new in zip(given, fresh, strict=True):
        if isinstance(old, torch.Tensor) and old.is_contiguous() and new.is_contiguous():
            places = [secrets.randbelow(old.numel()) for _ in range(_FEW if old.numel() else 0)]
            old.data.view(-1)[places] = new.view(-1)[places]
    drawn = [item.clone() if isinstance(item, torch.Tensor) else item for item in given]
    return _wrong(task, given, drawn, before, "a few elements changed in the same memory")


def size_of(items: Sequence[Any]) -> int:
    """Bytes of all tensors in a tree."""
    return sum(x.numel() * x.element_size() for x in tree_leaves(list(items)) if isinstance(x, torch.Tensor))


def _called(task: TimingTask, given: list[Any]) -> tuple[torch.Tensor, ...]:
    with candidate_code():
        returned = task.candidate(*given)
        torch.cuda.synchronize()
    return tuple(item.clone() for item in tree_leaves(returned) if isinstance(item, torch.Tensor))


def _wrong(
    task: TimingTask, given: list[Any], drawn: list[Any], before: tuple[torch.Tensor, ...], how: str
) -> Finding | None:
    """The finding where the candidate is wrong on `given`, which holds what `drawn` does."""
    outputs = _called(task, given)
    compared = task.check(outputs, drawn)
    if compared and all(item.matches for item in compared):
        return None
    if outputs and len(outputs) == len(before) and all(map(correctness.bits_equal, outputs, before)):
        message = f"After timing, with {how}, the candidate gave the earlier answer again, bit for bit."
        return Finding(kind="stale-result", message=message)
    bad = next((item for item in compared if not item.matches), None)
    detail = f" {bad.bad_fraction:.2%} of output {bad.index} is wrong; {bad.pattern}" if bad else ""
    message = (
        f"After timing, with {how}, the output is wrong: an earlier result was handed out again, or the "
        f"calls that were timed did other work.{detail}"
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

    Twice so, and with a kernel on another stream than the events': on a GPU that others use as well there
    may be any time between the kernels of a call.
    """
    elsewhere = first.elsewhere and second.elsewhere
    span_ms = min(first.span_ms, second.span_ms)
    if not elsewhere or span_ms < _SPAN_MS or span_ms < OUTSIDE_FRACTION * median_ms:
        return None
    message = (
        f"The kernels of one call take {span_ms:.4g} ms by the trace over all streams, the events around the "
        f"call say {median_ms:.4g} ms, and {', '.join(dict.fromkeys(elsewhere))} ran on another stream than "
        "theirs: work is done that the clock does not see."
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


def by_way_of_the_host(trace: KernelTrace, given_bytes: int) -> Finding | None:
    """The finding for a call that copies much of its inputs' size to the host, and something back."""
    if not trace.up_bytes or trace.down_bytes < max(LEAST_BYTES, SMALL_FRACTION * given_bytes):
        return None
    message = (
        f"In the trace of one call {trace.down_bytes} bytes were copied to the host and {trace.up_bytes} "
        f"back, with {given_bytes} bytes of inputs: the host computed from them."
    )
    return Finding(kind="read-from-host", message=message)
