"""How fast a correct candidate is, against baselines, on a GPU.

Each call is timed on its own with CUDA events after the L2 cache was overwritten; candidate and baselines
alternate inside one process on the same inputs (A B B A), so that drift of clocks and temperature cancels in
the ratio of each pair. Reported are medians, and the median ratio with a bootstrap interval over blocks.
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from cutegen_nb.core.evaluation import (
    BaselineTiming,
    Finding,
    Judged,
    NotJudged,
    NotJudgedReason,
    Outcome,
    Severity,
    Timing,
    Verdict,
)
from cutegen_nb.gpu.baselines import Call, prepare
from cutegen_nb.gpu.kernel_trace import kernels_launched
from cutegen_nb.gpu.trial import TimingTask

WARM_UP_S = 0.5
"""Of candidate and baselines mixed, before the first sample."""
PAIRS_A_BLOCK = 10
FEWEST_BLOCKS = 5
LONGEST_S = 4.0
"""Sampling ends here even when the interval is still wide."""
CLOSE_ENOUGH = 0.01
"""Half the width of the interval of each ratio at which sampling ends."""
ROOF_SLACK = 0.85
"""A kernel that only reads can be a little faster than the copy that the bandwidth was measured with."""
_HEAD_START_CYCLES = 400_000
"""About 0.2 ms."""
_POOL_BYTES_SHARE = 0.1
"""Of free GPU memory, for rotating input sets."""

Timer = Callable[[TimingTask], tuple[Timing | None, tuple[Finding, ...], Outcome | None]]


def timer(baselines: Sequence[str], least_bytes: int) -> Timer:
    """What times a candidate against `baselines` (``eager``, ``torch.compile``).

    `least_bytes` is the least traffic of the problem at full size: a time below what the measured bandwidth
    allows for it is no verdict.
    """

    def measure(task: TimingTask) -> tuple[Timing | None, tuple[Finding, ...], Outcome | None]:
        torch.cuda.set_per_process_memory_fraction(0.95)
        pool = _input_pool(task)
        traced = _trace(task, pool[0])
        if isinstance(traced, NotJudged):
            message = (
                "The trace of one call shows no kernel of the candidate's own. Nothing can be said of it: "
                "either the profiler missed it, or something else computed the output."
            )
            return None, (Finding(kind="empty-trace", message=message),), traced
        calls, failures = prepare(baselines, task.reference, pool[0])
        bandwidth = copy_bandwidth()
        samples = _sample({"": task.candidate, **calls}, pool)
        findings = (*traced, *failures)
        wrong = _recheck(task, pool)
        timing = _summary(samples, bandwidth, task.compile_s)
        if wrong is not None:
            return timing, (wrong, *findings), Judged(verdict=Verdict.WRONG_VALUES)
        roof = above_roof(timing.median_ms, least_bytes, bandwidth, l2_bytes())
        if roof is not None:
            return timing, (roof, *findings), NotJudged(reason=NotJudgedReason.ABOVE_ROOF)
        return timing, findings, None

    return measure


def _trace(task: TimingTask, given: list[Any]) -> tuple[Finding, ...] | NotJudged:
    names = kernels_launched(lambda: task.candidate(*given))
    if names is None:
        message = "The profiler records no kernel on this machine, so that no trace was looked at."
        return (Finding(kind="no-trace", message=message, severity=Severity.FLAG),)
    return () if names else NotJudged(reason=NotJudgedReason.EMPTY_TRACE)


def _input_pool(task: TimingTask) -> list[list[Any]]:
    """Up to four sets of inputs, so that neither pointers nor contents repeat from call to call."""
    first = task.draw(task.seed)
    size = sum(x.numel() * x.element_size() for x in tree_leaves(first) if isinstance(x, torch.Tensor))
    free, _ = torch.cuda.mem_get_info()
    count = max(1, min(4, int(free * _POOL_BYTES_SHARE / max(1, size))))
    return [first, *(task.draw(task.seed + k) for k in range(1, count))]


def l2_bytes() -> int:
    """L2 size as the driver states it."""
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


def copy_bandwidth() -> float:
    """Bytes/s, read and written, of a device copy of up to 1 GiB: the roof that times are held against."""
    free, _ = torch.cuda.mem_get_info()
    size = int(min(1 << 30, free // 8))
    source = torch.zeros(size, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times = [_timed(lambda: target.copy_(source), lambda: None) for _ in range(12)]
    return 2 * size / (statistics.median(times[2:]) * 1e-3)


def _timed(call: Callable[[], object], flush: Callable[[], object]) -> float:
    """Milliseconds of one call on the device, between two events."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    # Keeps the device busy while the host queues the call, whose own 30 µs would be measured otherwise.
    torch.cuda._sleep(_HEAD_START_CYCLES)  # noqa: SLF001 - PyTorch offers no other spinning kernel
    flush()
    start.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end))


def _sample(calls: dict[str, Call], pool: list[list[Any]]) -> dict[str, list[list[float]]]:
    """Samples in ms by name, a list for each block; the candidate's name is ""."""
    scrap = torch.empty(max(2 * l2_bytes(), 64 << 20), dtype=torch.uint8, device="cuda")
    names = list(calls)
    turn = 0

    def once(name: str) -> float:
        given = pool[turn % len(pool)]
        return _timed(lambda: calls[name](*given), scrap.zero_)

    until = time.monotonic() + WARM_UP_S
    while time.monotonic() < until:
        for name in names:
            once(name)
    samples: dict[str, list[list[float]]] = {name: [] for name in names}
    until = time.monotonic() + LONGEST_S
    while True:
        for name in names:
            samples[name].append([])
        for _ in range(PAIRS_A_BLOCK):
            turn += 1
            order = names if turn % 2 else names[::-1]
            for name in order:
                samples[name][-1].append(once(name))
        if len(samples[""]) >= FEWEST_BLOCKS and (time.monotonic() > until or _settled(samples)):
            return samples


def _settled(samples: dict[str, list[list[float]]]) -> bool:
    for name, blocks in samples.items():
        if name:
            middle, low, high = ratio_interval(blocks, samples[""])
            if (high - low) / 2 > CLOSE_ENOUGH * middle:
                return False
    return True


def ratio_interval(
    baseline: list[list[float]], candidate: list[list[float]], resamples: int = 500
) -> tuple[float, float, float]:
    """Median of the pairwise ratios baseline ÷ candidate, and its 95 % interval.

    Both are lists of blocks of equal length. Blocks, not pairs, are resampled: samples within a block share
    clocks and temperature.
    """
    ratios = np.asarray(baseline) / np.asarray(candidate)
    generator = np.random.default_rng(0)
    chosen = generator.integers(0, len(ratios), size=(resamples, len(ratios)))
    medians = np.median(ratios[chosen].reshape(resamples, -1), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def _recheck(task: TimingTask, pool: list[list[Any]]) -> Finding | None:
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


def _summary(samples: dict[str, list[list[float]]], bandwidth: float, compile_s: float) -> Timing:
    own = [value for block in samples[""] for value in block]
    baselines = []
    for name, blocks in samples.items():
        if not name:
            continue
        middle, low, high = ratio_interval(blocks, samples[""], resamples=2000)
        baselines.append(
            BaselineTiming(
                name=name,
                median_ms=statistics.median([value for block in blocks for value in block]),
                speedup=middle,
                speedup_low=low,
                speedup_high=high,
            )
        )
    return Timing(
        median_ms=statistics.median(own),
        samples_ms=tuple(own),
        baselines=tuple(baselines),
        bandwidth_bytes_per_s=bandwidth,
        compile_s=compile_s,
    )


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
