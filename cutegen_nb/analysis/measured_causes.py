"""Causes that only hardware shows: why warps wait, what spills cost; and what our counts are called there."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.analysis.cause import Cause, Reading
from cutegen_nb.analysis.measured import BUSY, heaviest, loads, stalls
from cutegen_nb.analysis.occupancy import WARP_THREADS
from cutegen_nb.analysis.quantity import count, share
from cutegen_nb.core import nsight_metrics as names
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, LaunchProfile, Profile

_WAITING = 0.35
"""From this share of a warp's time on, waiting for memory is what it does."""
_TURNS = 4
"""Loads of one warp from which it waits again and again, and not once."""
_LOADS, _QUEUE = "long_scoreboard", "lg_throttle"
_QUEUED = 0.25
"""From this share of a warp's time on, the queue before the load and store unit is worth shortening."""
_SCATTERED = 1.2
_WIDE_BYTES = 16
_ITS_NAME = {
    "gmem_sectors": names.LINE_SECTORS,
    "gmem_ideal_sectors": names.LINE_SECTORS_IDEAL,
    "smem_wavefronts": names.LINE_WAVEFRONTS,
    "smem_ideal_wavefronts": names.LINE_WAVEFRONTS_IDEAL,
    "gmem_distinct_sectors, all launches": f"({names.DRAM_READ} + {names.DRAM_WRITE}) ÷ 32",
    "thread_instructions ÷ (32 · warp_instructions)": f"{names.THREAD_INSTRUCTIONS} ÷ 32",
    "divergent_branches ÷ branches": "smsp__sass_branch_targets_threads_divergent.sum ÷ "
    "smsp__inst_executed_op_branch.sum",
    "warp_instructions": "smsp__inst_executed.sum",
    "registers": names.REGISTERS,
}
"""Our names of figures → the metrics that give them in a profile of Nsight Compute."""

Line = Callable[[Callable[[Counters], int]], int]


def measured_causes(profile: Profile, line: Line) -> list[Cause]:
    """What the stalls, the caches and the local memory of the longest launch show.

    Args:
        profile: of Nsight Compute.
        line: the line of Python with the greatest cost.
    """
    launch = heaviest(profile)
    found = (_spilled(launch, line), _waiting(profile, launch, line), _crowded(profile, line))
    return [one for one in found if one is not None]


def in_its_words(cause: Cause) -> Cause:
    """A cause with each reading named as Nsight Compute names it."""
    return replace(cause, readings=tuple(replace(one, name=_renamed(one.name)) for one in cause.readings))


def _renamed(name: str) -> str:
    if name in _ITS_NAME:
        return _ITS_NAME[name]
    parts = name.split(" ÷ ")
    return " ÷ ".join(_ITS_NAME.get(one, one) for one in parts) if len(parts) > 1 else name


def _spilled(launch: LaunchProfile, line: Line) -> Cause | None:
    """Traffic to local memory: what the compiler moved there for want of registers."""
    counters = launch.counters
    local = (counters.local_load_bytes + counters.local_store_bytes) / SECTOR_BYTES
    if not local:
        return None
    requests = launch.metric(names.SPILL_REQUESTS)
    registers = launch.metric(names.REGISTERS) or 0
    readings = [
        Reading(name=names.LOCAL_LOADS, value=count(counters.local_load_bytes / SECTOR_BYTES)),
        Reading(name=names.LOCAL_STORES, value=count(counters.local_store_bytes / SECTOR_BYTES)),
        Reading(name=names.REGISTERS, value=count(registers)),
    ]
    if requests is not None:
        readings.insert(0, Reading(name=names.SPILL_REQUESTS, value=count(requests)))
    every = local + counters.gmem_sectors
    return Cause(
        name="spills",
        statement=f"{share(local / every)} of the sectors that the L1 serves are of local memory: at "
        f"{registers:.0f} registers a thread the compiler moves values there and back.",
        readings=tuple(readings),
        fraction=local / every,
        whole_launch=True,
        refuted_by="a build without spills (more registers a thread, fewer values alive) takes as long.",
        line=line(lambda item: item.local_load_bytes + item.local_store_bytes),
    )


