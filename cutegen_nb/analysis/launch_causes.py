"""Causes that lie in how a kernel is launched and compiled: its grid, its last wave, its registers."""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.analysis.cause import Cause, Reading
from cutegen_nb.analysis.lines import spilled_by_line
from cutegen_nb.analysis.measured_causes import idle_share
from cutegen_nb.analysis.occupancy import WARP_THREADS, launch_occupancy
from cutegen_nb.analysis.quantity import count, share
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight_metrics import ACHIEVED_OCCUPANCY
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource

_FEW = 0.5
"""A grid that leaves at least this share of the multiprocessors idle is too small."""
_WORK_A_THREAD_BYTES = 1024
"""Least bytes a thread from which one CTA alone could have shared its work: 64 accesses of 128 bits. A
tile of a product that one CTA computes whole has fewer."""
_TAIL = 0.1
_SHORT_WAVES = 16
"""Beyond this many waves the last one no longer counts."""
_LOW_OCCUPANCY = 0.25
_FULL_WARPS = 16
"""Resident warps that hide most latency with a few independent loads each (Volkov, GTC 2010)."""


def launch_causes(
    profile: Profile, facts: ProblemFacts, device: Device, line: Callable[[Callable[[Counters], int]], int]
) -> list[Cause]:
    """What the heaviest launch shows of grid and registers.

    Args:
        profile: counts of one call.
        facts: of the problem, at both sizes.
        device: whose multiprocessors are to be filled.
        line: the line of Python with the greatest cost.
    """
    heaviest = max(profile.launches, key=lambda one: one.counters.warp_instructions)
    issued = line(lambda item: item.warp_instructions)
    found = (
        _too_few_ctas(profile, heaviest, facts, device, issued),
        _tail(profile, heaviest, facts, device),
        _spills(heaviest, issued),
        _occupancy(heaviest),
    )
    return [one for one in found if one is not None]


def _too_few_ctas(
    profile: Profile, launch: LaunchProfile, facts: ProblemFacts, device: Device, line: int
) -> Cause | None:
    ctas = math.prod(launch.grid)
    if not device.sm_count:
        return None
    likely = _at_full_size(ctas, profile, facts, launch)
    idle = 1 - likely / device.sm_count
    if idle < _FEW:
        return None
    readings = [
        Reading(name="CTAs", value=count(ctas)),
        Reading(name="multiprocessors", value=count(device.sm_count)),
    ]
    if likely != ctas:
        readings.insert(1, Reading(name="CTAs at full size, in proportion", value=count(likely)))
    scaled = facts.scaled.least_bytes != facts.full.least_bytes and profile.source is ProfileSource.SIMULATED
    where = " at the size that was simulated" if scaled and likely == ctas else ""
    return Cause(
        name="too-few-ctas",
        statement=f"{share(idle)} of the multiprocessors have nothing to do{where}: a CTA runs on one of "
        "them, and the grid has too few.",
        readings=tuple(readings),
        fraction=idle,
        whole_launch=True,
        refuted_by="a grid of more CTAs, each with less of the work, takes as long.",
        line=line,
    )


def _at_full_size(ctas: int, profile: Profile, facts: ProblemFacts, launch: LaunchProfile) -> float:
    """CTAs of the launch at the problem's own size.

    A scaled-down problem has a scaled-down grid. One that has a single CTA and much work for each of its
    threads would have been spread already if it ever were, so it is taken as it is.
    """
    least, full = facts.scaled.least_bytes, facts.full.least_bytes
    if profile.source is not ProfileSource.SIMULATED or not least:
        return ctas
    if ctas == 1 and least / math.prod(launch.block) >= _WORK_A_THREAD_BYTES:
        return ctas
    return ctas * max(1.0, full / least)


def _tail(profile: Profile, launch: LaunchProfile, facts: ProblemFacts, device: Device) -> Cause | None:
    held = launch_occupancy(launch)
    scaled = profile.source is ProfileSource.SIMULATED and facts.scaled.least_bytes != facts.full.least_bytes
    if held is None or not held.active_ctas or not device.sm_count or scaled:
        return None
    ctas = math.prod(launch.grid)
    waves = ctas / (held.active_ctas * device.sm_count)
    if not 1 < waves <= _SHORT_WAVES:
        return None
    measured = idle_share(launch)
    idle = 1 - waves / math.ceil(waves)
    if measured is not None:
        idle = min(idle, measured)  # CTAs that take unequal times fill a last wave better than equal ones
    if idle < _TAIL:
        return None
    return Cause(
        name="tail-effect",
        statement=f"The grid fills the device {waves:.2f} times: in the last wave multiprocessors wait for "
        "the few CTAs that are left.",
        readings=(
            Reading(name="CTAs", value=count(ctas)),
            Reading(name="CTAs held at once", value=count(held.active_ctas * device.sm_count)),
            Reading(name="idle over all waves", value=share(idle)),
        ),
        fraction=idle,
        whole_launch=True,
        refuted_by="a grid of a whole number of waves, or a persistent one, takes as long.",
    )


def _spills(launch: LaunchProfile, line: int) -> Cause | None:
    given = launch.resources
    if given is None or not (given.spill_store_bytes or given.spill_load_bytes):
        return None
    words = (given.spill_store_bytes + given.spill_load_bytes) / 4
    threads = math.prod(launch.block) * (launch.ctas_run or math.prod(launch.grid))
    moved = spilled_by_line(launch)
    where = "" if moved else " The code says no line for them: the one named issues most."
    spilling = words * threads / WARP_THREADS
    return Cause(
        name="spills",
        statement=f"The compiler had too few registers: at {given.registers} a thread it moves values to "
        f"local memory and back.{where}",
        readings=(
            Reading(name="registers", value=count(given.registers)),
            Reading(name="spill stores", value=f"{count(given.spill_store_bytes)} B a thread"),
            Reading(name="spill loads", value=f"{count(given.spill_load_bytes)} B a thread"),
        ),
        fraction=spilling / (spilling + launch.counters.warp_instructions),
        whole_launch=True,
        refuted_by="a build without spills (more registers a thread, fewer values alive) takes as long.",
        line=max(moved, key=lambda number: moved[number], default=line),
    )


def _occupancy(launch: LaunchProfile) -> Cause | None:
    held = launch_occupancy(launch)
    if held is None or held.fraction >= _LOW_OCCUPANCY or held.active_warps >= _FULL_WARPS:
        return None
    limiter, achieved = ", ".join(held.limiters), launch.metric(ACHIEVED_OCCUPANCY)
    lift = f" One more CTA needs {held.lift}." if held.lift else ""
    return Cause(
        name="occupancy",
        statement=f"A multiprocessor holds {held.active_warps} of {held.max_warps} warps, limited by "
        f"{limiter}: few to choose from while loads are on their way.{lift}",
        readings=(
            Reading(name="occupancy", value=share(held.fraction)),
            *([Reading(name=ACHIEVED_OCCUPANCY, value=f"{achieved:.1f} %")] if achieved is not None else []),
            *(
                Reading(name=f"CTAs by {one.cause}", value=f"{one.ctas} ({one.used})")
                for one in held.limits[:2]
            ),
        ),
        fraction=1 - held.fraction,
        refuted_by="the time stays with more warps: each thread already has enough loads in flight.",
    )
