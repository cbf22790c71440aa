"""Roofline model: a problem and its kernels under the compute and bandwidth roofs of a device.

attainable FLOP/s = min(peak, intensity × bandwidth) (Williams, Waterman, Patterson, CACM 52(4), 2009). A
simulated kernel has no FLOP/s; its place follows from the bytes it moves alone. A kernel measured faster than
the problem's floor is impossible: its time or a count is wrong, and the evaluation is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutegen_nb.analysis.figures.quantity import duration
from cutegen_nb.analysis.hardware.hierarchy import MemoryLevel, Traffic, distinct_sectors, levels, traffic
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import Evaluation, NotJudged, NotJudgedReason
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import SECTOR_BYTES, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound
from cutegen_nb.core.timing import Timing

_SHORT = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int8": "i8"}
"""Data types by torch's name to the suffix used in `Device.peak_flops`."""
_ON_TENSOR_CORES = frozenset(
    {
        WorkloadClass.MATMUL,
        WorkloadClass.CONVOLUTION,
        WorkloadClass.ATTENTION,
        WorkloadClass.FUSED,
        WorkloadClass.OTHER,
    }
)
"""Kinds of work that consist of, or may contain, matrix products, for which tensor cores count as a roof."""
_PRODUCTS_PER_FP32 = 3
"""Tensor-core products of TF32, or of scaled fp16, that give one product of fp32 accuracy (Ootomo, Yokota,
2022). Both keep 22 or more bits of a factor in two parts and leave out the product of the low parts."""
COUNTED_AS = {"tensor.s8": "tensor.i8", "tensor.fp8": "tensor.f8"}
"""Pipe names of counters to the names that data sheets use for the same pipe."""
_SLACK = 0.85
"""Share of the memory floor below which a measured time is refused. It is below 1 because a kernel that only
reads is a little faster than the copy that the bandwidth was measured with. The evaluator uses the same
share."""
_FEWER_OPERATIONS = 0.85
"""Share of the time that the reference's FLOPs take, in one product each and in whatever precision, below
which a kernel must need fewer of them. The evaluator flags a time by the same share."""
_L2_MULTIPLE_EXEMPT = 4
"""Problems of fewer bytes than this many L2s are not checked against DRAM: their tensors may be in the L2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """One flat roof: the peak of a compute pipe at the problem's precision."""

    pipe: str
    """Pipe and type as in :attr:`Device.peak_flops`: ``cuda.f32``."""
    flops_per_s: float
    """Dense FLOP/s usable at the problem's precision."""
    ridge: float
    """Ridge point in FLOP/B: the intensity at which this roof meets the DRAM bandwidth."""
    products: int = 1
    """Products of the pipe that give one result of the problem's precision."""
    note: str = ""
    """Remark on how the peak was derived; empty for a plain peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflinePoint:
    """A problem or a kernel as a point of the roofline."""

    label: str
    """Name of the point, in a few words."""
    intensity: float
    """Arithmetic intensity in FLOP/B: the problem's FLOPs ÷ bytes; 0 for a problem without floating-point
    work."""
    attainable_flops_per_s: float
    """FLOP/s that the roofs allow at this intensity: the lower of the flat and the slanted roof."""
    achieved_flops_per_s: float | None = None
    """Measured FLOP/s; None without a time."""
    simulated: bool = False
    """True if the bytes are counts from the simulator."""
    pipe: str = ""
    """Pipe that the counted FLOPs keep busiest; empty without counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Roofline of a device with one problem and, where evaluated, one kernel."""

    bandwidth_bytes_per_s: float
    """DRAM bandwidth in bytes a second: the slanted roof."""
    ceilings: tuple[Ceiling, ...]
    """Flat roofs, lowest first; empty if the device states none for this data type."""
    problem: RooflinePoint
    """The problem at full size with its least bytes: the highest intensity that any kernel can reach."""
    problem_run: RooflinePoint
    """The problem at the size that was run, which differs from `problem` on the simulator."""
    kernel: RooflinePoint | None
    """The evaluated kernel; None without counts and times."""
    floor_ms: float
    """Least time of the full size in ms: the larger of least bytes ÷ bandwidth and FLOPs ÷ peak. 0 if the
    device states neither."""
    bound: Bound
    """The larger term of the floor: MEMORY or COMPUTE."""
    fewer_operations: bool = False
    """True if the kernel was measured faster than the reference's FLOPs take, by an identity that needs fewer
    of them: memory alone sets its floor."""
    sol_fraction: float | None = None
    """Speed-of-light share: floor ÷ measured time; None without a time or a floor."""
    moved_bytes: int | None = None
    """Bytes of the sectors that global memory requests touched; None without counts."""
    moved_over_least: float | None = None
    """`moved_bytes` ÷ the least bytes of the size that was run; None without counts, and where
    PyTorch computed a part by the library policy."""
    distinct_over_least: float | None = None
    """Bytes of each launch's distinct sectors ÷ the least bytes: the traffic left by a cache that never
    evicts."""
    levels: tuple[MemoryLevel, ...] = ()
    """Every memory level whose bandwidth is known, DRAM first."""
    traffic: tuple[Traffic, ...] = ()
    """Bytes that the kernel moves through each memory level; empty without counts."""
    run_flops: int = 0
    """The problem's FLOPs at the size that was run."""
    above: str = ""
    """Reason why the measured time is impossible, in a sentence; empty if it is possible."""

    def intensity_at(self, level: str) -> float | None:
        """Return the problem's FLOPs ÷ the kernel's bytes at a memory level; None without counted bytes."""
        found = next((one for one in self.traffic if one.level == level), None)
        return self.run_flops / found.moved_bytes if found else None


