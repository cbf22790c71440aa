from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import (
    Counters,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)
from cutegen_nb.core.strategy import Bound
from cutegen_nb.core.timing import Timing

EMPTY = Graph(inputs=(), parameters=(), nodes=(), outputs=())
ELEMENTS = 1 << 20
SECTORS = ELEMENTS * 8 // 32
FACTS = ProblemFacts(
    workload_class=WorkloadClass.ELEMENTWISE,
    full=Workload(graph=EMPTY, flops=1 << 30, least_bytes=8 << 30),
    scaled=Workload(graph=EMPTY, flops=ELEMENTS, least_bytes=8 * ELEMENTS),
    dtype="float32",
)
DEVICE = Device(
    kind=DeviceKind.SIMULATOR,
    name="H200 (simulated)",
    architecture="sm_90a",
    bandwidth_bytes_per_s=4.8e12,
    peak_flops={"cuda.f32": 67e12},
    source="data sheet",
)
CLEAN = Counters(
    warp_instructions=ELEMENTS // 32 * 6,
    thread_instructions=ELEMENTS * 6,
    flops={"cuda.f32": ELEMENTS},
    gmem_load_sectors=SECTORS // 2,
    gmem_store_sectors=SECTORS // 2,
    gmem_ideal_sectors=SECTORS,
    smem_wavefronts=ELEMENTS // 32,
    smem_ideal_wavefronts=ELEMENTS // 32,
)


def evaluation(
    counters: Counters, distinct: int = SECTORS, launches: int = 1, grid: int = 1, **extra
) -> Evaluation:
    quiet = Counters(warp_instructions=1, thread_instructions=32)
    launch = LaunchProfile(
        kernel="k",
        grid=(grid, 1, 1),
        block=(256, 1, 1),
        dynamic_smem_bytes=0,
        counters=counters,
        lines=(
            LineCounters(file="/w/candidate.py", line=11, counters=quiet),
            LineCounters(file="/w/candidate.py", line=17, counters=counters),
            LineCounters(file="/v/site-packages/cutlass/cute/core.py", line=99, counters=counters + counters),
        ),
        gmem_distinct_sectors=distinct,
    )
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED),
        summary="",
        device="sm_90a",
        profile=Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=(launch,) * launches),
        **extra,
    )


def test_a_clean_streaming_kernel_is_bound_by_memory_with_no_cause():
    found = diagnose(FACTS, evaluation(CLEAN), DEVICE)
    assert found.bound is Bound.MEMORY
    assert found.causes == ()
    assert found.demands[0].unit == "DRAM"
    assert found.demands[0].fraction == 1.0
    assert found.source == "simulated counts"


FAULTS = {
    "uncoalesced": replace(CLEAN, gmem_load_sectors=8 * SECTORS),
    "bank-conflicts": replace(CLEAN, smem_wavefronts=32 * CLEAN.smem_wavefronts),
    "divergence": replace(CLEAN, warp_instructions=20 * CLEAN.warp_instructions),
    "instruction-overhead": replace(
        CLEAN,
        warp_instructions=30 * CLEAN.warp_instructions,
        thread_instructions=30 * CLEAN.thread_instructions,
    ),
    "repeated-requests": replace(CLEAN, gmem_load_sectors=8 * SECTORS, gmem_ideal_sectors=8 * SECTORS),
}


def test_text_names_counters_and_what_would_refute_them():
    first, cause = diagnose(FACTS, evaluation(FAULTS["uncoalesced"]), DEVICE).text()[:2]
    assert first.startswith("Bound: memory (simulated counts).")
    assert "gmem_sectors ÷ gmem_ideal_sectors" in cause
    assert "Line 17." in cause
    assert "Refuted if" in cause


def test_a_tiny_problem_is_bound_by_latency():
    tiny = replace(FACTS, full=Workload(graph=EMPTY, flops=64, least_bytes=512))
    found = diagnose(tiny, evaluation(CLEAN), DEVICE)
    assert found.bound is Bound.LATENCY
    assert found.causes[0].name == "launch-bound"


def test_a_time_far_from_the_floor_is_told_even_without_counters():
    timing = Timing(median_ms=20.0, samples_ms=(), baselines=(), bandwidth_bytes_per_s=4e12)
    timed = replace(evaluation(CLEAN), profile=None, timing=timing)
    found = diagnose(FACTS, timed, DEVICE)
    assert found.source == "times only"
    assert [cause.name for cause in found.causes] == ["below-roof"]


def test_with_nothing_evaluated_the_problem_alone_sets_the_bound():
    found = diagnose(FACTS, None, DEVICE)
    assert (found.bound, found.source, found.causes) == (Bound.MEMORY, "nothing measured", ())


def test_a_device_in_no_table_names_ratios_but_no_launch_bound():
    unknown = replace(DEVICE, bandwidth_bytes_per_s=0.0, peak_flops={})
    found = diagnose(FACTS, evaluation(FAULTS["uncoalesced"]), unknown)
    assert [cause.name for cause in found.causes] == ["uncoalesced"]


TENSOR = replace(DEVICE, peak_flops={"cuda.f32": 67e12, "tensor.f16": 989e12}, sm_count=132, clock_hz=1.98e9)


def product(side: int) -> Workload:
    return Workload(graph=EMPTY, flops=2 * side**3, least_bytes=6 * side**2)


def tensor_product(side: int, full: int) -> tuple[ProblemFacts, Evaluation]:
    """Tiles of 256 by 256: each element of A and B is asked for once a tile of the other dimension."""
    facts = ProblemFacts(
        workload_class=WorkloadClass.MATMUL, full=product(full), scaled=product(side), dtype="float16"
    )
    sectors = (2 * 2 * side**3 // 256 + 2 * side**2) // 32
    counters = Counters(
        warp_instructions=side**3 // 4096, thread_instructions=side**3 // 128,
        flops={"tensor.f16": 2 * side**3}, gmem_load_sectors=sectors, gmem_ideal_sectors=sectors,
    )  # fmt: skip
    return facts, evaluation(counters, distinct=6 * side**2 // 32, grid=max(1, side // 256) ** 2)


def test_a_product_simulated_small_is_judged_by_the_reuse_of_its_full_size():
    facts, small = tensor_product(512, 4096)
    found = diagnose(facts, small, TENSOR)
    assert (found.bound, found.demands[0].unit) == (Bound.COMPUTE, "tensor.f16 pipe")
    same = diagnose(replace(facts, full=facts.scaled), small, TENSOR)
    by_unit = {one.unit: one.fraction for one in found.demands}
    assert next(one.fraction for one in same.demands if one.unit == "DRAM") > 4 * by_unit["DRAM"]


def test_readings_of_the_bound_name_counters_work_and_rates():
    names = [item.name for item in diagnose(FACTS, evaluation(CLEAN), TENSOR).readings]
    assert names[0] == "DRAM (gmem_distinct_sectors × 32)"
    assert "instruction issue (warp_instructions)" in names
