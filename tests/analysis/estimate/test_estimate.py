"""Estimates of one call: the term that bounds it, its interval, and what restricts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.constants import CONSTANTS
from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.interval import MOST_DEVIATION, interval, shares
from cutegen_nb.analysis.estimate.launch_terms import DRAM, L1, LATENCY, LAUNCH, TENSOR
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.estimate import FullSizeSample, Reuse, Sharing
from cutegen_nb.core.profile import Access, KernelResources

H200, A100 = find_target("H200"), find_target("A100")
GIB = 1 << 30


def test_a_stream_takes_the_time_of_its_bytes_and_is_bound_by_dram(call):
    found = estimate(call(), H200)
    assert found.bound == DRAM
    assert found.target == "NVIDIA H200"
    assert found.seconds == pytest.approx(2 * GIB / 4.28e12, rel=0.05)
    assert found.seconds_low < found.seconds < found.seconds_high
    assert [term.seconds for term in found.terms] == sorted((t.seconds for t in found.terms), reverse=True)


def test_a_slower_memory_takes_longer_in_proportion(call):
    ratio = estimate(call(), A100).seconds / estimate(call(), H200).seconds
    bandwidths = H200.sheet.bandwidth_bytes_per_s / A100.sheet.bandwidth_bytes_per_s
    assert ratio == pytest.approx(bandwidths, rel=0.1)


@pytest.mark.parametrize(
    ("changed", "bound"),
    [
        ({"counters": {"instructions": {"fp32": 1 << 31}}}, "fp32 pipe"),
        ({"counters": {"flops": {"tensor.f16": 1 << 50}}}, TENSOR),
        ({"counters": {"smem_wavefronts": 1 << 33}}, L1),
        ({"longest_warp_instructions": 1 << 22}, LATENCY),
        ({}, DRAM),
    ],
)
def test_the_work_that_grew_bounds_the_estimate(call, changed, bound):
    found = estimate(call(**changed), H200)
    assert found.bound == bound
    assert (found.seconds > 2 * estimate(call(), H200).seconds) is (bound != DRAM)


def test_few_ctas_leave_multiprocessors_idle(call):
    whole = estimate(call(counters={"instructions": {"fp32": 1 << 31}}), H200)
    few = estimate(call(counters={"instructions": {"fp32": 1 << 31}}, grid=(33, 1, 1)), H200)
    assert few.seconds > 3 * whole.seconds


def test_bytes_that_a_cache_holds_cost_no_dram(call):
    """Loads of the same sectors again: at a short distance the L1 has them, at a long one DRAM."""
    sectors = GIB // 32
    counted = {"gmem_load_sectors": 4 * sectors, "gmem_load_bytes": 4 * GIB}
    near, far = (
        estimate(call(counters=counted, reuses=(Reuse(distance_bytes=size, sectors=3 * sectors),)), H200)
        for size in (1 << 10, 1 << 40)
    )
    assert near.seconds < 1.2 * estimate(call(), H200).seconds
    assert far.seconds > 2 * near.seconds


def test_what_neighbouring_ctas_share_is_read_once(call):
    counted = {"gmem_store_bytes": 32, "gmem_store_sectors": 1}
    alone = estimate(call(counters=counted), H200)
    sectors = GIB // 32
    shared = estimate(
        call(counters=counted, sharing=Sharing(all=1.0), gmem_distinct_sectors=sectors // 1000), H200
    )
    assert shared.seconds < alone.seconds / 1.5


def test_launches_add_up_and_each_costs_its_start(launch):
    one = estimate(FullSizeSample(launches=(launch(),)), H200)
    two = estimate(FullSizeSample(launches=(launch(), launch())), H200)
    start = next(term.seconds for term in one.terms if term.name == LAUNCH)
    assert two.seconds == pytest.approx(2 * one.seconds, rel=0.01)
    assert next(term.seconds for term in two.terms if term.name == LAUNCH) == pytest.approx(2 * start)
    assert start == pytest.approx(3e-6)


def test_without_a_launch_the_reason_is_told():
    with pytest.raises(UsageError, match="no time can be estimated: it ended before its time"):
        estimate(FullSizeSample(missing="it ended before its time"), H200)
    with pytest.raises(UsageError, match="no kernel was launched"):
        estimate(FullSizeSample(), H200)


def test_a_cta_that_fits_nowhere_and_unknown_registers_are_told(call):
    assert "does not fit NVIDIA H200" in estimate(call(dynamic_smem_bytes=300 << 10), H200).note
    assert "registers of a thread are not known" in estimate(call(resources=None), H200).note
    assert estimate(call(), H200).note == ""
    many = KernelResources(architecture="sm_90a", registers=255)
    assert estimate(call(resources=many), H200).note == ""


def test_an_uncertain_sample_widens_the_interval(call):
    widths = [
        found.seconds_high / found.seconds_low
        for error in (0.0, 0.1, 0.5, 100.0)
        for found in [estimate(call(error_fraction=error), H200)]
    ]
    assert widths == sorted(widths)
    assert widths[0] < 2
    low, high = interval(1.0, MOST_DEVIATION)
    assert widths[-1] == pytest.approx(high / low)


def test_the_weights_of_terms_add_up_to_one_and_the_largest_counts_most(call):
    found = shares(estimate(call(), H200).terms)
    assert sum(found.values()) == pytest.approx(1)
    assert max(found, key=found.get) == DRAM
    assert shares(()) == {}


def test_an_estimate_must_lie_in_its_interval(call):
    found = estimate(call(), H200)
    for wrong in (
        {"seconds_low": 2 * found.seconds},
        {"seconds_high": found.seconds / 2},
        {"seconds_low": 0.0},
    ):
        with pytest.raises(ValueError, match="an interval must hold its estimate"):
            replace(found, **wrong)


def test_wgmma_reaches_more_of_the_tensor_cores_than_mma_sync(call):
    """A warp of an ``mma.sync`` does 4,096 operations an instruction, one of an m64n128k16 ``wgmma`` 65,536."""
    flops = 1 << 44
    times = [
        estimate(
            call(counters={"flops": {"tensor.f16": flops}, "instructions": {"tensor.f16": flops // each}}),
            H200,
        ).seconds
        for each in (4096, 65536)
    ]
    assert times[0] / times[1] == pytest.approx(0.78 / H200.mma_sync_fraction, rel=0.05)


def test_bulk_copies_are_no_scattered_requests(call):
    """One thread asks for thousands of sectors, which are lines all the same."""
    plain = call()
    accesses = plain.launches[0].profile.counters.gmem_accesses
    requests = {"requests": accesses["load"].requests // 32}
    bulk = {"bulk-load": replace(accesses["load"], **requests), "store": accesses["store"]}
    alone = {"load": replace(accesses["load"], **requests), "store": accesses["store"]}
    assert estimate(call(counters={"gmem_accesses": bulk}), H200).seconds == pytest.approx(
        estimate(plain, H200).seconds, rel=0.05
    )
    assert (
        estimate(call(counters={"gmem_accesses": alone}), H200).seconds > 1.1 * estimate(plain, H200).seconds
    )


def test_integer_work_keeps_the_whole_clock_and_sums_of_floats_do_not(call):
    """Both pipes take a warp's instruction in the same time, but only fp32 draws the power that lowers it."""
    seconds = {
        pipe: next(
            term.seconds
            for term in estimate(call(counters={"instructions": {pipe: amount}}), H200).terms
            if term.name == f"{pipe} pipe"
        )
        for pipe, amount in (("alu", 1 << 32), ("fp32", 1 << 33))
    }
    assert seconds["alu"] / seconds["fp32"] == pytest.approx(CONSTANTS.peak_fraction)


