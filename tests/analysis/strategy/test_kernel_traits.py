"""Traits of a kernel, read from its counts, its machine code and its source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits, kernel_traits
from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.profile import (
    Access,
    CompiledCode,
    Counters,
    KernelResources,
    LaunchProfile,
    LineCounters,
    Profile,
    ProfileSource,
)

PLAIN = "import cutlass.cute as cute\n"


def launch(grid=16, block=256, code=(), lines=(), **counted):
    """A launch that loads 128 bytes a request and stores as much, with some counters changed."""
    base = {
        "warp_instructions": 1000, "gmem_load_bytes": 65536, "gmem_store_bytes": 65536,
        "gmem_load_sectors": 2048, "gmem_store_sectors": 2048, "gmem_ideal_sectors": 4096,
        "gmem_requests": 1024,
    }  # fmt: skip
    return LaunchProfile(
        kernel="k", grid=(grid, 1, 1), block=(block, 1, 1), dynamic_smem_bytes=1024, static_smem_bytes=512,
        counters=Counters(**{**base, **counted}), lines=lines,
        resources=KernelResources(architecture="sm_80", registers=40),
        code=CompiledCode(language="SASS", instructions=dict(code)) if code is not None else None,
    )  # fmt: skip


def profile(*launches):
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=launches)


@pytest.fixture
def facts(workloads):
    """Facts of a problem whose full size is the one that ran; a second workload is another full size."""

    def made(scaled, full=None):
        return ProblemFacts(
            workload_class=WorkloadClass.OTHER, full=full or scaled, scaled=scaled, dtype="float32"
        )

    return made


@pytest.fixture
def relu(workloads, facts):
    return facts(workloads.relu(16384))


@pytest.fixture
def rows(workloads, facts):
    return facts(workloads.row_sum(16, 1024))


@pytest.fixture
def product(workloads, facts):
    return facts(workloads.product(128, 128, 128))


def test_a_kernel_that_was_not_counted_is_read_from_its_text(relu, rows):
    text = "@cute.kernel\ndef k():\n    cute.arch.shuffle_sync_bfly(1)\n    utils.SmemAllocator()\n"
    assert kernel_traits(PLAIN, relu, None) == KernelTraits()
    assert kernel_traits(text, rows, None).row_owner == "CTA"
    assert kernel_traits(text, relu, None).row_owner == ""
    assert kernel_traits(text.replace("utils.SmemAllocator()", "pass"), rows, None).row_owner == "warp"
    assert kernel_traits("x.ldmatrix = a.LdMatrix8x8x16bOp", relu, None).tensor_types == ("?",)
    assert kernel_traits("not Python at (all", relu, None) == KernelTraits()


@pytest.mark.parametrize(
    "text", ["warp.MmaTF32Op(shape)", "sm90.make_trivial_tiled_mma(a, b)", "warpgroup.MmaF8Op(a, b)"]
)
def test_an_operation_of_tensor_cores_tells_them_where_nothing_was_counted(relu, text):
    assert kernel_traits(text, relu, None).tensor_types == ("?",)
    assert kernel_traits("cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(x))", relu, None).tensor_types == ()


def test_a_kernel_that_loads_by_tma_is_pipelined_and_need_not_multiply(relu):
    text = "a.make_tiled_tma_atom(x)\npipeline.PipelineTmaAsync.create()\n"
    found = kernel_traits(text, relu, None)
    assert (found.tensor_types, found.async_copies, found.groups_in_flight) == ((), True, 1)
    assert kernel_traits(text, relu, profile(launch())).groups_in_flight == 1
    assert kernel_traits("a.make_tiled_mma(x)", relu, None).tensor_types == ()


def test_a_sample_at_full_size_replaces_the_profile(workloads, facts):
    both = facts(workloads.relu(16384), workloads.relu(1 << 24))
    counted, sampled = launch(grid=16), launch(grid=16384)
    sample = FullSizeSample(launches=(LaunchSample(profile=sampled, ctas=4),))
    assert kernel_traits(PLAIN, both, profile(counted)).ctas == 16 * 1024
    assert kernel_traits(PLAIN, both, profile(counted), sample).ctas == 16384
    assert kernel_traits(PLAIN, both, profile(counted), FullSizeSample(missing="no")).ctas == 16 * 1024
    assert kernel_traits(PLAIN, both, None, sample).launches == 1


@pytest.mark.parametrize(
    ("code", "widths", "wide"),
    [
        ({"LDG.128": 4, "STG.128": 4}, (128, 128), 1.0),
        ({"LDG.32": 4, "STG.32": 4}, (32, 32), 0.0),
        ({"LDG.128": 4, "STG.32": 4}, (32, 128), 0.5),
        ({"FFMA": 4}, (0, 0), 0.0),
    ],
)
def test_widths_are_those_of_the_machine_code(relu, code, widths, wide):
    found = kernel_traits(PLAIN, relu, profile(launch(code=code)))
    assert (found.narrowest_bits, found.widest_bits) == widths
    assert found.wide_fraction == wide


def test_where_code_has_two_widths_each_line_tells_its_own(relu):
    counted = Counters(gmem_load_bytes=49152, gmem_requests=96)  # 512 bytes a request: 128 bits a thread
    narrow = Counters(gmem_load_bytes=16384, gmem_requests=128)
    lines = tuple(
        LineCounters(file="candidate.py", line=number, counters=item)
        for number, item in enumerate((counted, narrow), start=1)
    )
    code = {"LDG.128": 1, "LDG.32": 1, "STG.128": 1}
    found = kernel_traits(PLAIN, relu, profile(launch(code=code, lines=lines)))
    assert found.wide_fraction == (49152 + 65536) / 131072


def test_a_row_too_short_for_vectors_asks_for_the_width_that_it_permits(workloads, facts):
    """A warp that shares a row of 64 floats has 64 bits a lane, so that 64 bits are as wide as can be."""
    short = facts(workloads.row_sum(256, 64))
    code = {"LDG.64": 1, "STG.64": 1, "SHFL.BFLY": 5}
    assert kernel_traits(PLAIN, short, profile(launch(code=code))).wide_fraction == 1.0
    single = facts(workloads.row_sum(512, 32))
    code = {"LDG.32": 1, "STG.32": 1, "SHFL.BFLY": 5}
    assert kernel_traits(PLAIN, single, profile(launch(code=code))).wide_fraction is None


@pytest.mark.parametrize(
    ("counted", "code", "owner"),
    [
        ({"barriers": 8}, {"SHFL.BFLY": 5}, "CTA"),
        ({}, {"SHFL.BFLY": 5}, "warp"),
        ({}, {"FADD": 5}, "thread"),
        ({}, None, ""),
    ],
)
def test_the_owner_of_a_row_follows_from_barriers_and_exchanges(rows, relu, counted, code, owner):
    assert kernel_traits(PLAIN, rows, profile(launch(code=code, **counted))).row_owner == owner
    assert kernel_traits(PLAIN, relu, profile(launch(code=code, **counted))).row_owner == ""


def test_sectors_intermediates_and_launches_are_counted(relu):
    wasteful = profile(launch(gmem_load_sectors=6144))
    assert kernel_traits(PLAIN, relu, wasteful).coalesced_fraction == 0.5
    assert kernel_traits(PLAIN, relu, profile(launch())).intermediate_fraction == 0.0
    two = kernel_traits(PLAIN, relu, profile(launch(), launch()))
    assert (two.launches, two.intermediate_fraction) == (2, 0.5)


def test_partial_sums_that_a_later_launch_completes_are_a_split(rows):
    """64 CTAs for 16 rows leave a value each, and a small launch adds them up."""
    first = launch(grid=64, gmem_store_bytes=256)
    last = launch(grid=1, gmem_load_bytes=256, gmem_store_bytes=64)
    found = kernel_traits(PLAIN, rows, profile(first, last))
    assert (found.split, found.values_passed_bytes) == (True, 256)
    alone = kernel_traits(PLAIN, rows, profile(launch(gmem_store_bytes=64)))
    assert (alone.split, alone.values_passed_bytes) == (False, 0)
    atomics = {"gmem_accesses": {"reduction": Access(requests=4, bytes=16, passes=4, ideal=4)}}
    assert kernel_traits(PLAIN, rows, profile(launch(grid=64, **atomics))).split


@pytest.mark.parametrize(("times", "passes"), [(1, 1.0), (2, 2.0), (3, 3.0)])
def test_rows_are_asked_for_once_a_pass(rows, times, passes):
    ideal = times * 2048
    access = {"load": Access(requests=512, bytes=32 * ideal, passes=ideal, ideal=ideal)}
    counted = profile(replace(launch(gmem_accesses=access), gmem_distinct_sectors=2048))
    found = kernel_traits(PLAIN, rows, counted)
    assert (found.passes, found.passes_at_most) == (passes, passes)


def test_rows_have_no_passes_where_nothing_is_reduced_or_loads_were_not_counted_by_kind(rows, relu):
    access = {"load": Access(requests=512, bytes=65536, passes=2048, ideal=2048)}
    assert kernel_traits(PLAIN, relu, profile(launch(gmem_accesses=access))).passes is None
    assert kernel_traits(PLAIN, rows, profile(launch())).passes is None


def test_staging_and_reuse_in_registers_are_ratios_of_counts(product):
    stored = {"smem_accesses": {"store": Access(requests=1, bytes=65536, passes=1, ideal=1)}}
    found = kernel_traits(PLAIN, product, profile(launch(**stored, flops={"cuda.f32": 65536})))
    assert found.staged_fraction == 1.0
    assert found.multiply_adds_a_load == 2.0  # 32,768 multiply-adds on 16,384 elements
    assert found.async_copies is False
    copied = {"gmem_accesses": {"async-copy": Access(requests=1, bytes=65536, passes=1, ideal=1)}}
    assert kernel_traits(PLAIN, product, profile(launch(**copied))).async_copies
    assert kernel_traits(PLAIN, product, profile(launch(code={"LDGSTS.128": 2}))).async_copies


def test_tensor_cores_show_in_counts_or_in_the_machine_code(product):
    counted = launch(flops={"tensor.f16": 64, "tensor.bf16": 64})
    assert kernel_traits(PLAIN, product, profile(counted)).tensor_types == ("bf16", "f16")
    assert kernel_traits(PLAIN, product, profile(launch(code={"HMMA": 4}))).tensor_types == ("?",)
    assert kernel_traits(PLAIN, product, profile(launch())).tensor_types == ()


def test_waits_and_conflicts_are_averages_and_none_without_any(relu):
    counted = launch(gmem_waits=4, gmem_wait_instructions=256, smem_wavefronts=12, smem_ideal_wavefronts=4)
    found = kernel_traits(PLAIN, relu, profile(counted))
    assert (found.covered_instructions, found.conflict_ratio) == (64.0, 3.0)
    found = kernel_traits(PLAIN, relu, profile(launch()))
    assert (found.covered_instructions, found.conflict_ratio) == (None, None)


def test_the_heaviest_launch_gives_grid_block_and_resources(relu):
    light = launch(grid=4, block=32, gmem_load_bytes=64, gmem_store_bytes=0, code={"LDG.8": 1})
    found = kernel_traits(PLAIN, relu, profile(light, launch(code={"LDG.128": 1})))
    assert (found.ctas, found.threads, found.registers, found.smem_bytes) == (16, 256, 40, 1536)
    assert found.resident_ctas == 6  # 65,536 registers ÷ (40 × 256)
    assert found.narrowest_bits == 128  # a launch that moves a thousandth tells nothing


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ((("HGMMA", 4), ("WARPGROUP", 8)), True),
        ((("HGMMA", 4), ("WARPGROUP", 3)), False),
        ((("HMMA", 4),), False),
        (None, None),
    ],
)
def test_serialised_wgmma_are_read_from_the_machine_code_of_any_launch(product, code, found):
    launches = [launch(), launch(code=code)] if code else [launch(code=None)]
    assert kernel_traits(PLAIN, product, profile(*launches)).serialised_wgmma is found
