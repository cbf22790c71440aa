"""Figures of a candidate that got worse than those of the best before it, whatever decided the comparison."""

from __future__ import annotations

import math
from collections.abc import Callable

from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.analysis.figures.quantity import change, count, share
from cutegen_nb.analysis.hardware.occupancy import occupancy
from cutegen_nb.core.profile import Counters, LaunchProfile

WORSE_FRACTION = 0.03
"""Relative change from which a figure counts as worse; a few instructions of a prologue are no news."""

WORK: tuple[tuple[str, Callable[[Counters], int]], ...] = (
    ("global sectors", lambda counters: counters.gmem_sectors),
    ("shared-memory wavefronts", lambda counters: counters.smem_wavefronts),
    ("warp instructions", lambda counters: counters.warp_instructions),
)
"""Counts of work that are looked at, the slowest memory first."""


def worsened(
    best: tuple[LaunchProfile, ...],
    candidate: tuple[LaunchProfile, ...],
    target: EstimateTarget,
    *,
    where: str = "",
) -> str:
    """Return a sentence on every figure that got worse; empty where none did.

    Counts are those of all launches. Registers, spills, occupancy and CTAs are those of the launch with the
    most warp instructions. `where` names the size that the figures are of: ``at full size``.
    """
    if not best or not candidate:
        return ""
    parts = [*_work(best, candidate), *_resources(_main(best), _main(candidate), target)]
    opening = f" Worse {where}:" if where else " Worse:"
    return f"{opening} {'; '.join(parts)}." if parts else ""


def _work(best: tuple[LaunchProfile, ...], candidate: tuple[LaunchProfile, ...]) -> list[str]:
    before, after = _total(best), _total(candidate)
    told = []
    for name, read in WORK:
        old, new = read(before), read(after)
        if new > old * (1 + WORSE_FRACTION):
            told.append(f"{name} {count(old)} → {count(new)} ({change(old, new)})")
    return told


def _resources(best: LaunchProfile, candidate: LaunchProfile, target: EstimateTarget) -> list[str]:
    told = []
    before, after = best.resources, candidate.resources
    if before and after:
        if after.registers > before.registers * (1 + WORSE_FRACTION):
            told.append(f"registers of a thread {before.registers} → {after.registers}")
        old = before.spill_store_bytes + before.spill_load_bytes
        new = after.spill_store_bytes + after.spill_load_bytes
        if new > old:
            told.append(f"spilled bytes of a thread {count(old)} → {count(new)}")
    if before and after:
        held, holds = _occupancy(best, target), _occupancy(candidate, target)
        if holds < held * (1 - WORSE_FRACTION):
            told.append(f"occupancy {share(held)} → {share(holds)}")
    ctas, now = math.prod(best.grid), math.prod(candidate.grid)
    # Beyond one CTA for each SM, fewer CTAs are no loss by themselves.
    if now < min(ctas, target.sms):
        idle = 1 - now / target.sms
        told.append(f"CTAs {count(ctas)} → {count(now)} for {target.sms} SMs, {share(idle)} of them idle")
    return told


def _occupancy(launch: LaunchProfile, target: EstimateTarget) -> float:
    return occupancy(
        target.sheet.architecture,
        threads=math.prod(launch.block),
        registers=launch.resources.registers if launch.resources else 0,
        smem_bytes=launch.static_smem_bytes + launch.dynamic_smem_bytes,
    ).fraction


def _main(launches: tuple[LaunchProfile, ...]) -> LaunchProfile:
    return max(launches, key=lambda one: one.counters.warp_instructions)


def _total(launches: tuple[LaunchProfile, ...]) -> Counters:
    total = Counters()
    for one in launches:
        total += one.counters
    return total
