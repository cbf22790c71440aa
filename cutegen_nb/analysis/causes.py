"""Likely reasons why a kernel is not at its floor, each with the counters that say so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.cause import Cause, Reading
from cutegen_nb.analysis.hierarchy import distinct_sectors
from cutegen_nb.analysis.launch_causes import launch_causes
from cutegen_nb.analysis.lines import by_line
from cutegen_nb.analysis.measured import BUSY, average, is_measured
from cutegen_nb.analysis.measured_causes import in_its_words, measured_causes
from cutegen_nb.analysis.quantity import count, share, times
from cutegen_nb.analysis.roofline import Roofline
from cutegen_nb.analysis.wait_causes import unpipelined
from cutegen_nb.core.device import Device
from cutegen_nb.core.nsight_metrics import ISSUE_SHARE
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, Profile, ProfileSource

_LAUNCH_MS = 0.003
"""A launch of a compiled function with DLPack arguments costs 2–3 µs: below it the launch is what counts."""
_LONG = 10
_WASTE = 1.05
"""Ratios below this are not a cause: tails and headers of a kernel come to a few per cent."""
_SHOWN = 0.01
"""A cause that costs less than this share of the largest demand is not worth a round."""
_LANES = 32
_SELDOM = 40.0
"""Per cent of the issue slots below which instructions are no limit."""
_GRAVE = 0.1
"""A cause of the whole launch that wastes this much leads whatever the units are asked for."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns counts into demands, and demands into shares of the largest."""

    rates: dict[str, float]
    """Peak a second of each unit."""
    demands: dict[str, float]
    """Work ÷ rate of each unit."""

    @property
    def largest(self) -> float:
        """The demand of the busiest unit."""
        return max(self.demands.values(), default=0.0)

    def order(self, cause: Cause) -> tuple[float, float]:
        """Sort key: what slows every unit, then what burdens the busiest: nothing else lifts the limit."""
        if cause.whole_launch and cause.fraction >= _GRAVE:
            return -math.inf, -cause.fraction
        return -self.demands.get(cause.unit, 0.0), -cause.fraction

    def fraction(self, unit: str, amount: float) -> float:
        """An amount of work on a unit as a share of the largest demand; 0 for an unknown unit."""
        rate = self.rates.get(unit, 0.0)
        return max(0.0, amount) / rate / self.largest if rate and self.largest else 0.0


def is_launch_bound(roof: Roofline, took_ms: float | None = None) -> bool:
    """Whether the whole problem takes the device less than launching a kernel does.

    A kernel that took much longer all the same (`took_ms`, where it was measured) has another fault first.
    """
    return 0 < roof.floor_ms < _LAUNCH_MS and (took_ms is None or took_ms < _LONG * _LAUNCH_MS)


def time_causes(roof: Roofline, took_ms: float | None = None) -> list[Cause]:
    """Causes that need no counters: a problem below a launch, a time above the floor."""
    causes = []
    if is_launch_bound(roof, took_ms):
        floor = Reading(name="floor", value=f"{roof.floor_ms * 1e3:.2g} µs")
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
                    Reading(name="floor", value=f"{roof.floor_ms:.4g} ms"),
                    Reading(name="sol_fraction", value=share(roof.sol_fraction)),
                ),
                fraction=1 - roof.sol_fraction,
                refuted_by="the floor counts bytes or FLOPs that the problem does not need.",
            )
        )
    return causes


def work_causes(profile: Profile, facts: ProblemFacts, device: Device, scale: Scale) -> list[Cause]:
    """Causes that counts show: of the whole launch, then on the busiest unit, then by what they waste."""
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    counters = profile.counters
    found = [
        _uncoalesced(counters, profile, scale),
        _repeated(counters, profile, run, scale),
        _extra_traffic(profile, run, scale),
        _bank_conflicts(counters, profile, scale),
        _shared_reuse(counters, profile, scale),
        _divergence(counters, profile, scale),
        _instructions(counters, profile, run, scale),
        unpipelined(profile, device, scale.largest, lambda cost: _hottest(profile, cost)),
        *launch_causes(profile, facts, device, lambda cost: _hottest(profile, cost)),
    ]
    measured = _of_hardware(profile)
    names = {cause.name for cause in measured}
    found = [*(cause for cause in found if cause and cause.name not in names), *measured]
    seen = [cause for cause in found if cause and cause.fraction >= _SHOWN]
    if profile.source is ProfileSource.NSIGHT:
        seen = [in_its_words(cause) for cause in seen]
    return sorted(seen, key=scale.order)


