"""Causes that lie in a launch: a last wave, low occupancy, a small grid."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import (
    CompiledCode,
    Counters,
    KernelResources,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)

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


TENSOR = replace(DEVICE, peak_flops={"cuda.f32": 67e12, "tensor.f16": 989e12}, sm_count=132, clock_hz=1.98e9)


def launched(grid: int, block: int, registers: int, smem: int = 0) -> Evaluation:
    found = evaluation(CLEAN)
    assert found.profile is not None
    launch = replace(
        found.profile.launches[0], grid=(grid, 1, 1), block=(block, 1, 1), dynamic_smem_bytes=smem,
        resources=KernelResources(architecture="sm_90a", registers=registers),
    )  # fmt: skip
    return replace(found, profile=replace(found.profile, launches=(launch,)))


NOT_SCALED = replace(FACTS, full=FACTS.scaled)


def causes(facts, found) -> dict[str, object]:
    return {cause.name: cause for cause in diagnose(facts, found, TENSOR).causes}


def test_a_last_wave_of_a_few_ctas_is_a_tail_and_a_full_one_is_none():
    """132 multiprocessors hold 8 CTAs of 256 threads each: 1056 at once."""
    assert "tail-effect" in causes(NOT_SCALED, launched(1100, 256, 32))
    assert "tail-effect" not in causes(NOT_SCALED, launched(2112, 256, 32))
    assert "tail-effect" not in causes(FACTS, launched(1100, 256, 32)), (
        "the grid of a smaller problem says nothing"
    )


def test_low_occupancy_names_its_limiter_and_what_lifts_it():
    cause = causes(FACTS, launched(4096, 128, 32, smem=200_000))["occupancy"]
    assert "limited by shared memory" in cause.statement
    assert "One more CTA needs at most" in cause.statement
    assert "occupancy" not in causes(FACTS, launched(4096, 256, 32))


def test_a_small_grid_of_a_scaled_problem_is_judged_in_proportion():
    """16 CTAs at one 1024th of the size are 16,384 at full size; at full size itself they are too few."""
    assert "too-few-ctas" not in causes(FACTS, launched(16, 256, 32))
    assert "too-few-ctas" in causes(NOT_SCALED, launched(16, 256, 32))


def with_code(**instructions: int) -> Evaluation:
    found = evaluation(CLEAN)
    assert found.profile is not None
    (launch,) = found.profile.launches
    code = CompiledCode(language="SASS", instructions=instructions)
    launch = replace(launch, kernel="kernel_cutlass_product_kernel_CopyAtom_ThrID10_0", code=code)
    return replace(found, profile=replace(found.profile, launches=(launch,)))


def test_wgmma_with_a_wait_each_are_serialised_and_those_of_one_wait_are_not():
    """Counts of the offline author's products before and after they read their sums at once."""
    products = replace(FACTS, workload_class=WorkloadClass.MATMUL)
    cause = causes(products, with_code(HGMMA=24, WARPGROUP=48))["serialised-wgmma"]
    assert "In `product_kernel` the compiler" in cause.statement
    assert cause.strategies == ("wgmma-in-flight",)
    assert "serialised-wgmma" not in causes(products, with_code(HGMMA=24, WARPGROUP=4))
    assert "serialised-wgmma" not in causes(products, with_code(HGMMA=2, WARPGROUP=4)), "a wait on purpose"
    assert "serialised-wgmma" not in causes(products, with_code(FFMA=24, WARPGROUP=48))
