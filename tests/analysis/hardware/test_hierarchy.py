"""Memory levels of a device, and the bytes that a kernel moves through each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.analysis.hardware.hierarchy import DRAM, L2, SHARED, distinct_sectors, levels, traffic
from cutegen_nb.core.nsight.metrics import L2_SECTORS
from cutegen_nb.core.profile import Counters, LaunchProfile, Metric, Profile, ProfileSource

H200 = replace(find_target("H200").device, l2_bandwidth_bytes_per_s=0.0, l2_source="")
LAUNCH = LaunchProfile(
    kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, gmem_distinct_sectors=50,
    counters=Counters(gmem_load_sectors=100, smem_wavefronts=10),
)  # fmt: skip


def moved(*launches, source=ProfileSource.SIMULATED):
    found = traffic(Profile(source=source, device="", launches=launches))
    return {item.level: item.moved_bytes for item in found}


def test_levels_are_those_whose_bandwidth_is_known():
    assert [level.name for level in levels(H200)] == [DRAM, SHARED]
    known = replace(H200, l2_bandwidth_bytes_per_s=8e12, l2_source="measured")
    assert [level.name for level in levels(known)] == [DRAM, L2, SHARED]
    assert levels(known)[1].source == "measured"
    assert levels(replace(H200, bandwidth_bytes_per_s=0.0))[0].name == SHARED


def test_shared_memory_moves_128_bytes_a_clock_of_each_multiprocessor():
    shared = levels(H200)[-1]
    assert shared.bandwidth_bytes_per_s == pytest.approx(128 * H200.sm_count * H200.clock_hz)
    assert f"× {H200.sm_count} multiprocessors" in shared.source
    implied = levels(replace(H200, clock_hz=0.0))[-1]
    assert implied.source.endswith("at the clock that the fp32 peak implies")
    assert implied.bandwidth_bytes_per_s == pytest.approx(shared.bandwidth_bytes_per_s, rel=0.1)


def test_each_memory_has_its_own_bytes():
    assert moved(LAUNCH) == {DRAM: 50 * 32, L2: 100 * 32, SHARED: 10 * 128}
    assert moved(LAUNCH, LAUNCH)[DRAM] == 2 * 50 * 32
    quiet = replace(LAUNCH, counters=Counters(gmem_load_sectors=100))
    assert SHARED not in moved(quiet)
    assert moved(replace(LAUNCH, counters=Counters(), gmem_distinct_sectors=0)) == {}


def test_a_measured_count_between_the_caches_replaces_requests():
    counted = replace(LAUNCH, metrics={L2_SECTORS: Metric(value=70.0)})
    assert moved(counted, source=ProfileSource.NSIGHT)[L2] == 70 * 32


def test_a_launch_without_distinct_sectors_counts_its_requests():
    older = replace(LAUNCH, gmem_distinct_sectors=0)
    assert (
        distinct_sectors(Profile(source=ProfileSource.SIMULATED, device="", launches=(LAUNCH, older))) == 150
    )