def ceilings(facts: ProblemFacts, device: Device) -> tuple[Ceiling, ...]:
    """Return the flat roofs that count at a problem's precision, lowest first.

    Tensor cores count where the work may be matrix products. fp32 may use them in three products of TF32 or
    of scaled fp16, which keep its accuracy; plain TF32 is below the precision policy and does not count.
    """
    short = _SHORT.get(facts.dtype, "f32")
    # Pipe → (products that give one result of this precision, note).
    offers = {f"cuda.{short}": (1, "")}
    # 16-bit inputs may be computed in fp32 on CUDA cores.
    if short in {"f16", "bf16"}:
        offers["cuda.f32"] = (1, "")
    if facts.workload_class in _ON_TENSOR_CORES:
        offers[f"tensor.{short}"] = (1, "")
        if short == "f32":
            for pipe, name in (("tensor.tf32", "TF32"), ("tensor.f16", "fp16")):
                offers[pipe] = (_PRODUCTS_PER_FP32, f"three {name} products for one of fp32 accuracy")
    found = [
        _ceiling(pipe, device.peak_flops[pipe], products, note, device)
        for pipe, (products, note) in offers.items()
        if device.peak_flops.get(pipe, 0) > 0
    ]
    return tuple(sorted(found, key=lambda item: item.flops_per_s))


def peak_at_precision(dtype: str, device: Device, cores: str) -> float:
    """Return the peak FLOP/s of ``cuda`` or ``tensor`` cores at a precision.

    0 where the device states none.
    """
    short = _SHORT.get(dtype, "f32")
    found = device.peak_flops.get(f"{cores}.{short}", 0.0)
    if cores == "tensor" and short == "f32":
        peaks = (device.peak_flops.get(f"tensor.{kind}", 0.0) for kind in ("tf32", "f16"))
        return max(peaks) / _PRODUCTS_PER_FP32
    if cores == "cuda" and not found and short in {"f16", "bf16"}:
        return device.peak_flops.get("cuda.f32", 0.0)
    return found


