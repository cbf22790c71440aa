"""What limits a kernel, and the likely causes, each with the counters that say so.

Every unit's *demand* is the counted work ÷ the unit's peak rate. Only the shares of the largest demand
are told, because they order the units; the sum is no time and is never called one. PTX instructions are
what a simulated profile counts; hardware runs SASS, so instruction issue is an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.causes import Cause, Scale, is_launch_bound, time_causes, work_causes
from cutegen_nb.analysis.quantity import share, times
from cutegen_nb.analysis.roofline import Roofline, distinct_sectors, place
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound

# Rates of one SM a clock, from the CUDA C programming guide and the A100 and H100 white papers.
_ISSUE_WARPS = 4
_SHARED_WAVEFRONTS = 1
_L2_SECTORS = 2
_FP32_LANES = {"sm_80": 64}
"""Others: 128."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How busy one unit is asked to be."""

    unit: str
    """``DRAM``, ``L2``, ``shared memory``, ``instruction issue``, or a floating-point pipe."""
    fraction: float
    """Of the largest demand, 0–1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What limits a kernel and why."""

    bound: Bound
    """MEMORY, COMPUTE or LATENCY."""
    because: str
    """The figures that say so, in a sentence."""
    causes: tuple[Cause, ...]
    """Those on the busiest unit first, then by what they waste; empty when nothing stands out."""
    demands: tuple[Demand, ...]
    """Units, busiest first; empty without counts."""
    source: str
    """``simulated counts``, ``Nsight Compute``, ``times only`` or ``nothing measured``."""

    def text(self) -> tuple[str, ...]:
        """The same in lines, for a prompt or a terminal."""
        lines = [f"Bound: {self.bound.value} ({self.source}). {self.because}"]
        for number, cause in enumerate(self.causes, start=1):
            where = f" Line {cause.line}." if cause.line else ""
            figures = "; ".join(f"{item.name} {item.value}" for item in cause.readings)
            lines.append(
                f"{number}. {cause.name}: {cause.statement}{where} [{figures}] Refuted if {cause.refuted_by}"
            )
        return tuple(lines)


def diagnose(facts: ProblemFacts, evaluation: Evaluation | None, device: Device) -> Diagnosis:
    """Name the bound of a kernel, or of the problem when nothing was counted, and the likely causes."""
    roof = place(facts, device, evaluation)
    profile = evaluation.profile if evaluation else None
    if profile is None or not profile.launches:
        return _without_counts(roof, device)
    counters = profile.counters
    work = _work(counters, profile)
    rates = _rates(device)
    demands = {unit: amount / rates[unit] for unit, amount in work.items() if rates.get(unit)}
    scale = Scale(rates=rates, demands=demands)
    ordered = sorted(demands, key=lambda unit: -demands[unit])
    run = facts.scaled if profile.source is ProfileSource.SIMULATED else facts.full
    return Diagnosis(
        bound=_bound(ordered, roof),
        because=_because(ordered, demands, roof),
        causes=(*time_causes(roof), *work_causes(profile, run, scale)),
        demands=tuple(
            Demand(unit=unit, fraction=demands[unit] / scale.largest if scale.largest else 0.0)
            for unit in ordered
            if demands[unit]
        ),
        source=profile.source.value,
    )


def _without_counts(roof: Roofline, device: Device) -> Diagnosis:
    timed = roof.sol_fraction is not None
    limit = "bytes ÷ bandwidth" if roof.bound is Bound.MEMORY else "FLOPs ÷ peak"
    return Diagnosis(
        bound=Bound.LATENCY if is_launch_bound(roof) else roof.bound,
        because=(
            f"No counters: from the problem alone, {limit} sets the floor of {roof.floor_ms:.3g} ms "
            f"on {device.name}."
        ),
        causes=tuple(time_causes(roof)),
        demands=(),
        source="times only" if timed else "nothing measured",
    )


def _work(counters: Counters, profile: Profile) -> dict[str, float]:
    arithmetic: dict[str, float] = {f"{pipe} pipe": float(amount) for pipe, amount in counters.flops.items()}
    return {
        "DRAM": distinct_sectors(profile) * SECTOR_BYTES,
        "L2": counters.gmem_sectors,
        "shared memory": counters.smem_wavefronts,
        "instruction issue": counters.warp_instructions,
        **arithmetic,
    }


def _rates(device: Device) -> dict[str, float]:
    """Peak a second of each unit; those that the device does not state are left out."""
    rates = {f"{pipe} pipe": peak for pipe, peak in device.peak_flops.items() if peak > 0}
    if device.bandwidth_bytes_per_s > 0:
        rates["DRAM"] = device.bandwidth_bytes_per_s
    lanes = _FP32_LANES.get(device.architecture.rstrip("af"), 128)
    clocks = device.peak_flops.get("cuda.f32", 0.0) / (2 * lanes)
    if clocks:
        rates |= {
            "L2": clocks * _L2_SECTORS,
            "shared memory": clocks * _SHARED_WAVEFRONTS,
            "instruction issue": clocks * _ISSUE_WARPS,
        }
    return rates


def _bound(ordered: list[str], roof: Roofline) -> Bound:
    if is_launch_bound(roof):
        return Bound.LATENCY
    if not ordered:
        return roof.bound
    return Bound.MEMORY if ordered[0] in {"DRAM", "L2"} else Bound.COMPUTE


def _because(ordered: list[str], demands: dict[str, float], roof: Roofline) -> str:
    if not ordered or not demands[ordered[0]]:
        return "The profile holds no work of any unit whose rate is known."
    busiest = ordered[0]
    nearest = next((unit for unit in ordered[1:] if demands[unit]), None)
    said = f"{busiest} is asked for most"
    if nearest:
        said += f"; {nearest} follows at {share(demands[nearest] / demands[busiest])} of it"
    if roof.moved_over_least is not None:
        said += f"; global requests touch {times(roof.moved_over_least)} the least bytes"
    if is_launch_bound(roof):
        said += f"; at full size the floor is {roof.floor_ms * 1e3:.2g} µs, less than a launch costs"
    return f"{said}."
