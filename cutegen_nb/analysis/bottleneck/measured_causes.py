"""Causes that only hardware measurements show: warp stalls, spill traffic, narrow accesses.

Also maps the project's counter names to those of Nsight Compute.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.bottleneck.profile_reading import ProfileReading
from cutegen_nb.analysis.bottleneck.unit_utilisation import BUSY
from cutegen_nb.analysis.figures.quantity import count, share
from cutegen_nb.analysis.hardware.occupancy import WARP_THREADS
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import SECTOR_BYTES, LaunchProfile

_WAITING = 0.35
"""Share of a warp's time waiting for loads from which memory latency is reported."""
_TURNS = 4
"""Loads per warp from which its waiting counts as repeated rather than single."""
_LOADS, _QUEUE = "long_scoreboard", "lg_throttle"
"""Stall reasons: waiting for global or local memory, and for the queue of the load and store unit."""
_QUEUED = 0.25
"""Share of a warp's time in the load and store queue from which narrow accesses are reported."""
_SCATTERED = 1.2
"""Ratio of sectors to ideal sectors above which accesses are scattered, and their width is not the cause."""
_WIDE_BYTES = 16
"""Widest access of one thread: 128 bits."""
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
"""Counter names of this project to the metrics of Nsight Compute that give them."""


def measured_causes(seen: ProfileReading) -> list[Cause]:
    """Return the causes that stalls and local memory traffic show in a profile from Nsight Compute."""
    found = (_spilled(seen), _waiting(seen), _narrow_accesses(seen))
    return [one for one in found if one is not None]


def with_nsight_names(cause: Cause) -> Cause:
    """Return a cause with each reading named as Nsight Compute names it."""
    return replace(cause, readings=tuple(replace(one, name=_renamed(one.name)) for one in cause.readings))


def _renamed(name: str) -> str:
    if name in _ITS_NAME:
        return _ITS_NAME[name]
    parts = name.split(" ÷ ")
    return " ÷ ".join(_ITS_NAME.get(one, one) for one in parts) if len(parts) > 1 else name


def _spilled(seen: ProfileReading) -> Cause | None:
    """Detect traffic to local memory, which holds values that the compiler had no registers for."""
    launch = seen.longest
    counters = launch.counters
    local = (counters.local_load_bytes + counters.local_store_bytes) / SECTOR_BYTES
    if not local:
        return None
    requests = launch.metric(names.SPILL_REQUESTS)
    registers = launch.metric(names.REGISTERS) or 0
    readings = [
        CounterReading(name=names.LOCAL_LOADS, value=count(counters.local_load_bytes / SECTOR_BYTES)),
        CounterReading(name=names.LOCAL_STORES, value=count(counters.local_store_bytes / SECTOR_BYTES)),
        CounterReading(name=names.REGISTERS, value=count(registers)),
    ]
    if requests is not None:
        readings.insert(0, CounterReading(name=names.SPILL_REQUESTS, value=count(requests)))
    # Local memory goes through the same L1 as global memory.
    every = local + counters.gmem_sectors
    return Cause(
        name="spills",
        statement=f"{share(local / every)} of the sectors that the L1 serves are of local memory: at "
        f"{registers:.0f} registers a thread the compiler moves values there and back.",
        readings=tuple(readings),
        fraction=local / every,
        whole_launch=True,
        refuted_by="a build without spills (more registers a thread, fewer values alive) takes as long.",
        line=seen.hottest(lambda item: item.local_load_bytes + item.local_store_bytes),
    )


def _waiting(seen: ProfileReading) -> Cause | None:
    """Detect warps that wait for their loads while no unit is busy."""
    launch, waits, busiest = seen.longest, seen.stalls, seen.busiest
    whole = sum(waits.values())
    if not whole or busiest is None or busiest.fraction >= BUSY:
        return None
    # Stalls are warps per issue by reason; their shares are shares of a warp's time.
    lost = waits.get(_LOADS, 0.0) / whole
    if lost < _WAITING:
        return None
    readings = (
        CounterReading(
            name=names.STALL.format(_LOADS), value=f"{waits[_LOADS]:.3g} of {whole:.3g} warps an issue"
        ),
        CounterReading(name=busiest.metric, value=share(busiest.fraction)),
        CounterReading(
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
                CounterReading(
                    name=names.STALL.format("barrier"), value=f"{waits['barrier']:.3g} warps an issue"
                ),
                CounterReading(name="loads a warp", value=f"{turns:.3g}"),
            ),
            fraction=lost,
            whole_launch=True,
            refuted_by="asking for the next tile before computing on this one takes as long.",
            line=seen.hottest(lambda item: item.awaited_samples),
        )
    return Cause(
        name="memory-latency",
        statement=f"Warps spend {share(lost)} of their time waiting for loads, and no unit is above "
        f"{share(busiest.fraction)} of its peak: too few bytes are on their way at once.",
        readings=readings,
        fraction=lost,
        unit=busiest.unit,
        refuted_by="more or wider loads in flight a thread, or more warps, take as long.",
        line=seen.hottest(lambda item: item.awaited_samples),
    )


def _narrow_accesses(seen: ProfileReading) -> Cause | None:
    """Detect warps that wait for the load and store queue because of many narrow accesses."""
    counters, waits, busiest = seen.longest.counters, seen.stalls, seen.busiest
    whole, queued = sum(waits.values()), waits.get(_QUEUE, 0.0)
    # Bytes a thread and request: a request is one warp's access.
    asked = counters.gmem_bytes / counters.gmem_requests / WARP_THREADS if counters.gmem_requests else 0.0
    scattered = counters.gmem_sectors > _SCATTERED * counters.gmem_ideal_sectors
    if not whole or busiest is None or queued / whole < _QUEUED or scattered or not 0 < asked < _WIDE_BYTES:
        return None
    return Cause(
        name="narrow-accesses",
        statement=f"Warps spend {share(queued / whole)} of their time in the queue of the load and store "
        f"unit, and each access moves {asked:.3g} bytes a thread of {_WIDE_BYTES} that it could.",
        readings=(
            CounterReading(
                name=names.STALL.format(_QUEUE), value=f"{queued:.3g} of {whole:.3g} warps an issue"
            ),
            CounterReading(name="bytes a thread and global access", value=f"{asked:.3g}"),
            CounterReading(name=busiest.metric, value=share(busiest.fraction)),
        ),
        # Discounted by the busiest unit's utilisation, since work on that unit would remain.
        fraction=queued / whole * (1 - busiest.fraction),
        unit=busiest.unit,
        refuted_by="accesses of 128 bits leave the stalls as they are.",
        line=seen.hottest(lambda item: item.stall_samples.get(_QUEUE, 0)),
    )


def _loads_a_warp(launch: LaunchProfile) -> float:
    """Return the requests of each warp for loads and asynchronous copies from global memory."""
    # Warps of the grid: a partial warp counts as one.
    warps = math.prod(launch.grid) * -(-math.prod(launch.block) // WARP_THREADS)
    kinds = ("load", "async-copy")
    accesses = launch.counters.gmem_accesses
    asked = sum(accesses[kind].requests for kind in kinds if kind in accesses)
    return asked / warps if warps else 0.0


def idle_share(launch: LaunchProfile) -> float | None:
    """Return the share of time without a CTA, averaged over multiprocessors; None where not measured."""
    busy, elapsed = launch.metric(names.BUSY_CYCLES), launch.metric(names.ELAPSED_CYCLES)
    return 1 - busy / elapsed if busy is not None and elapsed else None