def place(facts: ProblemFacts, device: Device, evaluation: Evaluation | None = None) -> Roofline:
    """Place a problem, and a kernel if its evaluation is given, under a device's roofs."""
    timing = evaluation.timing if evaluation else None
    if not device.bandwidth_bytes_per_s and timing:
        # A GPU that no table lists: the copy bandwidth measured with the candidate is the roof.
        device = replace(device, bandwidth_bytes_per_s=timing.bandwidth_bytes_per_s)
    roofs = ceilings(facts, device)
    # Roofs are sorted, so the last is the highest. Without any, compute sets no floor.
    peak = roofs[-1].flops_per_s if roofs else math.inf
    memory_s, compute_s, fewer = _floors(
        facts.full, device, roofs, timing.median_ms * 1e-3 if timing else None
    )
    profile = evaluation.profile if evaluation else None
    simulated = bool(profile and profile.source is ProfileSource.SIMULATED)
    # The simulator runs the scaled-down size; a GPU runs the full size.
    run = facts.scaled if simulated else facts.full
    moved = profile.counters.gmem_sectors * SECTOR_BYTES if profile else None
    # The counters hold no bytes of PyTorch's part, so a hybrid's cannot stand against the whole problem's.
    whole = None if evaluation and evaluation.library else profile
    # Memory and compute can overlap completely, so the slower of the two is the least time.
    floor_s = max(memory_s, compute_s)
    return Roofline(
        bandwidth_bytes_per_s=device.bandwidth_bytes_per_s,
        ceilings=roofs,
        problem=_problem_point("problem, full size", facts.full, device, peak),
        problem_run=_problem_point("problem, size run", run, device, peak),
        kernel=_kernel_point(run, device, roofs, _crossed(whole, run), evaluation, simulated=simulated),
        floor_ms=floor_s * 1e3,
        bound=Bound.MEMORY if memory_s >= compute_s else Bound.COMPUTE,
        fewer_operations=fewer,
        sol_fraction=_ratio(floor_s * 1e3, timing.median_ms) if timing and floor_s else None,
        moved_bytes=moved,
        moved_over_least=_ratio(moved, run.least_bytes) if whole and moved is not None else None,
        distinct_over_least=_distinct_over_least(whole, run),
        levels=levels(device),
        traffic=traffic(profile) if profile else (),
        run_flops=run.flops,
        above=_above(facts.full, device, evaluation, memory_s) if timing else "",
    )


def sol_share(facts: ProblemFacts, device: Device, seconds: float) -> float | None:
    """Return the least time of the full size ÷ `seconds`, measured or estimated; None without a floor."""
    memory_s, compute_s, _ = _floors(facts.full, device, ceilings(facts, device), seconds)
    return max(memory_s, compute_s) / seconds or None


def _floors(
    full: Workload, device: Device, roofs: tuple[Ceiling, ...], seconds: float | None
) -> tuple[float, float, bool]:
    """Return the least seconds by memory and by compute, and whether `seconds` shows fewer operations.

    With fewer operations than the reference's, its FLOPs set no floor. A kernel that is only less precise,
    with one product where three keep the precision, does not count as such.
    """
    memory_s = _ratio(full.least_bytes, device.bandwidth_bytes_per_s)
    compute_s = full.flops / max((item.flops_per_s for item in roofs), default=math.inf)
    least_s = full.flops / max((item.flops_per_s * item.products for item in roofs), default=math.inf)
    fewer = seconds is not None and seconds < _FEWER_OPERATIONS * least_s
    return memory_s, 0.0 if fewer else compute_s, fewer


def busiest_pipe(profile: Profile, device: Device) -> str:
    """Return the pipe whose counted FLOPs take longest at its peak, named as in data sheets.

    Empty without any.
    """
    # Seconds that each pipe's work takes at its peak.
    spent = {
        name: amount / device.peak_flops[name]
        for name, amount in _pipes(profile).items()
        if device.peak_flops.get(name)
    }
    return max(spent, key=lambda name: spent[name], default="")


