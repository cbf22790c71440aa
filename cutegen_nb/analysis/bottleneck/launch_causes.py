"""Causes from a kernel's launch and compilation: grid, last wave, spills, serialised wgmma, occupancy."""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.bottleneck.full_grid import ctas_at_full_size, is_scaled
from cutegen_nb.analysis.bottleneck.measured_causes import idle_share
from cutegen_nb.analysis.figures.quantity import count, share
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS, launch_occupancy
from cutegen_nb.analysis.source.lines import spilled_by_line
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight.metrics import ACHIEVED_OCCUPANCY
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, function_name

_FEW = 0.5
"""Share of idle multiprocessors from which a grid counts as too small."""
_TAIL = 0.1
"""Smallest idle share in the last wave that is reported."""
_SHORT_WAVES = 16
"""Number of waves beyond which an unfilled last wave no longer matters."""
_LOW_OCCUPANCY = 0.25
"""Occupancy below which a kernel is reported, from 0 to 1."""
_WGMMA = ("HGMMA", "IGMMA", "QGMMA", "BGMMA")
"""Names of ``wgmma`` in machine code, by the operands' types."""
_FEW_WGMMA = 4
"""Fewest ``wgmma`` of a kernel that is reported: a loop with one or two may wait for each on purpose."""
_SERIALISED = 0.4
"""Share of a kernel's time that serialised ``wgmma`` cost in trials on an H200: 0.4 of a product in which one
warp group multiplies at a time, 0.1 of one in which two do. The larger, so that the cause is seen."""
_FULL_WARPS = 16
"""Resident warps that hide most latency with a few independent loads each (Volkov, GTC 2010)."""


def launch_causes(
    profile: Profile, facts: ProblemFacts, device: Device, line: Callable[[Callable[[Counters], int]], int]
) -> list[Cause]:
    """Return the causes that the heaviest launch shows in its grid, registers and occupancy.

    Args:
        profile: counts of one call.
        facts: facts of the problem, at both sizes.
        device: device whose multiprocessors are to be filled.
        line: function that returns the source line with the greatest cost.
    """
    heaviest = max(profile.launches, key=lambda one: one.counters.warp_instructions)
    issued = line(lambda item: item.warp_instructions)
    found = (
        _too_few_ctas(profile, heaviest, facts, device, issued),
        _tail(profile, heaviest, facts, device),
        _spills(heaviest, issued),
        serialised_wgmma(profile),
        _occupancy(heaviest),
    )
    return [one for one in found if one is not None]


def _too_few_ctas(
    profile: Profile, launch: LaunchProfile, facts: ProblemFacts, device: Device, line: int
) -> Cause | None:
    ctas = math.prod(launch.grid)
    if not device.sm_count:
        return None
    likely = ctas_at_full_size(launch, profile, facts)
    # At best one CTA a multiprocessor.
    idle = 1 - likely / device.sm_count
    if idle < _FEW:
        return None
    readings = [
        CounterReading(name="CTAs", value=count(ctas)),
        CounterReading(name="multiprocessors", value=count(device.sm_count)),
    ]
    if likely != ctas:
        readings.insert(1, CounterReading(name="CTAs at full size, in proportion", value=count(likely)))
    scaled = is_scaled(profile, facts)
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


def _tail(profile: Profile, launch: LaunchProfile, facts: ProblemFacts, device: Device) -> Cause | None:
    """Detect a last wave that leaves multiprocessors idle."""
    held = launch_occupancy(launch)
    scaled = is_scaled(profile, facts)
    if held is None or not held.active_ctas or not device.sm_count or scaled:
        return None
    ctas = math.prod(launch.grid)
    waves = ctas / (held.active_ctas * device.sm_count)
    # A grid within one wave is the business of `_too_few_ctas`.
    if not 1 < waves <= _SHORT_WAVES:
        return None
    measured = idle_share(launch)
    # Share of CTA slots without work over all waves.
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
            CounterReading(name="CTAs", value=count(ctas)),
            CounterReading(name="CTAs held at once", value=count(held.active_ctas * device.sm_count)),
            CounterReading(name="idle over all waves", value=share(idle)),
        ),
        fraction=idle,
        whole_launch=True,
        refuted_by="a grid of a whole number of waves, or a persistent one, takes as long.",
    )


