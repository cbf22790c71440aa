"""Detection of likely causes why a kernel is not at its floor, from times and counters."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.bottleneck.launch_causes import launch_causes
from cutegen_nb.analysis.bottleneck.measured_causes import measured_causes, with_nsight_names
from cutegen_nb.analysis.bottleneck.profile_reading import ProfileReading
from cutegen_nb.analysis.bottleneck.unit_utilisation import BUSY, L1, L2, average
from cutegen_nb.analysis.bottleneck.wait_causes import unpipelined
from cutegen_nb.analysis.figures.quantity import count, share, times
from cutegen_nb.analysis.hardware.hierarchy import distinct_sectors
from cutegen_nb.analysis.hardware.roofline import Roofline
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight.metrics import ISSUE_SHARE
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource

_LAUNCH_MS = 0.003
"""Time in ms between two kernels of a stream that does not wait for the host, 2 to 3 µs. A kernel with a
lower floor is launch-bound. A host that queues each call takes longer (`benchmarks/host_time.py`)."""
_LONG = 10
"""Multiple of the launch cost from which a measured time has another cause than the launch."""
_WASTE = 1.05
"""Ratio of counted to needed work below which nothing is reported: tails and headers of a kernel come to a
few per cent."""
_SHOWN = 0.01
"""Smallest share of the largest demand for which a cause is reported; less is not worth a round."""
_LANES = 32
"""Lanes of a warp."""
_SELDOM = 40.0
"""Per cent of issue slots in use below which instructions are no limit."""
_LEADING_FRACTION = 0.1
"""Wasted fraction from which a cause of the whole launch precedes causes of single units."""


@dataclass(frozen=True, slots=True)
class DemandScale:
    """Conversion of counted work to demands (seconds a unit needs), and to shares of the largest demand."""

    rates: dict[str, float]
    """Peak rate of each unit, in work a second."""
    demands: dict[str, float]
    """Work ÷ rate of each unit."""

    @property
    def largest(self) -> float:
        """Demand of the busiest unit."""
        return max(self.demands.values(), default=0.0)

    def order(self, cause: Cause) -> tuple[float, float]:
        """Return the sort key of a cause.

        Grave causes of the whole launch come first, then causes on the busiest unit, then by wasted fraction.
        """
        if cause.whole_launch and cause.fraction >= _LEADING_FRACTION:
            return -math.inf, -cause.fraction
        return -self.demands.get(cause.unit, 0.0), -cause.fraction

    def fraction(self, unit: str, amount: float) -> float:
        """Return an amount of work on a unit as a share of the largest demand; 0 for an unknown unit."""
        rate = self.rates.get(unit, 0.0)
        # amount ÷ rate is a time; divided by the largest demand it is a share.
        return max(0.0, amount) / rate / self.largest if rate and self.largest else 0.0


def is_launch_bound(roof: Roofline, took_ms: float | None = None) -> bool:
    """Return whether the problem's floor is below the cost of a kernel launch.

    A kernel whose measured time `took_ms` is far above that cost has another cause first, so it does not
    count.
    """
    return 0 < roof.floor_ms < _LAUNCH_MS and (took_ms is None or took_ms < _LONG * _LAUNCH_MS)


def time_causes(roof: Roofline, took_ms: float | None = None) -> list[Cause]:
    """Return the causes that need no counters: a floor below the launch cost, a time above the floor."""
    causes = []
    if is_launch_bound(roof, took_ms):
        floor = CounterReading(name="floor", value=f"{roof.floor_ms * 1e3:.2g} µs")
        causes.append(
            Cause(
                name="launch-bound",
                statement="The whole problem takes the device less than launching a kernel does.",
                readings=(floor,),
                fraction=1.0,
                refuted_by="the time follows the problem's size.",
            )
        )
    if roof.sol_fraction is not None and roof.sol_fraction < 1 / _WASTE:
        causes.append(
            Cause(
                name="below-roof",
                statement=f"The kernel reaches {share(roof.sol_fraction)} of the speed of light.",
                readings=(
                    CounterReading(name="floor", value=f"{roof.floor_ms:.4g} ms"),
                    CounterReading(name="sol_fraction", value=share(roof.sol_fraction)),
                ),
                fraction=1 - roof.sol_fraction,
                refuted_by="the floor counts bytes or FLOPs that the problem does not need.",
            )
        )
    return causes


def work_causes(seen: ProfileReading, facts: ProblemFacts, device: Device, scale: DemandScale) -> list[Cause]:
    """Return the causes that counters show, the most important first.

    Causes of the whole launch come first, then those on the busiest unit, then by wasted fraction.
    """
    profile = seen.profile
    is_of_hardware = profile.source is ProfileSource.NSIGHT
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    counted = [
        _uncoalesced(seen, scale),
        _repeated(seen, run, scale),
        _extra_traffic(profile, run, scale),
        _bank_conflicts(seen, scale),
        _shared_reuse(seen, scale),
        _divergence(seen, scale),
        _instructions(seen, run, scale),
        unpipelined(profile, device, scale.largest, seen.hottest),
        *launch_causes(profile, facts, device, seen.hottest),
    ]
    measured = measured_causes(seen) if is_of_hardware else []
    names = {cause.name for cause in measured}
    found = [*(cause for cause in counted if cause and cause.name not in names), *measured]
    found = [cause for cause in found if cause.fraction >= _SHOWN]
    if is_of_hardware:
        found = [with_nsight_names(cause) for cause in found]
    return sorted(found, key=scale.order)


def _requested_of(seen: ProfileReading) -> str:
    """Return the unit that serves a warp's requests.

    The L1 on hardware, the L2 on the simulator, without an L1.
    """
    return L1 if seen.is_measured else L2


def _uncoalesced(seen: ProfileReading, scale: DemandScale) -> Cause | None:
    """Compare sectors touched with the fewest sectors that hold the same bytes."""
    moved, ideal = seen.counters.gmem_sectors, seen.counters.gmem_ideal_sectors
    if not ideal or moved < _WASTE * ideal:
        return None
    return Cause(
        name="uncoalesced",
        statement=f"Warps touch {times(moved / ideal)} the sectors their bytes need: neighbouring threads do "
        "not read or write neighbouring addresses.",
        readings=(
            CounterReading(name="gmem_sectors", value=count(moved)),
            CounterReading(name="gmem_ideal_sectors", value=count(ideal)),
            CounterReading(name="gmem_sectors ÷ gmem_ideal_sectors", value=times(moved / ideal)),
        ),
        unit=_requested_of(seen),
        fraction=scale.fraction(_requested_of(seen), moved - ideal) or (moved - ideal) / moved,
        refuted_by="the ratio falls to 1 and neither work nor time does.",
        line=seen.hottest(lambda item: item.gmem_sectors - item.gmem_ideal_sectors),
    )


def _repeated(seen: ProfileReading, run: Workload, scale: DemandScale) -> Cause | None:
    """Compare perfectly coalesced requests with the problem's least bytes."""
    counters = seen.counters
    # Ideal sectors leave coalescing out, so that only repetition shows.
    asked, least = counters.gmem_ideal_sectors * SECTOR_BYTES, run.least_bytes
    if not least or asked < _WASTE * least:
        return None
    return Cause(
        name="repeated-requests",
        statement=f"Even perfectly coalesced, the requests add up to {times(asked / least)} the least bytes: "
        "the same data is asked for again, or an intermediate result goes through global memory.",
        readings=(
            CounterReading(name="gmem_ideal_sectors", value=count(counters.gmem_ideal_sectors)),
            CounterReading(name="least_bytes ÷ 32", value=count(least / SECTOR_BYTES)),
            CounterReading(name="requested ÷ least", value=times(asked / least)),
        ),
        unit=_requested_of(seen),
        fraction=scale.fraction(_requested_of(seen), counters.gmem_ideal_sectors - least / SECTOR_BYTES),
        refuted_by="keeping the data in registers or shared memory leaves the requests as they are.",
        line=seen.hottest(lambda item: item.gmem_load_sectors),
    )


