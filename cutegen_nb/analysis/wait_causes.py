"""Loads that nothing overlaps: a CTA stands still until its own data has come.

Of each CTA the counts say how often it waits and how many instructions lie between a load and its first use;
the rest of the memory's latency passes with nothing to do, unless other CTAs of the multiprocessor have work.
The latency is the one figure here that is not counted, so what follows from it is an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.cause import Cause, Reading
from cutegen_nb.analysis.hierarchy import clocks_per_s
from cutegen_nb.analysis.occupancy import WARP_THREADS, launch_occupancy
from cutegen_nb.analysis.quantity import count, share
from cutegen_nb.core.device import Device
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile

LATENCY_CLOCKS = 500
"""From a load to its data where no cache has it: about 480 clocks on A100 and H100, 540 on an RTX 4090 (Luo
et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking, 2024)."""
_SCHEDULERS = 4
"""Warps of which a multiprocessor issues an instruction each in one clock."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """What one CTA does, in clocks of its multiprocessor."""

    idle: float
    """Waiting with nothing to issue of its own."""
    busy: float
    """Of the unit that is asked for most."""
    resident: int
    """CTAs that take turns on a multiprocessor."""

    @property
    def lost(self) -> float:
        """Share of the time in which no CTA has work for that unit."""
        work = self.resident * self.busy
        return 1 - work / max(work, self.idle + self.busy) if work else 0.0


def unpipelined(
    profile: Profile, device: Device, largest_s: float, line: Callable[[Callable[[Counters], int]], int]
) -> Cause | None:
    """Loads behind a barrier whose wait neither the warp's own instructions nor other CTAs cover.

    Args:
        profile: counts of one call; those of Nsight Compute have no such counts.
        device: whose multiprocessors run it.
        largest_s: demand of the busiest unit, in seconds of the whole device.
        line: the line of Python with the greatest cost.
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
            Reading(name="gmem_waits", value=f"{count(waits)} ({waits / warps / _ctas(launch):.3g} a warp)"),
            Reading(name="gmem_wait_instructions ÷ gmem_waits", value=f"{between:.3g}"),
            Reading(name="CTAs held at once", value=str(turns.resident)),
        ),
        fraction=turns.lost,
        whole_launch=True,
        refuted_by="asking for the next tile before computing on this one takes as long.",
        line=line(lambda item: _idle_clocks(item, warps)),
    )


def _turns(profile: Profile, launch: LaunchProfile, device: Device, largest_s: float) -> _Turns | None:
    held, clocks = launch_occupancy(launch), clocks_per_s(device)
    if held is None or not held.active_ctas or not clocks:
        return None
    warps, ctas = _warps(launch), _ctas(launch)
    whole = profile.counters.warp_instructions
    own = launch.counters.warp_instructions / whole if whole else 0.0
    return _Turns(
        idle=_idle_clocks(launch.counters, warps) / warps / ctas,
        busy=own * largest_s * clocks / ctas,
        resident=held.active_ctas,
    )


def _idle_clocks(item: Counters, warps: int) -> int:
    """Clocks of the latency that are left when the CTA's own warps have issued what lies between."""
    return max(0, item.gmem_waits * LATENCY_CLOCKS - item.gmem_wait_instructions * _issue_clocks(warps))


def _issue_clocks(warps: int) -> int:
    """Clocks in which every warp of a CTA issues one instruction."""
    return -(-warps // _SCHEDULERS)


def _warps(launch: LaunchProfile) -> int:
    return -(-math.prod(launch.block) // WARP_THREADS)


def _ctas(launch: LaunchProfile) -> int:
    return launch.ctas_run or math.prod(launch.grid)


def _others(resident: int) -> str:
    if resident == 1:
        return "no second CTA fits its multiprocessor"
    return f"the {resident} CTAs of a multiprocessor have too little work to fill in"