def _spills(launch: LaunchProfile, line: int) -> Cause | None:
    """Detect spills from the compiled code, with their share of the warp instructions."""
    given = launch.resources
    if given is None or not (given.spill_store_bytes or given.spill_load_bytes):
        return None
    # Bytes a thread, in words of 4 bytes.
    words = (given.spill_store_bytes + given.spill_load_bytes) / 4
    threads = math.prod(launch.block) * (launch.ctas_run or math.prod(launch.grid))
    moved = spilled_by_line(launch)
    where = "" if moved else " The code says no line for them: the one named issues most."
    # One warp instruction moves one 4-byte word for each of 32 threads.
    spilling = words * threads / WARP_THREADS
    return Cause(
        name="spills",
        statement=f"The compiler had too few registers: at {given.registers} a thread it moves values to "
        f"local memory and back.{where}",
        readings=(
            CounterReading(name="registers", value=count(given.registers)),
            CounterReading(name="spill stores", value=f"{count(given.spill_store_bytes)} B a thread"),
            CounterReading(name="spill loads", value=f"{count(given.spill_load_bytes)} B a thread"),
        ),
        fraction=spilling / (spilling + launch.counters.warp_instructions),
        whole_launch=True,
        refuted_by="a build without spills (more registers a thread, fewer values alive) takes as long.",
        line=max(moved, key=lambda number: moved[number], default=line),
    )


def serialised_wgmma(profile: Profile) -> Cause | None:
    """Detect ``wgmma`` that ptxas serialised: each has WARPGROUP.ARRIVE and WARPGROUP.DEPBAR of its own."""
    for launch in profile.launches:
        counts = {} if launch.code is None else launch.code.instructions
        products, waits = sum(counts.get(name, 0) for name in _WGMMA), counts.get("WARPGROUP", 0)
        if products < _FEW_WGMMA or waits < 2 * products:
            continue
        return Cause(
            name="serialised-wgmma",
            statement=f"In `{function_name(launch.kernel)}` the compiler made each wgmma wait for the one "
            "before it (ptxas C7514): the kernel reads sums behind a branch or in a later turn of the loop, "
            "so ptxas does not see that they are done.",
            readings=(
                CounterReading(name="wgmma in the code", value=count(products)),
                CounterReading(name="WARPGROUP instructions (waits and fences)", value=count(waits)),
            ),
            fraction=_SERIALISED,
            whole_launch=True,
            refuted_by="a build with fewer waits than wgmma takes as long.",
        )
    return None


def _occupancy(launch: LaunchProfile) -> Cause | None:
    held = launch_occupancy(launch)
    # Few warps suffice if they are 16 or a quarter of what fits.
    if held is None or held.fraction >= _LOW_OCCUPANCY or held.active_warps >= _FULL_WARPS:
        return None
    limiter, achieved = ", ".join(held.limiters), launch.metric(ACHIEVED_OCCUPANCY)
    lift = f" One more CTA needs {held.lift}." if held.lift else ""
    return Cause(
        name="occupancy",
        statement=f"A multiprocessor holds {held.active_warps} of {held.max_warps} warps, limited by "
        f"{limiter}: few to choose from while loads are on their way.{lift}",
        readings=(
            CounterReading(name="occupancy", value=share(held.fraction)),
            *(
                [CounterReading(name=ACHIEVED_OCCUPANCY, value=f"{achieved:.1f} %")]
                if achieved is not None
                else []
            ),
            *(
                CounterReading(name=f"CTAs by {one.cause}", value=f"{one.ctas} ({one.used})")
                for one in held.limits[:2]
            ),
        ),
        fraction=1 - held.fraction,
        refuted_by="the time stays with more warps: each thread already has enough loads in flight.",
    )