def _extra_traffic(profile: Profile, run: Workload, scale: DemandScale) -> Cause | None:
    """Compare DRAM traffic with the problem's least bytes."""
    touched, least = distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes
    # Without a record `distinct_sectors` falls back to all requests, which would show reuse as traffic.
    recorded = all(item.gmem_distinct_sectors for item in profile.launches)
    if not recorded or not least or touched < _WASTE * least:
        return None
    over = times(touched / least)
    said = (
        f"{over} the least bytes crossed DRAM: the same data came again after the L2 had given it up, or "
        "results pass through memory."
        if profile.source is ProfileSource.NSIGHT
        else f"Even with a cache that never evicts {over} the least bytes cross DRAM: several launches read "
        "the same tensors or pass results through memory."
    )
    return Cause(
        name="extra-traffic",
        statement=said,
        readings=(
            CounterReading(name="gmem_distinct_sectors, all launches", value=count(touched / SECTOR_BYTES)),
            CounterReading(name="least_bytes ÷ 32", value=count(least / SECTOR_BYTES)),
            CounterReading(name="launches", value=str(len(profile.launches))),
        ),
        unit="DRAM",
        fraction=scale.fraction("DRAM", touched - least),
        refuted_by="one fused launch touches as many sectors.",
    )


def _bank_conflicts(seen: ProfileReading, scale: DemandScale) -> Cause | None:
    """Compare wavefronts with the fewest that the same words need."""
    taken, ideal = seen.counters.smem_wavefronts, seen.counters.smem_ideal_wavefronts
    if not ideal or taken < _WASTE * ideal:
        return None
    return Cause(
        name="bank-conflicts",
        statement=f"Shared memory takes {times(taken / ideal)} the passes its bytes need: threads of a warp "
        "meet in the same bank.",
        readings=(
            CounterReading(name="smem_wavefronts", value=count(taken)),
            CounterReading(name="smem_ideal_wavefronts", value=count(ideal)),
            CounterReading(name="smem_wavefronts ÷ smem_ideal_wavefronts", value=times(taken / ideal)),
        ),
        unit="shared memory",
        fraction=scale.fraction("shared memory", taken - ideal),
        refuted_by="a padded or swizzled layout brings the ratio to 1 and nothing else changes.",
        line=seen.hottest(lambda item: item.smem_wavefronts - item.smem_ideal_wavefronts),
    )


