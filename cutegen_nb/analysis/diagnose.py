"""What limits a kernel, and the likely causes, each with the counters that say so.

Every unit's *demand* is the counted work ÷ the unit's peak rate. Only the shares of the largest demand
are told, because they order the units; the sum is no time and is never called one. Counts of a smaller
problem are weighed as they would stand to each other at full size. PTX instructions are
what a simulated profile counts; hardware runs SASS, so instruction issue is an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.analysis.cause import Cause, Reading
from cutegen_nb.analysis.causes import Scale, is_launch_bound, time_causes, work_causes
from cutegen_nb.analysis.hierarchy import clocks_per_s, distinct_sectors
from cutegen_nb.analysis.measured import BUSY, MEMORIES, Load, is_measured, loads, stalls
from cutegen_nb.analysis.quantity import count, scaled, share, times
from cutegen_nb.analysis.remedies import strategies_for
from cutegen_nb.analysis.roofline import COUNTED_AS, Roofline, place
from cutegen_nb.analysis.zone import Zone, zone
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import SECTOR_BYTES, Counters, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound

# Rates of one SM a clock, from the CUDA C programming guide and the A100 and H100 white papers.
_ISSUE_WARPS = 4
_SHARED_WAVEFRONTS = 1
_L2_SECTORS = 2
"""What one SM takes from the L2 (64 bytes a clock); counts where the L2's own bandwidth is not known."""
_IDLE = 0.5
"""From this share of idle multiprocessors, or of waiting, on, latency is the bound and no unit is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """How busy one unit is asked to be."""

    unit: str
    """``DRAM``, ``L2``, ``shared memory``, ``instruction issue``, or a floating-point pipe."""
    fraction: float
    """Of the largest demand, 0–1."""
    counter: str = ""
    """The counter that was read, as the profile names it."""
    work: str = ""
    """What was counted, with its unit."""
    rate: str = ""
    """What the device does of it a second at most, with its unit."""
    peak_fraction: float | None = None
    """Of the unit's own peak, where that was measured."""


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
    zone: Zone | None = None
    """Where the problem lies between the ridge points; None where the device states too little."""
    refuted_by: str = ""
    """What would show that the bound is another one; empty where nothing was counted."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that the causes suggest, in their order, each once."""
        return tuple(dict.fromkeys(name for cause in self.causes for name in cause.strategies))

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The counters and rates that the bound rests on, busiest unit first."""
        return tuple(
            Reading(name=f"{one.unit} ({one.counter})", value=_reading(one))
            for one in self.demands
            if one.counter
        )

    def text(self) -> tuple[str, ...]:
        """The same in lines, for a prompt or a terminal."""
        refuted = f" Refuted if {self.refuted_by}" if self.refuted_by else ""
        lines = [f"Bound: {self.bound.value} ({self.source}). {self.because}{refuted}"]
        for number, cause in enumerate(self.causes, start=1):
            where = f" Line {cause.line}." if cause.line else ""
            figures = "; ".join(f"{item.name} {item.value}" for item in cause.readings)
            lines.append(
                f"{number}. {cause.name}: {cause.statement}{where} [{figures}] Refuted if {cause.refuted_by}"
                + (f" Strategies: {', '.join(cause.strategies)}." if cause.strategies else "")
            )
        if self.zone:
            lines.append(self.zone.text())
        return tuple(lines)


def _reading(one: Demand) -> str:
    if one.peak_fraction is not None:
        return f"{share(one.peak_fraction)} of its peak"
    return f"{one.work} at {one.rate}: {share(one.fraction)}"


def diagnose(facts: ProblemFacts, evaluation: Evaluation | None, device: Device) -> Diagnosis:
    """Name the bound of a kernel, or of the problem when nothing was counted, and the likely causes."""
    found = _diagnosed(facts, evaluation, device)
    answered = tuple(
        replace(cause, strategies=strategies_for(cause.name, facts.workload_class)) for cause in found.causes
    )
    return replace(found, causes=answered, zone=zone(facts, device))


def _diagnosed(facts: ProblemFacts, evaluation: Evaluation | None, device: Device) -> Diagnosis:
    roof = place(facts, device, evaluation)
    profile = evaluation.profile if evaluation else None
    if profile is None or not profile.launches:
        return _without_counts(roof, device)
    if is_measured(profile):
        return _from_hardware(profile, facts, roof, device)
    counters = profile.counters
    work = _work(counters, profile)
    rates = _rates(device)
    reuse = _lost_reuse(facts, profile)
    weighed = {unit: rate / reuse if unit == "DRAM" else rate for unit, rate in rates.items()}
    demands = {unit: amount / weighed[unit] for unit, amount in work.items() if weighed.get(unit)}
    scale = Scale(rates=weighed, demands=demands)
    ordered = sorted(demands, key=lambda unit: -demands[unit])
    causes = (*time_causes(roof), *work_causes(profile, facts, device, scale))
    bound = _bound(ordered, roof, causes)
    return Diagnosis(
        bound=bound,
        because=_because(ordered, demands, roof, causes),
        causes=causes,
        demands=tuple(
            _demand(unit, work[unit], rates[unit], demands[unit] / scale.largest)
            for unit in ordered
            if demands[unit]
        ),
        source=profile.source.value,
        refuted_by=_refuted_by(bound, ordered),
    )


def diagnose_launches(profile: Profile, device: Device) -> Diagnosis:
    """The same for kernels of an unknown problem, from their profile alone."""
    unknown = Workload(graph=Graph(inputs=(), parameters=(), nodes=(), outputs=()), flops=0, least_bytes=0)
    facts = ProblemFacts(workload_class=WorkloadClass.OTHER, full=unknown, scaled=unknown, dtype="float32")
    seen = Evaluation(
        outcome=Judged(verdict=Verdict.PASSED), summary="", device=profile.device, profile=profile
    )
    return diagnose(facts, seen, device)


def _from_hardware(profile: Profile, facts: ProblemFacts, roof: Roofline, device: Device) -> Diagnosis:
    """From shares of peaks that were measured, and why warps waited where no unit was busy."""
    found = loads(profile)
    largest = found[0].fraction if found else 0.0
    scale = Scale(
        rates={one.unit: one.work / one.fraction for one in found if one.work},
        demands={one.unit: one.fraction for one in found},
    )
    took_ms = 1e3 * sum(one.duration_s or 0.0 for one in profile.launches)
    causes = (*time_causes(roof, took_ms), *work_causes(profile, facts, device, scale))
    bound = _measured_bound(found, causes)
    return Diagnosis(
        bound=bound,
        because=_measured_because(found, profile, roof, causes),
        causes=causes,
        demands=tuple(
            Demand(
                unit=one.unit,
                fraction=one.fraction / largest,
                counter=one.metric,
                peak_fraction=one.fraction,
            )
            for one in found
        ),
        source=profile.source.value,
        refuted_by=_refuted_by(bound, [one.unit for one in found]),
    )


def _measured_bound(found: tuple[Load, ...], causes: tuple[Cause, ...]) -> Bound:
    if _launches(causes) or _idle(causes) or not found or found[0].fraction < BUSY:
        return Bound.LATENCY
    return Bound.MEMORY if found[0].unit in MEMORIES else Bound.COMPUTE


def _measured_because(
    found: tuple[Load, ...], profile: Profile, roof: Roofline, causes: tuple[Cause, ...]
) -> str:
    if not found:
        return "The profile does not say how busy any unit was."
    first, rest = found[0], found[1:]
    said = f"{first.unit} works at {share(first.fraction)} of its peak"
    if first.fraction < BUSY:
        said = f"no unit is near its peak: the busiest, {first.unit}, works at {share(first.fraction)} of its"
        waits = stalls(profile)
        reason = next((name for name in waits if name != "selected"), "")
        if reason:
            spent = share(waits[reason] / sum(waits.values()))
            said += f"; warps mostly wait for {reason}, {spent} of their time"
    elif rest:
        said += f"; {rest[0].unit} follows at {share(rest[0].fraction)}"
    said += _against_least(roof, launch_bound=_launches(causes))
    idle = _idle(causes)
    return f"{said[0].upper()}{said[1:]}{f'; {idle}' if idle else ''}."


def _against_least(roof: Roofline, *, launch_bound: bool) -> str:
    """What the kernel moves, and the problem's floor takes, against the least there can be."""
    said = ""
    if roof.moved_over_least:
        said += f"; global requests touch {times(roof.moved_over_least)} the least bytes"
    if launch_bound:
        said += f"; at full size the floor is {roof.floor_ms * 1e3:.2g} µs, less than a launch costs"
    return said