def test_a_few_long_ctas_do_not_make_every_wave_long(call):
    """Where CTAs differ, the longest warp is waited for once, not in each of a thousand waves."""
    long = {"longest_warp_instructions": 10_000}
    alike, differing = (
        next(
            term.seconds
            for term in estimate(call(**long, error_fraction=error), H200).terms
            if term.name == LATENCY
        )
        for error in (0.0, 0.1)
    )
    assert differing < alike / 10
    longer = estimate(call(longest_warp_instructions=1 << 24, error_fraction=0.1), H200)
    assert longer.bound == LATENCY


def test_a_cta_that_fills_its_multiprocessor_waits_after_it_has_issued(call):
    """Its instructions, its loads and its products take turns; of several CTAs one works while another waits."""
    work = {"instructions": {"alu": 1 << 31}, "flops": {"tensor.f16": 1 << 42}}
    alone, several = (
        estimate(call(counters=work, dynamic_smem_bytes=smem), H200).seconds for smem in (200 << 10, 20 << 10)
    )
    assert alone > 1.3 * several


def test_products_lengthen_the_chain_of_the_warps_that_wait_for_them(call):
    """With one CTA a multiprocessor its products and its copies take turns."""
    flops = {"flops": {"tensor.f16": 1 << 40}}
    before, after = (
        next(term.seconds for term in estimate(call(counters=counted), H200).terms if term.name == LATENCY)
        for counted in ({}, flops)
    )
    assert after > before


def test_shuffles_lengthen_the_chain_of_a_warp(call):
    few, many = (
        next(
            term.seconds
            for term in estimate(
                call(counters={"instructions": kinds}, longest_warp_instructions=1000, load_rounds=0), H200
            ).terms
            if term.name == LATENCY
        )
        for kinds in ({"alu": 10 << 21}, {"alu": 5 << 21, "warp": 5 << 21})
    )
    assert many > 1.5 * few


def test_loads_that_wait_for_a_busy_dram_wait_longer(call):
    """Where the chain takes as long as the transfers, both together take more than either."""
    found = estimate(call(load_rounds=5 * GIB // 512), H200)
    seconds = {term.name: term.seconds for term in found.terms}
    assert seconds[LATENCY] == pytest.approx(seconds[DRAM], rel=0.3)
    assert found.seconds > 1.25 * max(seconds.values())


def test_values_that_loads_share_are_found_in_the_l1_and_tiles_that_are_copied_are_not(call):
    """A bias is loaded again and again; only the copies of tiles wait for DRAM."""
    sectors = GIB // 32
    tiles = Access(requests=sectors // 16, bytes=GIB, passes=sectors, ideal=sectors)
    bias = Access(requests=sectors, bytes=4 * sectors, passes=sectors, ideal=sectors)
    counted = {
        "gmem_load_sectors": 2 * sectors,
        "gmem_load_bytes": 2 * GIB,
        "gmem_accesses": {"load": bias, "async-copy": tiles},
    }
    again = (Reuse(distance_bytes=32, sectors=sectors),)
    shared, copied = (
        next(
            term.seconds
            for term in estimate(call(counters=kinds, reuses=again, load_rounds=sectors), H200).terms
            if term.name == LATENCY
        )
        for kinds in (counted, {**counted, "gmem_accesses": {"load": tiles, "async-copy": bias}})
    )
    assert copied > 2 * shared
