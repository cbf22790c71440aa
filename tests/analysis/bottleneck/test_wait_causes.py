"""Loads whose latency nothing covers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.bottleneck.wait_causes import unpipelined
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.profile import Counters, KernelResources, LaunchProfile, Profile, ProfileSource

H200 = find_target("H200").device
CTAS, WARPS = 132, 8
LAUNCH = LaunchProfile(
    kernel="k", grid=(CTAS, 1, 1), block=(32 * WARPS, 1, 1), dynamic_smem_bytes=200 << 10,
    resources=KernelResources(architecture="sm_90a", registers=32),
    counters=Counters(
        warp_instructions=10_000, gmem_waits=100 * CTAS * WARPS, gmem_wait_instructions=100 * CTAS * WARPS
    ),
)  # fmt: skip
BUSY_S = 100 * 500 / H200.clock_hz
"""Demand of the busiest unit as long as the 100 waits of a CTA, 500 clocks each."""


def cause(launch=LAUNCH, device=H200, largest_s=BUSY_S):
    profile = Profile(source=ProfileSource.SIMULATED, device="", launches=(launch,))
    return unpipelined(profile, device, largest_s, lambda cost: 7 if cost(launch.counters) else 0)


def test_a_lone_cta_that_waits_as_long_as_it_works_loses_half_of_its_time():
    found = cause()
    assert (found.name, found.line) == ("unpipelined-loads", 7)
    assert found.fraction == pytest.approx(0.5, abs=0.02)
    assert "with one instruction to issue meanwhile" in found.statement
    assert [item.name for item in found.readings] == [
        "gmem_waits", "gmem_wait_instructions ÷ gmem_waits", "CTAs held at once",
    ]  # fmt: skip
    assert found.readings[0].value == "105,600 (100 a warp)"


def test_other_ctas_of_the_multiprocessor_cover_the_wait():
    assert cause(replace(LAUNCH, dynamic_smem_bytes=0)) is None


def test_instructions_between_load_and_use_cover_the_wait():
    counters = replace(LAUNCH.counters, gmem_wait_instructions=250 * LAUNCH.counters.gmem_waits)
    assert cause(replace(LAUNCH, counters=counters)) is None
    some = replace(LAUNCH.counters, gmem_wait_instructions=100 * LAUNCH.counters.gmem_waits)
    assert 0.3 < cause(replace(LAUNCH, counters=some)).fraction < 0.5


@pytest.mark.parametrize(
    "changed",
    [
        {"launch": replace(LAUNCH, counters=Counters(warp_instructions=10))},
        {"launch": replace(LAUNCH, resources=None)},
        {"device": replace(H200, sm_count=0, clock_hz=0.0, peak_flops={}, architecture="sm_1")},
    ],
)
def test_nothing_is_told_without_waits_or_what_they_are_compared_with(changed):
    assert cause(**changed) is None
