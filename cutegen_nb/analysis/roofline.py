"""Where a problem and its kernels stand under the roofs of a device.

attainable FLOP/s = min(peak, intensity × bandwidth) (Williams, Waterman, Patterson, CACM 52(4), 2009).
A simulated kernel has no FLOP/s: it is placed by the bytes it moves, and by nothing else. A measured one
above the floor of the problem is impossible: its time or a count is wrong, and nothing may be built on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutegen_nb.analysis.hierarchy import Level, Traffic, distinct_sectors, levels, traffic
from cutegen_nb.analysis.quantity import duration
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, Finding, NotJudged, NotJudgedReason, Timing
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound

_SHORT = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8"}
_ON_TENSOR_CORES = frozenset(
    {
        WorkloadClass.MATMUL,
        WorkloadClass.CONVOLUTION,
        WorkloadClass.ATTENTION,
        WorkloadClass.FUSED,
        WorkloadClass.OTHER,
    }
)
_SPLIT_TF32 = 3
"""Tensor-core products that give one product of fp32 accuracy (3×TF32: Ootomo, Yokota, 2022)."""
COUNTED_AS = {"tensor.s8": "tensor.i8", "tensor.fp8": "tensor.f8"}
"""Pipes that counters name otherwise than data sheets do."""
_SLACK = 0.85
"""A time down to this share of the floor is still believed, as the evaluator believes it: a kernel that only
reads is a little faster than the copy that the bandwidth was measured with."""
_CACHES = 4
"""Problems of fewer bytes than this many L2s may find their tensors there, whatever DRAM allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One flat roof: what a pipe can compute."""

    pipe: str
    """As in :attr:`Device.peak_flops`: ``cuda.f32``."""
    flops_per_s: float
    """Dense FLOP/s usable at the problem's precision."""
    ridge: float
    """FLOP a byte at which this roof meets the bandwidth."""
    note: str = ""
    """What to know of it; empty for a plain peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """A problem or a kernel under the roofs."""

    label: str
    """What it is, in a few words."""
    intensity: float
    """The problem's FLOPs ÷ bytes; 0 when it computes nothing in floating point."""
    attainable_flops_per_s: float
    """The lower of the two roofs above it."""
    achieved_flops_per_s: float | None = None
    """Measured; None without a time."""
    simulated: bool = False
    """Whether its bytes are simulated counts."""
    pipe: str = ""
    """The pipe that its counted FLOPs keep busiest; empty without counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Roofs, the problem, and one kernel when it was evaluated."""

    bandwidth_bytes_per_s: float
    """The slanted roof."""
    ceilings: tuple[Ceiling, ...]
    """Flat roofs, lowest first; empty when the device states none for this dtype."""
    problem: RooflinePoint
    """At full size with the least bytes: no kernel can stand to its right."""
    problem_run: RooflinePoint
    """The same at the size that was run; differs from `problem` on the simulator."""
    kernel: RooflinePoint | None
    """The evaluated kernel; None without counts or times."""
    floor_ms: float
    """Least time of the full size: the larger of bytes ÷ bandwidth and FLOPs ÷ peak. Computed; 0 when the
    device states neither."""
    bound: Bound
    """Which of the two sets the floor: MEMORY or COMPUTE."""
    sol_fraction: float | None = None
    """Floor ÷ measured time, the speed-of-light share; None without a time or a floor."""
    moved_bytes: int | None = None
    """Bytes of the sectors that global memory requests touched; None without counts."""
    moved_over_least: float | None = None
    """Those ÷ the least bytes of the size that was run."""
    distinct_over_least: float | None = None
    """The same for the different sectors of each launch: what a cache that never evicts would leave."""
    levels: tuple[Level, ...] = ()
    """Every slanted roof that is known, DRAM first."""
    traffic: tuple[Traffic, ...] = ()
    """What the kernel moves through each memory; empty without counts."""
    run_flops: int = 0
    """The problem's FLOPs at the size that was run."""
    above: str = ""
    """Why the measured time is impossible, in a sentence; empty where it is not. Such a point blocks."""

    def intensity_at(self, level: str) -> float | None:
        """The problem's FLOPs ÷ the bytes the kernel moves through a memory; None where none were counted."""
        found = next((one for one in self.traffic if one.level == level), None)
        return self.run_flops / found.moved_bytes if found else None


