"""Tables of what Nsight Compute measured."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.tables.measured import launches, measured_tables, units, waits
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import (
    DURATION,
    Access,
    Counters,
    KernelResources,
    LaunchProfile,
    Metric,
    Profile,
    ProfileSource,
)

COUNTERS = Counters(
    warp_instructions=1000, instructions={"fp32": 250, "load.global": 750}, flops={"cuda.f32": 3000, "tensor.f16": 1000},
    gmem_accesses={
        "load": Access(requests=10, bytes=1280, passes=80, ideal=40),
        "async-copy": Access(requests=10, passes=20, ideal=20),
    },
)  # fmt: skip
LAUNCH = LaunchProfile(
    kernel="kernel_cutlass_scale_tensorptrf32_0", grid=(4, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=1024,
    counters=COUNTERS,
    resources=KernelResources(architecture="sm_90a", registers=32, spill_store_bytes=4, spill_load_bytes=8),
)  # fmt: skip
SIMULATED = Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=(LAUNCH,))


def measured(**metrics):
    found = {
        getattr(names, name): Metric(value=value) for name, value in metrics.items() if hasattr(names, name)
    }
    found |= {
        names.STALL.format(name): Metric(value=value) for name, value in metrics.items() if name.islower()
    }
    launch = replace(LAUNCH, metrics={DURATION: Metric(value=2e6, unit="ns"), **found})
    return replace(SIMULATED, source=ProfileSource.NSIGHT, launches=(launch,))


def test_simulated_counts_have_no_measured_tables():
    assert measured_tables(SIMULATED) == ()
    assert [table.title for table in measured_tables(measured())] == ["Kernels as Nsight Compute ran them"]


def test_a_launch_is_told_with_time_traffic_and_what_was_not_collected():
    found = measured(DRAM_READ=1e6, L2_HITS=50.0, BUSY_CYCLES=75.0, ELAPSED_CYCLES=100.0)
    assert launches(found).rows == (
        ("scale", "2.00 ms", "1.00 MB", "–", "–", "50.0 %", "–", "75.0 %"),
    )  # fmt: skip


def test_units_and_waits_are_told_the_largest_first_without_what_is_small():
    found = measured(DRAM_SHARE=40.0, ISSUE_SHARE=50.0, long_scoreboard=3.0, barrier=6.9, wait=0.1)
    assert [row[:2] for row in units(found).rows] == [("instruction issue", "50.0 %"), ("DRAM", "40.0 %")]
    assert waits(found).rows == (("barrier", "6.90", "69.0 %"), ("long scoreboard", "3.00", "30.0 %"))
    assert units(SIMULATED).rows == ()