def _launches(causes: tuple[Cause, ...]) -> bool:
    return any(one.name == "launch-bound" for one in causes)


def _lost_reuse(facts: ProblemFacts, profile: Profile) -> float:
    """How much less DRAM counts at full size than in the smaller problem that was simulated; at most 1.

    FLOPs, requests and instructions grow with the problem's FLOPs, the distinct bytes with its least bytes: a
    product of small matrices asks DRAM for more of its work than the product of large ones that is meant.
    """
    run, full = facts.scaled, facts.full
    if profile.source is not ProfileSource.SIMULATED or not (run.flops and run.least_bytes and full.flops):
        return 1.0
    return min(1.0, (full.least_bytes / run.least_bytes) / (full.flops / run.flops)) or 1.0


_COUNTERS = {
    "DRAM": ("gmem_distinct_sectors × 32", "B"),
    "L2": ("gmem_sectors", "sectors"),
    "shared memory": ("smem_wavefronts", "wavefronts"),
    "instruction issue": ("warp_instructions", "instructions"),
}


def _demand(unit: str, work: float, rate: float, fraction: float) -> Demand:
    counter, of = _COUNTERS.get(unit, (f"flops.{unit.removesuffix(' pipe')}", "FLOP"))
    said = scaled(work, of) if of in {"B", "FLOP"} else f"{count(work)} {of}"
    per_s = (
        f"{scaled(rate, of)}/s" if of in {"B", "FLOP"} else f"{scaled(rate, '')} {of}/s".replace("  ", " ")
    )
    return Demand(unit=unit, fraction=fraction, counter=counter, work=said, rate=per_s)


