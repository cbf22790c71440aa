from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.diagnose import diagnose
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Timing, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource
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


def evaluation(counters: Counters, distinct: int = SECTORS, launches: int = 1, **extra) -> Evaluation:
    quiet = Counters(warp_instructions=1, thread_instructions=32)
    launch = LaunchProfile(
        kernel="k",
        grid=(1, 1, 1),
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
