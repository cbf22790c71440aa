"""Samples of latency: one pair of CUDA events a call, a cold L2, candidate and baselines in random order.

Every call is timed on its own after the L2 was overwritten and its persisting lines were given back; inputs
rotate, so that neither pointers nor contents repeat from call to call. What is compared is always the ratio
of two calls of one turn, so that drift of clocks and temperature cancels.
"""

from __future__ import annotations

import contextlib
import ctypes
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cutegen_nb.gpu.baselines import Call

WARM_UP_S = 0.5
"""Of candidate and baselines mixed, before the first sample."""
TURNS_A_BLOCK = 10
FEWEST_BLOCKS = 5
CLOSE_ENOUGH = 0.01
"""Half the width of the interval of each ratio at which sampling ends."""
CANDIDATE = ""
"""The candidate's name among the samples."""
AGAIN = "again"
"""Name of the second call of the first baseline in each turn: it against itself is the noise floor."""
_HEAD_START_CYCLES = 400_000
"""About 0.2 ms."""
_HOST_CALLS = 30
_LIMIT_PERSISTING_L2 = 6
"""CU_LIMIT_PERSISTING_L2_CACHE_SIZE in cuda.h."""

Samples = dict[str, list[list[float]]]
"""ms by name, a list for each block of turns."""


class ColdCache:
    """Overwrites the L2 and gives back the lines that a kernel asked to keep in it."""

    def __init__(self) -> None:
        size = max(2 * l2_bytes(), 64 << 20)
        self._scrap = torch.empty(size, dtype=torch.uint8, device="cuda")
        self._driver: Any = None
        with contextlib.suppress(OSError):
            self._driver = ctypes.CDLL("libcuda.so.1")

    def __call__(self) -> None:
        """Queue the overwriting; the lines are given back at once."""
        if self._driver is not None:
            self._driver.cuCtxResetPersistingL2Cache()
            self._driver.cuCtxSetLimit(_LIMIT_PERSISTING_L2, ctypes.c_size_t(0))
        self.overwrite()

    def overwrite(self) -> None:
        """Queue the overwriting alone, which a graph can hold."""
        self._scrap.zero_()


def l2_bytes() -> int:
    """L2 size as the driver states it."""
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size)


def timed(call: Callable[[], object], flush: Callable[[], object]) -> float:
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


def sample(
    calls: dict[str, Call], pool: Sequence[list[Any]], flush: Callable[[], object], longest_s: float
) -> Samples:
    """Time the calls by turns until each ratio to the candidate is known well enough, or time is up."""
    names = list(calls)
    order = random.SystemRandom()
    turn = 0

    def once(name: str) -> float:
        given = pool[turn % len(pool)]
        return timed(lambda: calls[name](*given), flush)

    until = time.monotonic() + WARM_UP_S
    while time.monotonic() < until:
        for name in names:
            once(name)
    samples: Samples = {name: [] for name in names}
    until = time.monotonic() + longest_s
    while True:
        for name in names:
            samples[name].append([])
        for _ in range(TURNS_A_BLOCK):
            turn += 1
            for name in order.sample(names, len(names)):
                samples[name][-1].append(once(name))
        if len(samples[CANDIDATE]) >= FEWEST_BLOCKS and (time.monotonic() > until or settled(samples)):
            return samples


def settled(samples: Samples) -> bool:
    """Whether each baseline's ratio to the candidate is known to ±1 %."""
    for name, blocks in samples.items():
        if name not in {CANDIDATE, AGAIN}:
            middle, low, high = ratio_interval(blocks, samples[CANDIDATE])
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


def noise(samples: Samples) -> float | None:
    """How far from 1 the ratio of the first baseline to itself reaches; None where it was not called twice.

    A difference smaller than this is none: the same kernel through the same path differs by as much.
    """
    if AGAIN not in samples:
        return None
    first = next(name for name in samples if name not in {CANDIDATE, AGAIN})
    _, low, high = ratio_interval(samples[first], samples[AGAIN], resamples=2000)
    return max(abs(1 - low), abs(high - 1))


def warm_ms(call: Call, pool: Sequence[list[Any]]) -> float:
    """Median latency when the L2 keeps what the calls before left in it."""
    times = [timed(lambda: call(*pool[0]), lambda: None) for _ in range(_HOST_CALLS)]
    return statistics.median(times)


def host_ms(call: Call, pool: Sequence[list[Any]]) -> float:
    """Median time in which the host queues one call, the device being idle: never part of a latency."""
    times = []
    for _ in range(_HOST_CALLS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call(*pool[0])
        times.append(time.perf_counter() - began)
    torch.cuda.synchronize()
    return statistics.median(times) * 1e3
