"""Bottleneck diagnosis: the bound of a kernel, and the likely causes with their counter readings.

A unit's *demand* is its counted work ÷ its peak rate. Only shares of the largest demand are reported, since
they order the units; their sum is no time. Counts of a scaled-down problem are weighted as they would relate
at full size. A simulated profile counts PTX instructions, whereas hardware runs SASS, so instruction issue is
an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.bottleneck.causes import DemandScale, is_launch_bound, time_causes, work_causes
from cutegen_nb.analysis.bottleneck.profile_reading import ProfileReading, read
from cutegen_nb.analysis.bottleneck.remedies import strategies_for
from cutegen_nb.analysis.bottleneck.unit_utilisation import BUSY, DRAM, MEMORIES
from cutegen_nb.analysis.figures.quantity import count, scaled, share, times
from cutegen_nb.analysis.hardware.hierarchy import clocks_per_s, distinct_sectors
from cutegen_nb.analysis.hardware.roofline import COUNTED_AS, Roofline, place
from cutegen_nb.analysis.hardware.zone import CountedFlops, Zone, zone
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound

_ISSUE_WARPS = 4
"""Warp instructions that one multiprocessor issues a clock: one for each of its four schedulers (CUDA C++
Programming Guide; A100 and H100 white papers)."""
_SHARED_WAVEFRONTS = 1
"""Wavefronts of shared memory that one multiprocessor serves a clock (same sources)."""
_L2_SECTORS = 2
"""Sectors that one multiprocessor reads from the L2 a clock: 64 bytes (same sources). Used where the L2's own
bandwidth is not known."""
_IDLE = 0.5
"""Share of idle multiprocessors, or of waiting time, from which latency is the bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Demand on one unit, relative to the busiest."""

    unit: str
    """Name of the unit: ``DRAM``, ``L2``, ``shared memory``, ``instruction issue``, or a floating-point
    pipe."""
    fraction: float
    """Share of the largest demand, from 0 to 1."""
    counter: str = ""
    """Counter that was read, as the profile names it."""
    work: str = ""
    """Counted work, with its unit."""
    rate: str = ""
    """Peak rate of the device for this work, with its unit."""
    peak_fraction: float | None = None
    """Measured utilisation of the unit, from 0 to 1; None where it was not measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """Bound of a kernel with its causes."""

    bound: Bound
    """Bound: MEMORY, COMPUTE or LATENCY."""
    because: str
    """Figures behind the bound, in a sentence."""
    causes: tuple[Cause, ...]
    """Causes, the most important first; empty where nothing stands out."""
    demands: tuple[Demand, ...]
    """Demand of each unit, the busiest first; empty without counts."""
    source: str
    """Source of the figures: ``simulated counts``, ``Nsight Compute``, ``times only`` or ``nothing
    measured``."""
    zone: Zone | None = None
    """Zone of the problem between the ridge points; None where the device states too little."""
    refuted_by: str = ""
    """Observation that would show the bound to be wrong; empty where nothing was counted."""

    @property
    def strategies(self) -> tuple[str, ...]:
        """Names of the strategies that the causes suggest, in their order, each once."""
        return tuple(dict.fromkeys(name for cause in self.causes for name in cause.strategies))

    @property
    def readings(self) -> tuple[CounterReading, ...]:
        """Counters and rates behind the bound, busiest unit first."""
        return tuple(
            CounterReading(name=f"{one.unit} ({one.counter})", value=_reading(one))
            for one in self.demands
            if one.counter
        )

    def text(self) -> tuple[str, ...]:
        """Format the diagnosis in lines, for a prompt or a terminal."""
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


def diagnose(
    facts: ProblemFacts,
    evaluation: Evaluation | None,
    device: Device,
    fewest: CountedFlops | None = None,
) -> Diagnosis:
    """Diagnose a kernel, or only its problem if nothing was counted.

    `fewest` are the fewest FLOPs of a kernel of the session; the zone follows from them.
    """
    found = _diagnosed(facts, evaluation, device)
    answered = tuple(
        replace(cause, strategies=strategies_for(cause.name, facts.workload_class)) for cause in found.causes
    )
    return replace(found, causes=answered, zone=zone(facts, device, fewest))


def _diagnosed(facts: ProblemFacts, evaluation: Evaluation | None, device: Device) -> Diagnosis:
    roof = place(facts, device, evaluation)
    profile = evaluation.profile if evaluation else None
    if profile is None or not profile.launches:
        return _without_counts(roof, device)
    seen = read(profile)
    demands, scale = _measured_demands(seen) if seen.is_measured else _counted_demands(seen, facts, device)
    causes = (*time_causes(roof, seen.took_ms), *work_causes(seen, facts, device, scale))
    bound = _bound(seen, demands, roof, causes)
    return Diagnosis(
        bound=bound,
        because=(_measured_because if seen.is_measured else _because)(seen, demands, roof, causes),
        causes=causes,
        demands=demands,
        source=profile.source.value,
        refuted_by=_refuted_by(bound, demands),
    )


