"""Utilisation of each unit as measured by Nsight Compute, as a share of the unit's own peak.

A share refers to the launch's time under the profiler, so it needs no peak from a data sheet. Launches are
weighted by their time.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import SECTOR_BYTES, LaunchProfile, Profile, ProfileSource

BUSY = 0.6
"""Utilisation from which a unit is the limit. Below it no unit is, and warps wait. The rules of Nsight
Compute (SpeedOfLight) use the same threshold."""
DRAM, L2, L1, SHARED, ISSUE = "DRAM", "L2", "L1", "shared memory", "instruction issue"
"""Names of units."""
MEMORIES = frozenset({DRAM, L2, L1, SHARED})
"""Units that make a kernel memory-bound."""
_PASSED_ON = 0.8
"""Ratio of DRAM bytes to L2 bytes from which the L2 only passes on what DRAM moves."""
_MOSTLY = 0.7
"""Share of the L1 data stage's wavefronts from which the stage mostly serves shared memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Utilisation of one unit."""

    unit: str
    """Name of the unit: ``DRAM``, ``L2``, ``L1``, ``shared memory``, ``instruction issue`` or a pipe."""
    fraction: float
    """Share of the unit's peak, from 0 to 1."""
    metric: str
    """Metric of Nsight Compute that was read."""
    work: float = 0.0
    """Bytes, sectors, wavefronts, instructions or FLOPs that the unit processed; 0 where not counted."""


def is_measured(profile: Profile) -> bool:
    """Return whether the profile has utilisation: it comes from Nsight Compute with a throughput section."""
    return profile.source is ProfileSource.NSIGHT and any(
        one.metric(names.DRAM_SHARE) is not None or one.metric(names.COMPUTE_SHARE) is not None
        for one in profile.launches
    )


def loads(profile: Profile) -> tuple[Load, ...]:
    """Return every measured unit, the busiest first.

    The L2 is left out where it only passes on DRAM's traffic, and the L1 where its data stage mostly serves
    shared memory.
    """
    counters = profile.counters
    dram = sum(_sum(profile, name) for name in (names.DRAM_READ, names.DRAM_WRITE))
    passed = _sum(profile, names.L2_SECTORS) * SECTOR_BYTES
    found = [
        _load(profile, DRAM, names.DRAM_SHARE, dram),
        _load(profile, L2, names.L2_SHARE, passed / SECTOR_BYTES),
        _load(profile, L1, names.L1_SHARE, counters.gmem_sectors),
        _shared(profile),
        _load(profile, ISSUE, names.ISSUE_SHARE, counters.warp_instructions),
        *(
            _load(profile, _pipe(profile, unit), metric, _flops(profile, unit))
            for unit, metric in names.PIPE_SHARES.items()
        ),
    ]
    kept = {one.unit: one for one in found if one is not None and one.fraction > 0}
    # DRAM is the limit and moves nearly all of the L2's bytes, so the L2 is not a limit of its own.
    if DRAM in kept and kept[DRAM].fraction >= BUSY and dram >= _PASSED_ON * passed:
        kept.pop(L2, None)
    if SHARED in kept and L1 in kept and kept[SHARED].fraction >= _MOSTLY * kept[L1].fraction:
        kept.pop(L1)
    return tuple(sorted(kept.values(), key=lambda one: -one.fraction))


def average(profile: Profile, name: str) -> float | None:
    """Return a metric's mean over all launches, weighted by their time; None where no launch has it."""
    # Weights in seconds; a launch without a time gets 1.
    found = [(one.metric(name), one.duration_s or 1.0) for one in profile.launches]
    weights = sum(weight for value, weight in found if value is not None)
    return sum(value * weight for value, weight in found if value is not None) / weights if weights else None


def heaviest(profile: Profile) -> LaunchProfile:
    """Return the launch that took longest."""
    return max(profile.launches, key=lambda one: one.duration_s or 0.0)


def stalls(profile: Profile) -> dict[str, float]:
    """Return the waiting warps per issued instruction of the longest launch, by reason, the most first."""
    launch = heaviest(profile)
    before, after = names.STALL.split("{}")
    found = {
        name.removeprefix(before).removesuffix(after): one.value
        for name, one in launch.metrics.items()
        if name.startswith(before) and name.endswith(after) and one.value > 0
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _load(profile: Profile, unit: str, metric: str, work: float) -> Load | None:
    value = average(profile, metric)
    # The metrics are per cent.
    return None if value is None else Load(unit=unit, fraction=value / 100, metric=metric, work=work)


def _shared(profile: Profile) -> Load | None:
    """Return the utilisation of shared memory from L1's data stage.

    The stage's own share is used where shared memory's wavefronts (one a clock and multiprocessor) mostly
    fill it; else the wavefronts ÷ clocks.
    """
    launch = heaviest(profile)
    clocks = launch.metric(names.ELAPSED_CYCLES) or launch.metric(names.GPC_CYCLES)
    count = launch.metric(names.MULTIPROCESSORS)
    stage, wavefronts = average(profile, names.SHARED_SHARE), launch.counters.smem_wavefronts
    if not clocks or not count or not wavefronts or not stage:
        return None
    # Utilisation: a multiprocessor serves at most one wavefront a clock.
    own = wavefronts / (clocks * count)
    return Load(
        unit=SHARED,
        fraction=stage / 100 if own >= _MOSTLY * stage / 100 else own,
        metric=names.SHARED_SHARE,
        work=profile.counters.smem_wavefronts,
    )


def _pipe(profile: Profile, unit: str) -> str:
    """Return the unit's name; tensor cores are named after the type that they computed most."""
    if not unit.startswith("tensor"):
        return unit
    flops = {pipe: amount for pipe, amount in profile.counters.flops.items() if pipe.startswith("tensor")}
    return f"{max(flops, key=lambda pipe: flops[pipe])} pipe" if flops else unit


def _flops(profile: Profile, unit: str) -> float:
    return float(profile.counters.flops.get(_pipe(profile, unit).removesuffix(" pipe"), 0))


def _sum(profile: Profile, name: str) -> float:
    return sum(value for one in profile.launches if (value := one.metric(name)) is not None)
