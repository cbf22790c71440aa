"""Causes that counters show, in their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

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


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named_first_with_its_line(fault):
    found = diagnose(FACTS, evaluation(FAULTS[fault]), DEVICE)
    assert found.causes[0].name == fault
    assert found.causes[0].line == 17
    assert found.causes[0].readings
    assert found.causes[0].refuted_by


def test_a_result_carried_through_memory_between_launches_is_extra_traffic():
    found = diagnose(FACTS, evaluation(CLEAN, launches=3), DEVICE)
    assert "extra-traffic" in [cause.name for cause in found.causes]


def test_a_lesser_fault_does_not_lead():
    both = replace(FAULTS["bank-conflicts"], gmem_load_sectors=SECTORS)
    found = diagnose(FACTS, evaluation(both), DEVICE)
    assert found.causes[0].name == "bank-conflicts"


def test_what_burdens_the_busiest_unit_comes_first():
    """Twenty times the instructions next to sixteen times the sectors: memory is the limit, so it leads."""
    both = replace(
        CLEAN,
        gmem_load_sectors=16 * SECTORS,
        warp_instructions=20 * CLEAN.warp_instructions,
        thread_instructions=20 * CLEAN.thread_instructions,
    )
    found = diagnose(FACTS, evaluation(both), DEVICE)
    assert found.bound is Bound.MEMORY
    assert [cause.name for cause in found.causes][:2] == ["uncoalesced", "instruction-overhead"]


TENSOR = replace(DEVICE, peak_flops={"cuda.f32": 67e12, "tensor.f16": 989e12}, sm_count=132, clock_hz=1.98e9)


def causes(facts, found) -> dict[str, object]:
    return {cause.name: cause for cause in diagnose(facts, found, TENSOR).causes}


def test_shared_memory_that_is_busiest_without_conflicts_asks_for_more_reuse():
    """One wavefront a multiply-add of a warp: four would fit the arithmetic in the same time."""
    wavefronts = ELEMENTS
    tiled = replace(
        CLEAN,
        smem_wavefronts=wavefronts,
        smem_ideal_wavefronts=wavefronts,
        flops={"cuda.f32": 64 * wavefronts},
    )
    first = diagnose(FACTS, evaluation(tiled, grid=4096), TENSOR).causes[0]
    assert first.name == "shared-reuse"
    assert "shared-reuse" not in causes(FACTS, evaluation(CLEAN, grid=4096))