def _of_hardware(profile: Profile) -> list[Cause]:
    if profile.source is not ProfileSource.NSIGHT:
        return []
    return measured_causes(profile, lambda cost: _hottest(profile, cost))


def _requested_of(profile: Profile) -> str:
    """The unit that serves a warp's requests: no L1 is modelled, and on hardware it comes first."""
    return "L1" if is_measured(profile) else "L2"


def _uncoalesced(counters: Counters, profile: Profile, scale: Scale) -> Cause | None:
    moved, ideal = counters.gmem_sectors, counters.gmem_ideal_sectors
    if not ideal or moved < _WASTE * ideal:
        return None
    return Cause(
        name="uncoalesced",
        statement=f"Warps touch {times(moved / ideal)} the sectors their bytes need: neighbouring threads do "
        "not read or write neighbouring addresses.",
        readings=(
            Reading(name="gmem_sectors", value=count(moved)),
            Reading(name="gmem_ideal_sectors", value=count(ideal)),
            Reading(name="gmem_sectors ÷ gmem_ideal_sectors", value=times(moved / ideal)),
        ),
        unit=_requested_of(profile),
        fraction=scale.fraction(_requested_of(profile), moved - ideal) or (moved - ideal) / moved,
        refuted_by="the ratio falls to 1 and neither work nor time does.",
        line=_hottest(profile, lambda item: item.gmem_sectors - item.gmem_ideal_sectors),
    )


def _repeated(counters: Counters, profile: Profile, run: Workload, scale: Scale) -> Cause | None:
    asked, least = counters.gmem_ideal_sectors * SECTOR_BYTES, run.least_bytes
    if not least or asked < _WASTE * least:
        return None
    return Cause(
        name="repeated-requests",
        statement=f"Even perfectly coalesced, the requests add up to {times(asked / least)} the least bytes: "
        "the same data is asked for again, or an intermediate result goes through global memory.",
        readings=(
            Reading(name="gmem_ideal_sectors", value=count(counters.gmem_ideal_sectors)),
            Reading(name="least_bytes ÷ 32", value=count(least / SECTOR_BYTES)),
            Reading(name="requested ÷ least", value=times(asked / least)),
        ),
        unit=_requested_of(profile),
        fraction=scale.fraction(_requested_of(profile), counters.gmem_ideal_sectors - least / SECTOR_BYTES),
        refuted_by="keeping the data in registers or shared memory leaves the requests as they are.",
        line=_hottest(profile, lambda item: item.gmem_load_sectors),
    )


def _extra_traffic(profile: Profile, run: Workload, scale: Scale) -> Cause | None:
    touched, least = distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes
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
            Reading(name="gmem_distinct_sectors, all launches", value=count(touched / SECTOR_BYTES)),
            Reading(name="least_bytes ÷ 32", value=count(least / SECTOR_BYTES)),
            Reading(name="launches", value=str(len(profile.launches))),
        ),
        unit="DRAM",
        fraction=scale.fraction("DRAM", touched - least),
        refuted_by="one fused launch touches as many sectors.",
    )


def _bank_conflicts(counters: Counters, profile: Profile, scale: Scale) -> Cause | None:
    seen, ideal = counters.smem_wavefronts, counters.smem_ideal_wavefronts
    if not ideal or seen < _WASTE * ideal:
        return None
    return Cause(
        name="bank-conflicts",
        statement=f"Shared memory takes {times(seen / ideal)} the passes its bytes need: threads of a warp "
        "meet in the same bank.",
        readings=(
            Reading(name="smem_wavefronts", value=count(seen)),
            Reading(name="smem_ideal_wavefronts", value=count(ideal)),
            Reading(name="smem_wavefronts ÷ smem_ideal_wavefronts", value=times(seen / ideal)),
        ),
        unit="shared memory",
        fraction=scale.fraction("shared memory", seen - ideal),
        refuted_by="a padded or swizzled layout brings the ratio to 1 and nothing else changes.",
        line=_hottest(profile, lambda item: item.smem_wavefronts - item.smem_ideal_wavefronts),
    )


