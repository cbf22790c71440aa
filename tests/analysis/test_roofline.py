from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.roofline import ceilings, place
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Timing, Verdict
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import ProblemFacts, Workload, WorkloadClass
from cutegen_nb.core.profile import Counters, LaunchProfile, Profile, ProfileSource
from cutegen_nb.core.strategy import Bound

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
    assert {item.pipe: item.flops_per_s for item in roofs} == {"cuda.f32": 67e12, "tensor.tf32": 165e12}


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