def _counted_demands(
    seen: ProfileReading, facts: ProblemFacts, device: Device
) -> tuple[tuple[Demand, ...], DemandScale]:
    """Return the demand of each unit from its counted work, the busiest first."""
    work, rates = _work(seen), _rates(device)
    # A factor of at most 1 raises DRAM's rate, so its demand falls to the weight that it has at full size.
    reuse = _lost_reuse(facts, seen.profile)
    weighed = {unit: rate / reuse if unit == DRAM else rate for unit, rate in rates.items()}
    # Work ÷ peak rate: seconds that the unit needs by itself. Units overlap, so only ratios matter.
    seconds = {unit: amount / weighed[unit] for unit, amount in work.items() if weighed.get(unit)}
    scale = DemandScale(rates=weighed, demands=seconds)
    ordered = sorted((unit for unit in seconds if seconds[unit]), key=lambda unit: -seconds[unit])
    demands = (_demand(unit, work[unit], rates[unit], seconds[unit] / scale.largest) for unit in ordered)
    return tuple(demands), scale


def _measured_demands(seen: ProfileReading) -> tuple[tuple[Demand, ...], DemandScale]:
    """Return the demand of each unit from its measured utilisation, the busiest first."""
    largest = seen.busiest.fraction if seen.busiest else 0.0
    scale = DemandScale(
        # Utilisation is work ÷ peak, so work ÷ utilisation gives the peak over the measured time.
        rates={one.unit: one.work / one.fraction for one in seen.loads if one.work},
        demands={one.unit: one.fraction for one in seen.loads},
    )
    demands = (
        Demand(unit=one.unit, fraction=one.fraction / largest, counter=one.metric, peak_fraction=one.fraction)
        for one in seen.loads
    )
    return tuple(demands), scale


def diagnose_launches(profile: Profile, device: Device) -> Diagnosis:
    """Diagnose kernels of an unknown problem from their profile alone."""
    unknown = Workload(graph=Graph(inputs=(), parameters=(), nodes=(), outputs=()), flops=0, least_bytes=0)
    facts = ProblemFacts(workload_class=WorkloadClass.OTHER, full=unknown, scaled=unknown, dtype="float32")
    seen = Evaluation(
        outcome=Judged(verdict=Verdict.PASSED), summary="", device=profile.device, profile=profile
    )
    return diagnose(facts, seen, device)


def _measured_because(
    seen: ProfileReading, demands: tuple[Demand, ...], roof: Roofline, causes: tuple[Cause, ...]
) -> str:
    first = seen.busiest
    if first is None:
        return "The profile does not say how busy any unit was."
    said = f"{first.unit} works at {share(first.fraction)} of its peak"
    if first.fraction < BUSY:
        said = f"no unit is near its peak: the busiest, {first.unit}, works at {share(first.fraction)} of its"
        waits = seen.stalls
        reason = next((name for name in waits if name != "selected"), "")
        if reason:
            spent = share(waits[reason] / sum(waits.values()))
            said += f"; warps mostly wait for {reason}, {spent} of their time"
    elif demands[1:]:
        said += f"; {demands[1].unit} follows at {share(seen.loads[1].fraction)}"
    said += _against_least(roof, causes)
    idle = _idle(causes)
    return f"{said[0].upper()}{said[1:]}{f'; {idle}' if idle else ''}."


def _against_least(roof: Roofline, causes: tuple[Cause, ...]) -> str:
    """Describe the kernel's traffic against the least bytes, and the floor against a launch."""
    said = ""
    if roof.moved_over_least:
        said += f"; global requests touch {times(roof.moved_over_least)} the least bytes"
    if _launches(causes):
        said += f"; at full size the floor is {roof.floor_ms * 1e3:.2g} µs, less than a launch costs"
    return said


def _launches(causes: tuple[Cause, ...]) -> bool:
    return any(one.name == "launch-bound" for one in causes)


def _lost_reuse(facts: ProblemFacts, profile: Profile) -> float:
    """Return DRAM's weight at full size ÷ its weight in the simulated smaller problem, at most 1.

    FLOPs, requests and instructions grow with the problem's FLOPs; distinct bytes grow with its least bytes.
    A product of small matrices therefore has a larger share of DRAM traffic than the product at full size.
    """
    run, full = facts.scaled, facts.full
    if profile.source is not ProfileSource.SIMULATED or not (run.flops and run.least_bytes and full.flops):
        return 1.0
    # (growth of distinct bytes) ÷ (growth of FLOPs) from the size run to full size.
    return min(1.0, (full.least_bytes / run.least_bytes) / (full.flops / run.flops)) or 1.0