def _shared_reuse(counters: Counters, profile: Profile, scale: Scale) -> Cause | None:
    """Shared memory that is busiest even without a conflict: its numbers feed too little arithmetic."""
    unit, ideal = "shared memory", counters.smem_ideal_wavefronts
    asked = scale.fraction(unit, ideal)
    others = [scale.demands[name] for name in scale.demands if name != unit]
    beyond = asked - max(others, default=0.0) / scale.largest if scale.largest else 0.0
    flops = counters.total_flops
    idle = is_measured(profile) and scale.demands.get(unit, 0.0) < BUSY
    if beyond <= 0 or not flops or idle:
        return None
    return Cause(
        name="shared-reuse",
        statement="Even without a bank conflict shared memory is the busiest unit: each number read from it "
        "feeds too few operations before it is read again.",
        readings=(
            Reading(name="smem_ideal_wavefronts", value=count(ideal)),
            Reading(name="FLOP a byte of shared memory", value=f"{flops / (ideal * _LANES * 4):.3g}"),
        ),
        unit=unit,
        fraction=beyond,
        refuted_by="larger fragments a thread leave the wavefronts as they are.",
        line=_hottest(profile, lambda item: item.smem_ideal_wavefronts),
    )


def _divergence(counters: Counters, profile: Profile, scale: Scale) -> Cause | None:
    full = _LANES * counters.warp_instructions
    if not full or counters.thread_instructions * _WASTE > full:
        return None
    active = counters.thread_instructions / full
    return Cause(
        name="divergence",
        statement=f"{share(active)} of the lanes are active on average: branches split warps, or CTAs and "
        "tails leave lanes idle.",
        readings=(
            Reading(name="thread_instructions ÷ (32 · warp_instructions)", value=share(active)),
            Reading(
                name="divergent_branches ÷ branches",
                value=f"{count(counters.divergent_branches)} ÷ {count(counters.branches)}",
            ),
        ),
        unit="instruction issue",
        fraction=scale.fraction("instruction issue", counters.warp_instructions * (1 - active)),
        refuted_by="no branch depends on the thread and the CTA is a multiple of 32 threads.",
        line=_hottest(profile, lambda item: _LANES * item.warp_instructions - item.thread_instructions),
    )


def _instructions(counters: Counters, profile: Profile, run: Workload, scale: Scale) -> Cause | None:
    """Issue slots beyond those in which memory and arithmetic would be busy anyway.

    Idle lanes are not counted here: they are divergence's.
    """
    active = counters.active_lane_fraction or 1.0
    issue = scale.fraction("instruction issue", counters.warp_instructions * active)
    useful = max(
        scale.fraction("DRAM", run.least_bytes),
        *(scale.fraction(f"{pipe} pipe", amount) for pipe, amount in counters.flops.items()),
        0.0,
    )
    if issue <= _WASTE * useful or not counters.warp_instructions or _issues_seldom(profile):
        return None
    sectors = counters.gmem_sectors
    per_sector = counters.warp_instructions / sectors if sectors else 0.0
    return Cause(
        name="instruction-overhead",
        statement="More instructions are issued than the data and the arithmetic account for: indexing, "
        "predicates, narrow accesses or loop control.",
        readings=(
            Reading(name="warp_instructions", value=count(counters.warp_instructions)),
            Reading(name="warp_instructions ÷ gmem_sectors", value=f"{per_sector:.3g}"),
            Reading(name="issue ÷ useful demand", value=times(issue / useful) if useful else "all"),
        ),
        unit="instruction issue",
        fraction=issue - useful,
        refuted_by="wider accesses or unrolling cut the instructions and nothing else changes.",
        line=_hottest(profile, lambda item: item.warp_instructions),
    )


def _issues_seldom(profile: Profile) -> bool:
    """Whether hardware was seen to have issue slots to spare: then instructions are not what costs."""
    return is_measured(profile) and (average(profile, ISSUE_SHARE) or 0.0) < _SELDOM


def _hottest(profile: Profile, cost: Callable[[Counters], int]) -> int:
    """The line of the candidate with the greatest cost; 0 where none has any."""
    own = by_line(profile).own
    line = max(own, key=lambda number: cost(own[number]), default=0)
    return line if line and cost(own[line]) > 0 else 0
