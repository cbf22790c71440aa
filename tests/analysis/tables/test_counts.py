"""Tables of counts, simulated or by Nsight Compute."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.tables.counts import (
    detail_tables,
    flops,
    global_memory,
    kernel_name,
    pipes,
    resources,
)
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
EMPTY = replace(SIMULATED, launches=())


def measured(**metrics):
    found = {
        getattr(names, name): Metric(value=value) for name, value in metrics.items() if hasattr(names, name)
    }
    found |= {
        names.STALL.format(name): Metric(value=value) for name, value in metrics.items() if name.islower()
    }
    launch = replace(LAUNCH, metrics={DURATION: Metric(value=2e6, unit="ns"), **found})
    return replace(SIMULATED, source=ProfileSource.NSIGHT, launches=(launch,))


def test_instructions_are_told_by_pipe_the_most_first():
    table = pipes(SIMULATED)
    assert table.title == "Instructions by pipe (simulated counts)"
    assert table.rows == (
        ("load.global", "load, global", "750", "75.0 %"), ("fp32", "single", "250", "25.0 %"),
    )  # fmt: skip
    assert "PTX instructions" in table.note
    assert "The machine's instructions" in pipes(measured()).note


def test_operations_are_told_by_pipe_and_type():
    assert flops(SIMULATED).rows == (
        ("cuda.f32", "3.00 kFLOP", "75.0 %"), ("tensor.f16", "1.00 kFLOP", "25.0 %"),
    )  # fmt: skip


def test_accesses_are_told_by_kind_and_together():
    load, copy, whole = global_memory(SIMULATED).rows
    assert load == ("load", "10", "1.28 kB", "80", "8.00", "40", "40", "50.0 %")
    assert copy == ("async copy", "10", "–", "20", "2.00", "20", "0", "100.0 %")
    assert whole == ("all", "20", "1.28 kB", "100", "5.00", "60", "40", "60.0 %")


def test_tables_without_rows_are_left_out():
    assert [table.title.partition(" (")[0] for table in detail_tables(SIMULATED)] == [
        "Instructions by pipe", "Arithmetic", "Global memory",
    ]  # fmt: skip
    assert detail_tables(EMPTY) == ()
    assert all(len(row) == len(table.columns) for table in detail_tables(SIMULATED) for row in table.rows)


def test_resources_are_told_once_for_each_configuration():
    other = replace(LAUNCH, block=(128, 1, 1))
    unknown = replace(LAUNCH, resources=None)
    table = resources(replace(SIMULATED, launches=(LAUNCH, LAUNCH, other, unknown)))
    assert len(table.rows) == 2
    row = dict(zip((name for name, _ in table.columns), table.rows[0], strict=True))
    assert (row["Kernel"], row["Registers"], row["Spilled"], row["Stack"]) == ("scale", "32", "12 B", "none")
    assert (row["Shared memory"], row["CTAs / SM"], row["Occupancy"]) == ("0 B + 1.02 kB", "8", "100.0 %")
    moved = replace(LAUNCH, counters=Counters(local_load_bytes=2000), metrics={DURATION: Metric(value=1.0)})
    assert resources(replace(SIMULATED, launches=(moved,))).rows[0][2:4] == ("2.00 kB moved", "–")


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("kernel_cutlass_scale_tensorptrf32gmem_0", "scale"),
        ("kernel_cutlass_add_rows_i32_0", "add_rows"),
        ("kernel_cutlass_run___main__Gemm_object_at__tensorptrf32_0", "Gemm.run"),
        ("void at::native::kernel<float>", "void at::native::kernel<float>"),
        ("k" * 41, "k" * 39 + "…"),
    ],
)
def test_a_kernel_is_named_as_in_its_source(kernel, name):
    assert kernel_name(replace(LAUNCH, kernel=kernel)) == name
