"""Latency of a candidate, measured on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_GAIN = 0.01
"""Least relative gain in time within one run that counts as faster; a kernel timed against itself differs by
well under one per cent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTiming:
    """Timing of the candidate against one baseline, paired and interleaved."""

    name: str
    """Name of the baseline: ``eager``, ``torch.compile`` …"""
    median_ms: float
    """Median latency of the baseline."""
    speedup: float
    """Median over pairs of baseline ÷ candidate."""
    speedup_low: float
    """Lower end of its 95 % bootstrap interval."""
    speedup_high: float
    """Upper end of the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clocks, temperature and power of a GPU at one moment."""

    sm_mhz: int
    """Clock of the streaming multiprocessors in MHz."""
    memory_mhz: int
    """Clock of the memory in MHz."""
    temperature_c: int
    """Temperature of the chip in °C."""
    power_w: float
    """Power drawn by the board in W."""
    slowed_by: tuple[str, ...] = ()
    """Causes of reduced clocks: ``power cap``, ``hardware thermal limit`` …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Latency measured on a GPU; never from the simulator."""

    median_ms: float
    """Median latency of the candidate, L2 flushed before each call."""
    samples_ms: tuple[float, ...]
    """Every latency sample, in order."""
    baselines: tuple[BaselineTiming, ...]
    """Paired comparisons with the baselines."""
    bandwidth_bytes_per_s: float
    """Copy bandwidth (read + write) measured in the same process."""
    compile_s: float = 0.0
    """Seconds of the first call, compilation included."""
    method: str = "events"
    """Measurement method: ``events``, one pair of CUDA events a call; ``graph``, replays of a CUDA graph, for
    kernels under 10 µs."""
    warm_ms: float | None = None
    """Median latency with a warm L2, as the call before left it; the other latencies are with a cold L2."""
    host_ms: float | None = None
    """Median host time to queue a call; not part of any latency here."""
    noise_fraction: float | None = None
    """Spread of the ratio of a baseline to itself around 1; a smaller difference is not significant."""
    resolution_fraction: float = 0.0
    """Two steps of the clock ÷ median latency; a smaller difference is not significant either."""
    clocks: tuple[Clocks, ...] = ()
    """GPU state at the start and the end of sampling; empty where it could not be read."""
    rival: BaselineTiming | None = None
    """Comparison with the best candidate before this one, timed in the same turns; None without one."""
    rival_digest: str = ""
    """SHA-256 of the rival's source."""
    not_by_graph: str = ""
    """Reason why a kernel short enough for a graph was timed by events; empty for any other."""
    host_included: bool = False
    """True if the call waits for the device itself, so that its latency includes host time."""

    @property
    def no_faster(self) -> bool:
        """True if the rival was timed too, and no gain of `LEAST_GAIN` over it is to be expected."""
        rival = self.rival
        return rival is not None and (rival.speedup <= 1 or rival.speedup_high < 1 + LEAST_GAIN)

    def __post_init__(self) -> None:
        """Raise ValueError for a latency that no clock gives."""
        for name, value in (("median_ms", self.median_ms), *(("samples_ms", one) for one in self.samples_ms)):
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{name} is {value!r}, which is no latency: it is finite and at least 0")