def _refuted_by(bound: Bound, ordered: list[str]) -> str:
    if bound is Bound.LATENCY:
        return "the time follows the amount of work."
    if not ordered:
        return ""
    return f"less work of {ordered[0]} leaves the time as it is."


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
    arithmetic = {f"{COUNTED_AS.get(pipe, pipe)} pipe": float(n) for pipe, n in counters.flops.items()}
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
    if device.l2_bandwidth_bytes_per_s:
        rates["L2"] = device.l2_bandwidth_bytes_per_s / SECTOR_BYTES
    clocks = clocks_per_s(device)
    if clocks:
        rates.setdefault("L2", clocks * _L2_SECTORS)
        rates |= {
            "shared memory": clocks * _SHARED_WAVEFRONTS,
            "instruction issue": clocks * _ISSUE_WARPS,
        }
    return rates


_IDLE_BECAUSE = {
    "too-few-ctas": "most multiprocessors have no CTA",
    "unpipelined-loads": "most of the time every CTA waits for its loads",
}


def _idle(causes: tuple[Cause, ...]) -> str:
    """Why no unit is near its rate; empty where one is."""
    return next((_IDLE_BECAUSE[one.name] for one in causes if _leaves_idle(one)), "")


def _leaves_idle(cause: Cause) -> bool:
    return cause.name in _IDLE_BECAUSE and cause.fraction >= _IDLE


def _bound(ordered: list[str], roof: Roofline, causes: tuple[Cause, ...]) -> Bound:
    if is_launch_bound(roof) or _idle(causes):
        return Bound.LATENCY
    if not ordered:
        return roof.bound
    return Bound.MEMORY if ordered[0] in {"DRAM", "L2", "shared memory"} else Bound.COMPUTE


def _because(ordered: list[str], demands: dict[str, float], roof: Roofline, causes: tuple[Cause, ...]) -> str:
    if not ordered or not demands[ordered[0]]:
        return "The profile holds no work of any unit whose rate is known."
    busiest = ordered[0]
    nearest = next((unit for unit in ordered[1:] if demands[unit]), None)
    said = f"{busiest} is asked for most"
    if nearest:
        said += f"; {nearest} follows at {share(demands[nearest] / demands[busiest])} of it"
    said += _against_least(roof, launch_bound=is_launch_bound(roof))
    idle = _idle(causes)
    if idle:
        said += f"; {idle}, so no unit of the device is near its rate"
    return f"{said}."