def ceilings(facts: ProblemFacts, device: Device) -> tuple[Ceiling, ...]:
    """The flat roofs that count for a problem's precision, lowest first.

    Tensor cores count where the work is products. fp32 may use them in three TF32 products, which keep
    its accuracy; plain TF32 is below the precision policy and does not count.
    """
    short = _SHORT.get(facts.dtype, "f32")
    offers = {f"cuda.{short}": (1, "")}
    if short in {"f16", "bf16"}:
        offers["cuda.f32"] = (1, "")
    if facts.workload_class in _ON_TENSOR_CORES:
        offers[f"tensor.{short}"] = (1, "")
        if short == "f32":
            offers["tensor.tf32"] = (_SPLIT_TF32, "three TF32 products for one of fp32 accuracy")
    found = [
        _ceiling(pipe, device.peak_flops[pipe] / split, note, device)
        for pipe, (split, note) in offers.items()
        if device.peak_flops.get(pipe, 0) > 0
    ]
    return tuple(sorted(found, key=lambda item: item.flops_per_s))


def peak_at_precision(dtype: str, device: Device, cores: str) -> float:
    """FLOP/s of ``cuda`` or ``tensor`` cores that serve a precision; 0 where the device states none."""
    short = _SHORT.get(dtype, "f32")
    found = device.peak_flops.get(f"{cores}.{short}", 0.0)
    if cores == "tensor" and short == "f32":
        return device.peak_flops.get("tensor.tf32", 0.0) / _SPLIT_TF32
    if cores == "cuda" and not found and short in {"f16", "bf16"}:
        return device.peak_flops.get("cuda.f32", 0.0)
    return found


def place(facts: ProblemFacts, device: Device, evaluation: Evaluation | None = None) -> Roofline:
    """Place a problem, and a kernel when its evaluation is given, under a device's roofs."""
    timing = evaluation.timing if evaluation else None
    if not device.bandwidth_bytes_per_s and timing:
        # A GPU that is in no table: the copy bandwidth measured beside the candidate is the roof.
        device = replace(device, bandwidth_bytes_per_s=timing.bandwidth_bytes_per_s)
    roofs = ceilings(facts, device)
    peak = roofs[-1].flops_per_s if roofs else math.inf
    memory_s = _ratio(facts.full.least_bytes, device.bandwidth_bytes_per_s)
    compute_s = facts.full.flops / peak
    profile = evaluation.profile if evaluation else None
    simulated = bool(profile and profile.source is ProfileSource.SIMULATED)
    run = facts.scaled if simulated else facts.full
    moved = profile.counters.gmem_sectors * SECTOR_BYTES if profile else None
    floor_s = max(memory_s, compute_s)
    return Roofline(
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
        ceilings=roofs,
        problem=_problem_point("problem, full size", facts.full, device, peak),
        problem_run=_problem_point("problem, size run", run, device, peak),
        kernel=_kernel_point(run, device, roofs, _crossed(profile, run), evaluation, simulated=simulated),
        floor_ms=floor_s * 1e3,
        bound=Bound.MEMORY if memory_s >= compute_s else Bound.COMPUTE,
        sol_fraction=_ratio(floor_s * 1e3, timing.median_ms) if timing and floor_s else None,
        moved_bytes=moved,
        moved_over_least=None if moved is None else _ratio(moved, run.least_bytes),
        distinct_over_least=_distinct_over_least(profile, run),
        levels=levels(device),
        traffic=traffic(profile) if profile else (),
        run_flops=run.flops,
        above=_above(facts.full, device, evaluation, memory_s, compute_s) if timing else "",
    )


def busiest_pipe(profile: Profile, device: Device) -> str:
    """The pipe whose counted FLOPs take longest at its peak, as a data sheet names it; empty without any."""
    spent = {
        name: amount / device.peak_flops[name]
        for name, amount in _pipes(profile).items()
        if device.peak_flops.get(name)
    }
    return max(spent, key=lambda name: spent[name], default="")


def _pipes(profile: Profile) -> dict[str, int]:
    return {COUNTED_AS.get(name, name): amount for name, amount in profile.counters.flops.items()}