_COUNTERS = {
    "DRAM": ("gmem_distinct_sectors × 32", "B"),
    "L2": ("gmem_sectors", "sectors"),
    "shared memory": ("smem_wavefronts", "wavefronts"),
    "instruction issue": ("warp_instructions", "instructions"),
}
"""Counter and unit of work for each unit of the device; floating-point pipes have their own."""


def _demand(unit: str, work: float, rate: float, fraction: float) -> Demand:
    counter, of = _COUNTERS.get(unit, (f"flops.{unit.removesuffix(' pipe')}", "FLOP"))
    said = scaled(work, of) if of in {"B", "FLOP"} else f"{count(work)} {of}"
    per_s = (
        f"{scaled(rate, of)}/s" if of in {"B", "FLOP"} else f"{scaled(rate, '')} {of}/s".replace("  ", " ")
    )
    return Demand(unit=unit, fraction=fraction, counter=counter, work=said, rate=per_s)


def _refuted_by(bound: Bound, demands: tuple[Demand, ...]) -> str:
    if bound is Bound.LATENCY:
        return "the time follows the amount of work."
    if not demands:
        return ""
    return f"less work of {demands[0].unit} leaves the time as it is."


def _without_counts(roof: Roofline, device: Device) -> Diagnosis:
    timed = roof.sol_fraction is not None
    limit = "bytes ÷ bandwidth" if roof.bound is Bound.MEMORY else "FLOPs ÷ peak"
    return Diagnosis(
        bound=Bound.LATENCY if is_launch_bound(roof) else roof.bound,
        because=(
            f"No counters: from the problem alone, {limit} sets the floor of {roof.floor_ms:.3g} ms "
            f"on {device.gpu_name}."
        ),
        causes=tuple(time_causes(roof)),
        demands=(),
        source="times only" if timed else "nothing measured",
    )


def _work(seen: ProfileReading) -> dict[str, float]:
    counters = seen.counters
    arithmetic = {f"{COUNTED_AS.get(pipe, pipe)} pipe": float(n) for pipe, n in counters.flops.items()}
    return {
        "DRAM": distinct_sectors(seen.profile) * SECTOR_BYTES,
        "L2": counters.gmem_sectors,
        "shared memory": counters.smem_wavefronts,
        "instruction issue": counters.warp_instructions,
        **arithmetic,
    }


def _rates(device: Device) -> dict[str, float]:
    """Return the peak rate of each unit a second; units that the device does not state are left out."""
    rates = {f"{pipe} pipe": peak for pipe, peak in device.peak_flops.items() if peak > 0}
    if device.bandwidth_bytes_per_s > 0:
        rates["DRAM"] = device.bandwidth_bytes_per_s
    if device.l2_bandwidth_bytes_per_s:
        # The counter counts sectors, so bytes a second become sectors a second.
        rates["L2"] = device.l2_bandwidth_bytes_per_s / SECTOR_BYTES
    clocks = clocks_per_s(device)
    if clocks:
        # Fallback: the rate at which the multiprocessors together can read, not the L2's own.
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
    """Return the reason why no unit is near its peak; empty where there is none."""
    return next((_IDLE_BECAUSE[one.name] for one in causes if _leaves_idle(one)), "")


def _leaves_idle(cause: Cause) -> bool:
    return cause.name in _IDLE_BECAUSE and cause.fraction >= _IDLE


def _bound(
    seen: ProfileReading, demands: tuple[Demand, ...], roof: Roofline, causes: tuple[Cause, ...]
) -> Bound:
    is_slack = seen.is_measured and (seen.busiest is None or seen.busiest.fraction < BUSY)
    if _launches(causes) or _idle(causes) or is_slack:
        return Bound.LATENCY
    if not demands:
        return roof.bound
    return Bound.MEMORY if demands[0].unit in MEMORIES else Bound.COMPUTE


def _because(
    _: ProfileReading, demands: tuple[Demand, ...], roof: Roofline, causes: tuple[Cause, ...]
) -> str:
    if not demands:
        return "The profile holds no work of any unit whose rate is known."
    said = f"{demands[0].unit} is asked for most"
    if demands[1:]:
        said += f"; {demands[1].unit} follows at {share(demands[1].fraction)} of it"
    said += _against_least(roof, causes)
    idle = _idle(causes)
    if idle:
        said += f"; {idle}, so no unit of the device is near its rate"
    return f"{said}."