def _waiting(profile: Profile, launch: LaunchProfile, line: Line) -> Cause | None:
    """Warps that wait for their loads while no unit is busy."""
    waits = stalls(profile)
    whole = sum(waits.values())
    busiest = next(iter(loads(profile)), None)
    if not whole or busiest is None or busiest.fraction >= BUSY:
        return None
    lost = waits.get(_LOADS, 0.0) / whole
    if lost < _WAITING:
        return None
    readings = (
        Reading(name=names.STALL.format(_LOADS), value=f"{waits[_LOADS]:.3g} of {whole:.3g} warps an issue"),
        Reading(name=busiest.metric, value=share(busiest.fraction)),
        Reading(
            name=names.ACHIEVED_OCCUPANCY, value=share((launch.metric(names.ACHIEVED_OCCUPANCY) or 0) / 100)
        ),
    )
    turns = _loads_a_warp(launch)
    if waits.get("barrier") and turns >= _TURNS:
        return Cause(
            name="unpipelined-loads",
            statement=f"Warps spend {share(lost)} of their time waiting for loads and the barriers behind "
            f"them, {turns:.0f} times each, while no unit is above {share(busiest.fraction)} of its peak: "
            "the next tile is asked for when this one is done with.",
            readings=(
                *readings,
                Reading(name=names.STALL.format("barrier"), value=f"{waits['barrier']:.3g} warps an issue"),
                Reading(name="loads a warp", value=f"{turns:.3g}"),
            ),
            fraction=lost,
            whole_launch=True,
            refuted_by="asking for the next tile before computing on this one takes as long.",
            line=line(lambda item: item.awaited_samples),
        )
    return Cause(
        name="memory-latency",
        statement=f"Warps spend {share(lost)} of their time waiting for loads, and no unit is above "
        f"{share(busiest.fraction)} of its peak: too few bytes are on their way at once.",
        readings=readings,
        fraction=lost,
        unit=busiest.unit,
        refuted_by="more or wider loads in flight a thread, or more warps, take as long.",
        line=line(lambda item: item.awaited_samples),
    )


def _crowded(profile: Profile, line: Line) -> Cause | None:
    """Warps that wait for a place in the queue of the load and store unit: too many narrow accesses."""
    launch, waits = heaviest(profile), stalls(profile)
    counters, whole = launch.counters, sum(waits.values())
    queued, busiest = waits.get(_QUEUE, 0.0), next(iter(loads(profile)), None)
    asked = counters.gmem_bytes / counters.gmem_requests / WARP_THREADS if counters.gmem_requests else 0.0
    scattered = counters.gmem_sectors > _SCATTERED * counters.gmem_ideal_sectors
    if not whole or busiest is None or queued / whole < _QUEUED or scattered or not 0 < asked < _WIDE_BYTES:
        return None
    return Cause(
        name="narrow-accesses",
        statement=f"Warps spend {share(queued / whole)} of their time in the queue of the load and store "
        f"unit, and each access moves {asked:.3g} bytes a thread of {_WIDE_BYTES} that it could.",
        readings=(
            Reading(name=names.STALL.format(_QUEUE), value=f"{queued:.3g} of {whole:.3g} warps an issue"),
            Reading(name="bytes a thread and global access", value=f"{asked:.3g}"),
            Reading(name=busiest.metric, value=share(busiest.fraction)),
        ),
        fraction=queued / whole * (1 - busiest.fraction),
        unit=busiest.unit,
        refuted_by="accesses of 128 bits leave the stalls as they are.",
        line=line(lambda item: item.stall_samples.get(_QUEUE, 0)),
    )


def _loads_a_warp(launch: LaunchProfile) -> float:
    """Loads and asynchronous copies from global memory that each warp asks for."""
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // WARP_THREADS)
    kinds = ("load", "async-copy")
    accesses = launch.counters.gmem_accesses
    asked = sum(accesses[kind].requests for kind in kinds if kind in accesses)
    return asked / warps if warps else 0.0


def idle_share(launch: LaunchProfile) -> float | None:
    """Share of the time in which a multiprocessor had no CTA, over all of them; None where not measured."""
    busy, elapsed = launch.metric(names.BUSY_CYCLES), launch.metric(names.ELAPSED_CYCLES)
    return 1 - busy / elapsed if busy is not None and elapsed else None
