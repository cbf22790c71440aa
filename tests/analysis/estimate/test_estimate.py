"""Estimates of one call: the term that bounds it, its interval, and what restricts it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.launch_terms import DRAM, LATENCY
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


def test_an_estimate_must_lie_in_its_interval(call):
    found = estimate(call(), H200)
    for wrong in (
        {"seconds_low": 2 * found.seconds},
        {"seconds_high": found.seconds / 2},
        {"seconds_low": 0.0},
    ):
        with pytest.raises(ValueError, match="an interval must hold its estimate"):
            replace(found, **wrong)


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
