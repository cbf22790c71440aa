"""Unpipelined loads: time in which a CTA waits for its own loads and nothing overlaps the wait.

The counts tell how often each CTA waits, and how many instructions lie between a load and its first use. The
rest of the memory latency is idle, unless other CTAs of the multiprocessor have work. The latency is the one
figure that is not counted, so the result is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.figures.quantity import count, share
from cutegen_nb.analysis.hardware.hierarchy import clocks_per_s
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS, launch_occupancy
from cutegen_nb.core.device import Device
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile

LATENCY_CLOCKS = 500
"""Clocks from a load to its data in DRAM: about 480 on A100 and H100, 540 on an RTX 4090 (Luo et al.,
Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking, 2024)."""
_SCHEDULERS = 4
"""Warp schedulers of a multiprocessor; each issues one instruction a clock."""


@dataclass(frozen=True, slots=True)
class _CtaTime:
    """Idle and busy time of one CTA, in clocks of its multiprocessor."""

    idle: float
    """Clocks of waiting without an own instruction to issue."""
    busy: float
    """Clocks of work on the unit with the largest demand."""
    resident: int
    """CTAs that share a multiprocessor."""

    @property
    def lost(self) -> float:
        """Share of the time in which no CTA has work for that unit."""
        # In one period each resident CTA is busy once; the period is at least one CTA's idle and busy time.
        work = self.resident * self.busy
        return 1 - work / max(work, self.idle + self.busy) if work else 0.0


def unpipelined(
    profile: Profile, device: Device, largest_s: float, line: Callable[[Callable[[Counters], int]], int]
) -> Cause | None:
    """Detect loads behind a barrier whose latency nothing covers, neither own instructions nor other CTAs.

    Args:
        profile: counts of one call; profiles of Nsight Compute lack the counts that are needed.
        device: device whose multiprocessors run it.
        largest_s: demand of the busiest unit, in seconds of the whole device.
        line: function that returns the source line with the greatest cost.
    """
    launch = max(profile.launches, key=lambda one: one.counters.warp_instructions)
    turns = _turns(profile, launch, device, largest_s)
    waits = launch.counters.gmem_waits
    if turns is None or not waits or turns.lost <= 0:
        return None
    between = launch.counters.gmem_wait_instructions / waits
    said = "one instruction" if between <= 1 else f"{between:.3g} instructions"
    warps = _warps(launch)
    return Cause(
        name="unpipelined-loads",
        statement=f"A CTA waits for its own loads with {said} to issue meanwhile, and "
        f"{_others(turns.resident)}: about {share(turns.lost)} of the time is a bubble, if a load takes "
        f"{LATENCY_CLOCKS} clocks.",
        readings=(
            CounterReading(
                name="gmem_waits", value=f"{count(waits)} ({waits / warps / _ctas(launch):.3g} a warp)"
            ),
            CounterReading(name="gmem_wait_instructions ÷ gmem_waits", value=f"{between:.3g}"),
            CounterReading(name="CTAs held at once", value=str(turns.resident)),
        ),
        fraction=turns.lost,
        whole_launch=True,
        refuted_by="asking for the next tile before computing on this one takes as long.",
        line=line(lambda item: _idle_clocks(item, warps)),
    )


def _turns(profile: Profile, launch: LaunchProfile, device: Device, largest_s: float) -> _CtaTime | None:
    held, clocks = launch_occupancy(launch), clocks_per_s(device)
    if held is None or not held.active_ctas or not clocks:
        return None
    warps, ctas = _warps(launch), _ctas(launch)
    whole = profile.counters.warp_instructions
    own = launch.counters.warp_instructions / whole if whole else 0.0
    return _CtaTime(
        idle=_idle_clocks(launch.counters, warps) / warps / ctas,
        # Clocks of all multiprocessors in the demand's time, shared among the CTAs: multiprocessor clocks a
        # CTA.
        busy=own * largest_s * clocks / ctas,
        resident=held.active_ctas,
    )


def _idle_clocks(item: Counters, warps: int) -> int:
    """Return the clocks of latency left after the CTA's own warps have issued the instructions in between."""
    return max(0, item.gmem_waits * LATENCY_CLOCKS - item.gmem_wait_instructions * _issue_clocks(warps))


def _issue_clocks(warps: int) -> int:
    """Return the clocks in which every warp of a CTA issues one instruction."""
    return -(-warps // _SCHEDULERS)


def _warps(launch: LaunchProfile) -> int:
    return -(-math.prod(launch.block) // WARP_THREADS)


def _ctas(launch: LaunchProfile) -> int:
    return launch.ctas_run or math.prod(launch.grid)


def _others(resident: int) -> str:
    if resident == 1:
        return "no second CTA fits its multiprocessor"
    return f"the {resident} CTAs of a multiprocessor have too little work to fill in"
