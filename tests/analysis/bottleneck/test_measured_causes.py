"""Causes that only hardware shows: spills, waiting warps, narrow accesses."""

import pytest

from cutegen_nb.analysis.bottleneck.cause import Cause, CounterReading
from cutegen_nb.analysis.bottleneck.measured_causes import idle_share, measured_causes, with_nsight_names
from cutegen_nb.analysis.bottleneck.profile_reading import read
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import Access, Counters, LaunchProfile, Metric, Profile, ProfileSource


def seen(counters=None, **values):
    metrics = {
        names.__dict__[name]: Metric(value=value) for name, value in values.items() if name in names.__dict__
    }
    metrics |= {
        names.STALL.format(name): Metric(value=value)
        for name, value in values.items()
        if name not in names.__dict__
    }
    launch = LaunchProfile(
        kernel="k", grid=(64, 1, 1), block=(128, 1, 1), dynamic_smem_bytes=0, counters=counters or Counters(),
        metrics=metrics,
    )  # fmt: skip
    return read(Profile(source=ProfileSource.NSIGHT, device="NVIDIA H200", launches=(launch,)))


def found(*arguments, **values):
    return [one.name for one in measured_causes(seen(*arguments, **values))]


@pytest.mark.parametrize(("busy", "causes"), [(30.0, ["memory-latency"]), (70.0, [])])
def test_warps_that_wait_for_loads_are_a_cause_only_while_no_unit_is_busy(busy, causes):
    assert found(DRAM_SHARE=busy, long_scoreboard=6.0, wait=1.0) == causes


def test_repeated_loads_before_a_barrier_are_a_missing_pipeline():
    loads = Counters(gmem_accesses={"load": Access(requests=64 * 4 * 8)})
    assert found(loads, DRAM_SHARE=30.0, long_scoreboard=6.0, barrier=2.0) == ["unpipelined-loads"]


@pytest.mark.parametrize(("bytes_each", "causes"), [(4, ["narrow-accesses"]), (16, [])])
def test_a_full_queue_is_a_cause_where_accesses_could_be_wider(bytes_each, causes):
    counters = Counters(
        gmem_load_bytes=bytes_each * 32 * 100,
        gmem_requests=100,
        gmem_load_sectors=400,
        gmem_ideal_sectors=400,
    )
    assert found(counters, DRAM_SHARE=30.0, lg_throttle=5.0, wait=1.0) == causes


def test_traffic_to_local_memory_is_a_spill_as_large_as_its_share():
    counters = Counters(local_load_bytes=32 * 25, gmem_load_sectors=75)
    (cause,) = measured_causes(seen(counters, REGISTERS=255.0))
    assert (cause.name, cause.fraction, cause.whole_launch) == ("spills", 0.25, True)


def test_readings_get_the_names_that_nsight_compute_shows():
    readings = tuple(
        CounterReading(name=name, value="1") for name in ("gmem_sectors", "gmem_sectors ÷ other", "own")
    )
    cause = Cause(name="uncoalesced", statement=".", readings=readings, fraction=0.5, refuted_by=".")
    renamed = [one.name for one in with_nsight_names(cause).readings]
    assert renamed == [names.LINE_SECTORS, f"{names.LINE_SECTORS} ÷ other", "own"]


def test_time_without_a_cta_is_idle():
    launch = seen(BUSY_CYCLES=75.0, ELAPSED_CYCLES=100.0).profile.launches[0]
    assert idle_share(launch) == 0.25
    assert idle_share(seen().profile.launches[0]) is None
