"""The zone of a problem between the ridge points of its roofline."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.bottleneck.diagnose import diagnose
from cutegen_nb.analysis.hardware.zone import ZoneName
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

EMPTY = Graph(inputs=(), parameters=(), nodes=(), outputs=())
ELEMENTS = 1 << 20
SECTORS = ELEMENTS * 8 // 32
DEVICE = Device(
    kind=DeviceKind.SIMULATOR,
    name="H200 (simulated)",
    architecture="sm_90a",
    bandwidth_bytes_per_s=4.8e12,
    peak_flops={"cuda.f32": 67e12},
    source="data sheet",
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


@pytest.mark.parametrize(
    ("side", "expected"), [(32, ZoneName.MEMORY), (512, ZoneName.MIDDLE), (4096, ZoneName.COMPUTE)]
)
def test_the_zone_is_read_between_the_ridge_points_of_both_kinds_of_cores(side, expected):
    """An fp16 product of this side has side ÷ 3 FLOP a byte; the ridges are 14 and 206."""
    facts, small = tensor_product(64, side)
    found = diagnose(facts, small, TENSOR)
    assert found.zone is not None
    assert found.zone.name is expected
    assert (round(found.zone.cuda_ridge), round(found.zone.tensor_ridge)) == (14, 206)
    assert "ridge point of CUDA cores 14, of tensor cores 206 FLOP/B" in "\n".join(found.text())
