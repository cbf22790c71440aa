from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.hardware.roofline import ceilings, place, refuse_above_roof, sol_share
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound
from cutegen_nb.core.timing import Timing

EMPTY = Graph(inputs=(), parameters=(), nodes=(), outputs=())
H200 = Device(
    kind=DeviceKind.GPU,
    name="NVIDIA H200",
    architecture="sm_90a",
    bandwidth_bytes_per_s=4.8e12,
    peak_flops={"cuda.f32": 67e12, "cuda.f16": 134e12, "tensor.f16": 989e12, "tensor.tf32": 495e12},
    source="data sheet",
)


def facts(flops: int, least_bytes: int, kind=WorkloadClass.ELEMENTWISE, dtype="float32", scale: int = 1024):
    return ProblemFacts(
        workload_class=kind,
        full=Workload(graph=EMPTY, flops=flops, least_bytes=least_bytes),
        scaled=Workload(graph=EMPTY, flops=flops // scale, least_bytes=least_bytes // scale),
        dtype=dtype,
    )


RELU = facts(4096 * 393216, 2 * 4 * 4096 * 393216)
PRODUCT = facts(2 * 4096**3, 3 * 2 * 4096**2, WorkloadClass.MATMUL, "float16")


def evaluation(profile=None, median_ms: float | None = None) -> Evaluation:
    timing = None
    if median_ms:
        timing = Timing(median_ms=median_ms, samples_ms=(), baselines=(), bandwidth_bytes_per_s=4e12)
    return Evaluation(
        outcome=Judged(verdict=Verdict.PASSED), summary="", device="d", profile=profile, timing=timing
    )


def simulated(sectors: int, distinct: int = 0) -> Profile:
    launch = LaunchProfile(
        kernel="k",
        grid=(1, 1, 1),
        block=(32, 1, 1),
        dynamic_smem_bytes=0,
        counters=Counters(gmem_load_sectors=sectors),
        gmem_distinct_sectors=distinct,
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=(launch,))


def test_relu_is_bound_by_memory_and_its_floor_is_bytes_over_bandwidth():
    roof = place(RELU, H200)
    assert roof.bound is Bound.MEMORY
    assert roof.floor_ms == pytest.approx(12_884_901_888 / 4.8e12 * 1e3)
    assert roof.problem.intensity == pytest.approx(0.125)
    assert roof.problem.attainable_flops_per_s == pytest.approx(0.125 * 4.8e12)


def test_a_half_precision_product_is_bound_by_tensor_cores():
    roof = place(PRODUCT, H200)
    assert roof.bound is Bound.COMPUTE
    assert roof.floor_ms == pytest.approx(2 * 4096**3 / 989e12 * 1e3)
    assert [item.pipe for item in roof.ceilings] == ["cuda.f32", "cuda.f16", "tensor.f16"]
    assert roof.ceilings[-1].ridge == pytest.approx(989e12 / 4.8e12)


def test_fp32_products_may_use_tensor_cores_only_at_a_third():
    roofs = ceilings(facts(1, 1, WorkloadClass.MATMUL), H200)
    found = {item.pipe: item.flops_per_s for item in roofs}
    assert found == pytest.approx({"cuda.f32": 67e12, "tensor.tf32": 165e12, "tensor.f16": 989e12 / 3})
    assert [item.pipe for item in roofs][-1] == "tensor.f16"


def test_elementwise_work_has_no_tensor_core_roof():
    assert [item.pipe for item in ceilings(RELU, H200)] == ["cuda.f32"]


def test_simulated_sectors_are_held_against_the_least_bytes_of_the_size_run():
    least = RELU.scaled.least_bytes // 32
    roof = place(RELU, H200, evaluation(simulated(8 * least, 2 * least)))
    assert roof.moved_over_least == pytest.approx(8)
    assert roof.distinct_over_least == pytest.approx(2)
    assert roof.kernel is not None
    assert roof.kernel.simulated
    assert roof.kernel.achieved_flops_per_s is None
    assert roof.kernel.intensity == pytest.approx(0.125 / 8)
    assert roof.sol_fraction is None


def test_a_time_gives_the_speed_of_light_share():
    roof = place(RELU, H200, evaluation(median_ms=3.0))
    assert roof.sol_fraction == pytest.approx(roof.floor_ms / 3.0)
    assert roof.kernel is not None
    assert roof.kernel.achieved_flops_per_s == pytest.approx(RELU.full.flops / 3e-3)


@pytest.mark.parametrize(("part", "bound"), [(1.1, Bound.COMPUTE), (0.9, Bound.COMPUTE), (0.8, Bound.MEMORY)])
def test_a_kernel_that_needs_fewer_operations_has_memory_alone_for_its_floor(part, bound):
    compute_ms = place(PRODUCT, H200).floor_ms
    roof = place(PRODUCT, H200, evaluation(median_ms=part * compute_ms))
    assert roof.bound is bound
    assert roof.fewer_operations is (bound is Bound.MEMORY)
    floor_ms = compute_ms if bound is Bound.COMPUTE else PRODUCT.full.least_bytes / 4.8e12 * 1e3
    assert roof.sol_fraction == pytest.approx(floor_ms / (part * compute_ms))
    assert sol_share(PRODUCT, H200, part * compute_ms / 1e3) == pytest.approx(roof.sol_fraction)


@pytest.mark.parametrize(("part", "fewer"), [(0.9, False), (0.4, False), (0.28, True)])
def test_a_kernel_that_is_only_less_precise_does_not_count_as_one_with_fewer_operations(part, fewer):
    product = replace(PRODUCT, dtype="float32")
    # Three fp16 products for one of fp32: one alone takes a third of the floor.
    roof = place(product, H200, evaluation(median_ms=part * place(product, H200).floor_ms))
    assert roof.fewer_operations is fewer
    assert fewer or roof.sol_fraction == pytest.approx(1 / part)


def test_a_gpu_in_no_table_gives_no_floor_and_no_share():
    unknown = replace(H200, bandwidth_bytes_per_s=0.0, peak_flops={})
    roof = place(RELU, unknown)
    assert roof.floor_ms == 0
    assert place(RELU, unknown, evaluation(median_ms=4.0)).floor_ms == pytest.approx(
        12_884_901_888 / 4e12 * 1e3
    )


def test_a_problem_without_arithmetic_has_intensity_nought():
    roof = place(facts(0, 1024), H200)
    assert roof.problem.intensity == 0
    assert roof.bound is Bound.MEMORY


def test_a_kernel_stands_under_the_roof_of_the_pipe_it_uses():
    """A product on CUDA cores is no slower than its roof because tensor cores have a higher one."""
    least = PRODUCT.scaled.least_bytes // 32
    found = simulated(least)
    on_cuda, on_tensor = (
        replace(
            found,
            launches=(replace(found.launches[0], counters=Counters(gmem_load_sectors=least, flops=flops)),),
        )
        for flops in ({"cuda.f32": 10**9, "tensor.f16": 10**6}, {"tensor.f16": 10**9, "cuda.f32": 10**6})
    )
    assert place(PRODUCT, H200, evaluation(on_cuda)).kernel.pipe == "cuda.f32"
    assert place(PRODUCT, H200, evaluation(on_tensor)).kernel.pipe == "tensor.f16"


def test_a_kernel_has_an_intensity_for_every_memory_it_crosses():
    least = RELU.scaled.least_bytes // 32
    roof = place(RELU, H200, evaluation(simulated(8 * least, least)))
    assert roof.intensity_at("DRAM") == pytest.approx(0.125)
    assert roof.intensity_at("L2") == pytest.approx(0.125 / 8)
    assert roof.intensity_at("shared memory") is None


def test_only_memories_with_a_source_are_roofs():
    known = replace(H200, l2_bandwidth_bytes_per_s=8.8e12, l2_source="a paper", sm_count=132, clock_hz=1.98e9)
    assert [one.name for one in place(RELU, known).levels] == ["DRAM", "L2", "shared memory"]
    assert place(RELU, known).levels[-1].bandwidth_bytes_per_s == pytest.approx(128 * 132 * 1.98e9)
    assert [one.name for one in place(RELU, H200).levels] == ["DRAM", "shared memory"]
    bare = replace(H200, peak_flops={})
    assert [one.name for one in place(RELU, bare).levels] == ["DRAM"]


@pytest.mark.parametrize(("median_ms", "blocked"), [(1.0, True), (2.5, False), (3.0, False)])
def test_a_time_well_below_the_floor_blocks_and_says_why(median_ms, blocked):
    """The floor is 2.68 ms; 0.85 of it is still believed."""
    said = place(RELU, H200, evaluation(median_ms=median_ms)).above
    assert bool(said) is blocked
    assert not blocked or "less than memory allows: at least 2.68 ms" in said


def test_a_time_that_memory_does_not_allow_is_refused_and_its_reason_leads_the_findings():
    flag = Finding(kind="simplified", message=".", severity=Severity.FLAG)
    impossible = replace(evaluation(median_ms=1.0), findings=(flag,))
    found = refuse_above_roof(RELU, H200, impossible)
    assert found.label == "not judged: ABOVE_ROOF"
    assert [item.kind for item in found.findings] == ["above-roof", "simplified"]
    assert found.summary == found.findings[0].message
    assert "is less than memory allows: at least 2.68 ms" in found.summary
    assert found.may_be_overruled
    assert place(RELU, H200, found).above.endswith(found.summary)


@pytest.mark.parametrize("median_ms", [None, 2.7, 100.0])
def test_a_possible_time_or_none_is_left_as_it_is(median_ms):
    given = evaluation(median_ms=median_ms)
    assert refuse_above_roof(RELU, H200, given) is given


def test_a_problem_that_may_lie_in_the_l2_is_not_refused_and_a_failure_stays_one():
    small = facts(1024, 8 << 20)
    cached = replace(H200, l2_bytes=50 << 20)
    given = evaluation(median_ms=1e-4)
    assert refuse_above_roof(small, cached, given) is given
    assert refuse_above_roof(small, H200, given).label == "not judged: ABOVE_ROOF"
    wrong = replace(evaluation(median_ms=1e-4), outcome=Judged(verdict=Verdict.WRONG_VALUES))
    assert refuse_above_roof(RELU, H200, wrong) is wrong