def _pipes(profile: Profile) -> dict[str, int]:
    return {COUNTED_AS.get(name, name): amount for name, amount in profile.counters.flops.items()}


def _above(full: Workload, device: Device, evaluation: Evaluation | None, memory_s: float) -> str:
    """Return why a measured time is impossible, or an empty text.

    Inputs and outputs must cross DRAM once, which no algebra changes. The FLOPs of the reference's graph
    refuse nothing, since an identity may need fewer. Problems that may lie in the L2 are left out.
    """
    timing = evaluation.timing if evaluation else None
    if evaluation is None or timing is None:
        return ""
    # An unknown L2 (0 bytes) leaves every problem checked.
    cached = full.least_bytes < _L2_MULTIPLE_EXEMPT * device.l2_bytes
    if not cached and timing.median_ms * 1e-3 < memory_s * _SLACK:
        return (
            f"{_took(timing)} is less than memory allows: at least {duration(memory_s)}. Some of the work "
            "is not done, or a figure is wrong; nothing may be built on it."
        )
    outcome = evaluation.outcome
    if isinstance(outcome, NotJudged) and outcome.reason is NotJudgedReason.ABOVE_ROOF:
        return f"{_took(timing)} was refused as above the roof: {evaluation.summary}"
    return ""


def refuse_above_roof(facts: ProblemFacts, device: Device, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation, refused as above-roof if its measured time is impossible."""
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


def _ceiling(pipe: str, peak: float, products: int, note: str, device: Device) -> Ceiling:
    flops_per_s = peak / products
    # peak = ridge × bandwidth, hence the intensity at which both roofs meet.
    ridge = _ratio(flops_per_s, device.bandwidth_bytes_per_s)
    return Ceiling(pipe=pipe, flops_per_s=flops_per_s, ridge=ridge, products=products, note=note)


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
    """Place the kernel by the problem's FLOPs, not those it executed.

    Extra work must not look like progress.
    """
    if evaluation is None or (evaluation.timing is None and not moved):
        return None
    # Without counted bytes the least bytes give the highest intensity that is possible.
    intensity = _ratio(run.flops, moved or run.least_bytes)
    took_s = 0.0 if simulated else _measured_s(evaluation)
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
    """Return the bytes counted against DRAM: those measured to cross it, else all that were requested.

    A measured count is raised to the least bytes: a kernel's last results may still be in the L2 when it ends
    and reach DRAM later.
    """
    if profile is None:
        return None
    if profile.source is ProfileSource.NSIGHT:
        return max(distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes)
    return profile.counters.gmem_sectors * SECTOR_BYTES


def _measured_s(evaluation: Evaluation) -> float:
    """Return the measured time in seconds; the profiler's own where no timing was done, 0 without either."""
    if evaluation.timing is not None:
        return evaluation.timing.median_ms * 1e-3
    launches = evaluation.profile.launches if evaluation.profile else ()
    return sum(one.duration_s or 0.0 for one in launches)


def _peak_for(pipe: str, roofs: tuple[Ceiling, ...], device: Device) -> float:
    """Return the flat roof over a kernel: its own pipe's, or the problem's highest if the pipe is unknown."""
    usable = {one.pipe: one.flops_per_s for one in roofs}
    if pipe:
        # `usable` holds peaks at the problem's precision (TF32 ÷ 3); other pipes have their plain peak.
        return usable.get(pipe, device.peak_flops[pipe])
    return roofs[-1].flops_per_s if roofs else math.inf


def _distinct_over_least(profile: Profile | None, run: Workload) -> float | None:
    if profile is None:
        return None
    return _ratio(distinct_sectors(profile) * SECTOR_BYTES, run.least_bytes)


def _ratio(value: float, by: float) -> float:
    """Return a quotient, or 0 if the divisor is 0, as for a problem that moves no bytes."""
    return value / by if by else 0.0