def _shared_reuse(seen: ProfileReading, scale: DemandScale) -> Cause | None:
    """Detect shared memory as the busiest unit without bank conflicts.

    Too little arithmetic per byte read.
    """
    unit, ideal = "shared memory", seen.counters.smem_ideal_wavefronts
    asked = scale.fraction(unit, ideal)
    others = [scale.demands[name] for name in scale.demands if name != unit]
    # Demand of conflict-free wavefronts beyond the busiest other unit.
    beyond = asked - max(others, default=0.0) / scale.largest if scale.largest else 0.0
    flops = seen.counters.total_flops
    idle = seen.is_measured and scale.demands.get(unit, 0.0) < BUSY
    if beyond <= 0 or not flops or idle:
        return None
    return Cause(
        name="shared-reuse",
        statement="Even without a bank conflict shared memory is the busiest unit: each number read from it "
        "feeds too few operations before it is read again.",
        readings=(
            CounterReading(name="smem_ideal_wavefronts", value=count(ideal)),
            # A wavefront moves up to 32 words of 4 bytes.
            CounterReading(name="FLOP a byte of shared memory", value=f"{flops / (ideal * _LANES * 4):.3g}"),
        ),
        unit=unit,
        fraction=beyond,
        refuted_by="larger fragments a thread leave the wavefronts as they are.",
        line=seen.hottest(lambda item: item.smem_ideal_wavefronts),
    )


def _divergence(seen: ProfileReading, scale: DemandScale) -> Cause | None:
    """Detect lanes that are inactive while their warp issues."""
    counters = seen.counters
    full = _LANES * counters.warp_instructions
    if not full or counters.thread_instructions * _WASTE > full:
        return None
    active = counters.thread_instructions / full
    return Cause(
        name="divergence",
        statement=f"{share(active)} of the lanes are active on average: branches split warps, or CTAs and "
        "tails leave lanes idle.",
        readings=(
            CounterReading(name="thread_instructions ÷ (32 · warp_instructions)", value=share(active)),
            CounterReading(
                name="divergent_branches ÷ branches",
                value=f"{count(counters.divergent_branches)} ÷ {count(counters.branches)}",
            ),
        ),
        unit="instruction issue",
        # Issue slots that fewer, full warps would not need.
        fraction=scale.fraction("instruction issue", counters.warp_instructions * (1 - active)),
        refuted_by="no branch depends on the thread and the CTA is a multiple of 32 threads.",
        line=seen.hottest(lambda item: _LANES * item.warp_instructions - item.thread_instructions),
    )


def _instructions(seen: ProfileReading, run: Workload, scale: DemandScale) -> Cause | None:
    """Detect issue slots beyond those in which memory and arithmetic would be busy anyway.

    Idle lanes are left out, since divergence reports them.
    """
    counters = seen.counters
    active = counters.active_lane_fraction or 1.0
    # Scaled by active lanes: instructions that full warps would need for the same work.
    issue = scale.fraction("instruction issue", counters.warp_instructions * active)
    useful = max(
        scale.fraction("DRAM", run.least_bytes),
        *(scale.fraction(f"{pipe} pipe", amount) for pipe, amount in counters.flops.items()),
        0.0,
    )
    if issue <= _WASTE * useful or not counters.warp_instructions or _issues_seldom(seen):
        return None
    sectors = counters.gmem_sectors
    per_sector = counters.warp_instructions / sectors if sectors else 0.0
    return Cause(
        name="instruction-overhead",
        statement="More instructions are issued than the data and the arithmetic account for: indexing, "
        "predicates, narrow accesses or loop control.",
        readings=(
            CounterReading(name="warp_instructions", value=count(counters.warp_instructions)),
            CounterReading(name="warp_instructions ÷ gmem_sectors", value=f"{per_sector:.3g}"),
            CounterReading(name="issue ÷ useful demand", value=times(issue / useful) if useful else "all"),
        ),
        unit="instruction issue",
        fraction=issue - useful,
        refuted_by="wider accesses or unrolling cut the instructions and nothing else changes.",
        line=seen.hottest(lambda item: item.warp_instructions),
    )


def _issues_seldom(seen: ProfileReading) -> bool:
    """Return whether hardware measured spare issue slots, so that instructions are no limit."""
    return seen.is_measured and (average(seen.profile, ISSUE_SHARE) or 0.0) < _SELDOM