def _above(
    full: Workload, device: Device, evaluation: Evaluation | None, memory_s: float, compute_s: float
) -> str:
    """Why a time cannot be, from the problem alone: a cache may serve what a kernel asks for twice."""
    timing = evaluation.timing if evaluation else None
    if evaluation is None or timing is None:
        return ""
    cached = full.least_bytes < _CACHES * device.l2_bytes
    limits = [(compute_s, "arithmetic")] if cached else [(memory_s, "memory"), (compute_s, "arithmetic")]
    floor_s, what = max(limits)
    if timing.median_ms * 1e-3 < floor_s * _SLACK:
        return (
            f"{_took(timing)} is less than {what} allows: at least {duration(floor_s)}. Some of the work "
            "is not done, or a figure is wrong; nothing may be built on it."
        )
    outcome = evaluation.outcome
    if isinstance(outcome, NotJudged) and outcome.reason is NotJudgedReason.ABOVE_ROOF:
        return f"{_took(timing)} was refused as above the roof: {evaluation.summary}"
    return ""


def held_to_roof(facts: ProblemFacts, device: Device, evaluation: Evaluation) -> Evaluation:
    """The evaluation, refused where its time cannot be: nothing may be built on such a one."""
    if not evaluation.passed or evaluation.timing is None:
        return evaluation
    above = place(facts, device, evaluation).above
    if not above:
        return evaluation
    finding = Finding(kind="above-roof", message=above)
    return replace(
        evaluation,
        outcome=NotJudged(reason=NotJudgedReason.ABOVE_ROOF),
        summary=above,
        findings=(finding, *evaluation.findings),
    )


def _took(timing: Timing) -> str:
    return f"A time of {duration(timing.median_ms * 1e-3)}"


def _ceiling(pipe: str, flops_per_s: float, note: str, device: Device) -> Ceiling:
    ridge = _ratio(flops_per_s, device.bandwidth_bytes_per_s)
    return Ceiling(pipe=pipe, flops_per_s=flops_per_s, ridge=ridge, note=note)


def _problem_point(label: str, work: Workload, device: Device, peak: float) -> RooflinePoint:
    intensity = _ratio(work.flops, work.least_bytes)
    return RooflinePoint(
        label=label,
        intensity=intensity,
        attainable_flops_per_s=min(peak, intensity * device.bandwidth_bytes_per_s),
    )


def _kernel_point(  # noqa: PLR0913 - one figure each, all of them named at the only call
    run: Workload,
    device: Device,
    roofs: tuple[Ceiling, ...],
    moved: int | None,
    evaluation: Evaluation | None,
    *,
    simulated: bool,
) -> RooflinePoint | None:
    """The kernel by the problem's FLOPs, not by those it executed: extra work must not look like progress."""
    if evaluation is None or (evaluation.timing is None and not moved):
        return None
    intensity = _ratio(run.flops, moved or run.least_bytes)
    took_s = 0.0 if simulated else _took_s(evaluation)
    pipe = busiest_pipe(evaluation.profile, device) if evaluation.profile else ""
    peak = _peak_for(pipe, roofs, device)
    return RooflinePoint(
        label=evaluation.device,
        intensity=intensity,
        attainable_flops_per_s=min(peak, intensity * device.bandwidth_bytes_per_s),
        achieved_flops_per_s=run.flops / took_s if took_s else None,
        simulated=simulated,
        pipe=pipe,
    )


def _crossed(profile: Profile | None, run: Workload) -> int | None:
    """Bytes that count against DRAM: those that crossed it where that was measured, else all requested.

    A kernel's last results are still in the L2 when it ends; that they go to DRAM later makes them no less.
    """
    if profile is None:
        return None
    if profile.source is ProfileSource.NSIGHT:
        return max(distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes)
    return profile.counters.gmem_sectors * SECTOR_BYTES


def _took_s(evaluation: Evaluation) -> float:
    """The measured time; the profiler's own where nothing else was measured, 0 where nothing was."""
    if evaluation.timing is not None:
        return evaluation.timing.median_ms * 1e-3
    launches = evaluation.profile.launches if evaluation.profile else ()
    return sum(one.duration_s or 0.0 for one in launches)


def _peak_for(pipe: str, roofs: tuple[Ceiling, ...], device: Device) -> float:
    """The flat roof over a kernel: its own pipe's, or the problem's highest where that is not known."""
    usable = {one.pipe: one.flops_per_s for one in roofs}
    if pipe:
        return usable.get(pipe, device.peak_flops[pipe])
    return roofs[-1].flops_per_s if roofs else math.inf


def _distinct_over_least(profile: Profile | None, run: Workload) -> float | None:
    if profile is None:
        return None
    return _ratio(distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes)


def _ratio(value: float, by: float) -> float:
    """A quotient; 0 where there is nothing to divide by, as for a problem that moves no bytes."""
    return value / by if by else 0.0
