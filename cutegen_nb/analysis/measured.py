"""How busy each unit was, as Nsight Compute measured it: shares of the units' own peaks.

A share is of the time that the launch took under the profiler, so that it needs no peak of ours. Launches
count by how long they took.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core import nsight_metrics as names
from cutegen_nb.core.profile import SECTOR_BYTES, LaunchProfile, Profile, ProfileSource

BUSY = 0.6
"""From this share of its peak on a unit is the limit; below it none is, and warps wait. The rules that come
with Nsight Compute draw the same line (SpeedOfLight)."""
DRAM, L2, L1, SHARED, ISSUE = "DRAM", "L2", "L1", "shared memory", "instruction issue"
MEMORIES = frozenset({DRAM, L2, L1, SHARED})
_PASSED_ON = 0.8
"""From this ratio of DRAM's bytes to the L2's on, the L2 only hands on what DRAM moves."""
_MOSTLY = 0.7
"""From this share of the wavefronts of L1's data stage on, shared memory is what the stage serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one unit did."""

    unit: str
    """``DRAM``, ``L2``, ``L1``, ``shared memory``, ``instruction issue`` or a pipe."""
    fraction: float
    """Of its peak, 0–1."""
    metric: str
    """The metric that says so."""
    work: float = 0.0
    """Bytes, sectors, wavefronts, instructions or FLOPs that it worked on; 0 where they were not counted."""


def is_measured(profile: Profile) -> bool:
    """Whether the profile says how busy units were: one of Nsight Compute with its throughput section."""
    return profile.source is ProfileSource.NSIGHT and any(
        one.metric(names.DRAM_SHARE) is not None or one.metric(names.COMPUTE_SHARE) is not None
        for one in profile.launches
    )


def loads(profile: Profile) -> tuple[Load, ...]:
    """Every unit whose share was measured, the busiest first; the L2 is left out where it only hands on."""
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
    if DRAM in kept and kept[DRAM].fraction >= BUSY and dram >= _PASSED_ON * passed:
        kept.pop(L2, None)
    if SHARED in kept and L1 in kept and kept[SHARED].fraction >= _MOSTLY * kept[L1].fraction:
        kept.pop(L1)
    return tuple(sorted(kept.values(), key=lambda one: -one.fraction))


def average(profile: Profile, name: str) -> float | None:
    """A metric over all launches, each by how long it took; None where no launch has it."""
    found = [(one.metric(name), one.duration_s or 1.0) for one in profile.launches]
    weights = sum(weight for value, weight in found if value is not None)
    return sum(value * weight for value, weight in found if value is not None) / weights if weights else None


def heaviest(profile: Profile) -> LaunchProfile:
    """The launch that took longest."""
    return max(profile.launches, key=lambda one: one.duration_s or 0.0)


def stalls(profile: Profile) -> dict[str, float]:
    """Warps that wait at each issue, by reason, the most first."""
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
    return None if value is None else Load(unit=unit, fraction=value / 100, metric=metric, work=work)


def _shared(profile: Profile) -> Load | None:
    """The data stage of L1 where shared memory's wavefronts, one a clock of each multiprocessor, fill it."""
    launch = heaviest(profile)
    clocks = launch.metric(names.ELAPSED_CYCLES) or launch.metric(names.GPC_CYCLES)
    count = launch.metric(names.MULTIPROCESSORS)
    stage, wavefronts = average(profile, names.SHARED_SHARE), launch.counters.smem_wavefronts
    if not clocks or not count or not wavefronts or not stage:
        return None
    own = wavefronts / (clocks * count)
    return Load(
        unit=SHARED,
        fraction=stage / 100 if own >= _MOSTLY * stage / 100 else own,
        metric=names.SHARED_SHARE,
        work=profile.counters.smem_wavefronts,
    )


def _pipe(profile: Profile, unit: str) -> str:
    """Tensor cores are one pipe; the type that they computed most in gives it its name."""
    if not unit.startswith("tensor"):
        return unit
    flops = {pipe: amount for pipe, amount in profile.counters.flops.items() if pipe.startswith("tensor")}
    return f"{max(flops, key=lambda pipe: flops[pipe])} pipe" if flops else unit


def _flops(profile: Profile, unit: str) -> float:
    return float(profile.counters.flops.get(_pipe(profile, unit).removesuffix(" pipe"), 0))


def _sum(profile: Profile, name: str) -> float:
    return sum(value for one in profile.launches if (value := one.metric(name)) is not None)
