"""Utilisation of units from metrics of Nsight Compute, weighted by time, the busiest first."""

import pytest

from cutegen_nb.analysis.bottleneck.unit_utilisation import (
    DRAM,
    L2,
    average,
    heaviest,
    is_measured,
    loads,
    stalls,
)
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import (
    DURATION,
    SECTOR_BYTES,
    Counters,
    LaunchProfile,
    Metric,
    Profile,
    ProfileSource,
)


def launch(seconds=1e-3, **values):
    metrics = {names.__dict__.get(name, name): Metric(value=value) for name, value in values.items()}
    return LaunchProfile(
        kernel="kernel", grid=(132, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, counters=Counters(),
        metrics={DURATION: Metric(value=seconds * 1e9, unit="ns"), **metrics},
    )  # fmt: skip


def profile(*launches, source=ProfileSource.NSIGHT):
    return Profile(source=source, device="NVIDIA H200", launches=launches)


def test_a_mean_over_launches_is_weighted_by_their_time():
    seen = profile(launch(3e-3, DRAM_SHARE=80.0), launch(1e-3, DRAM_SHARE=40.0), launch(9e-3))
    assert average(seen, names.DRAM_SHARE) == pytest.approx(70.0)
    assert average(seen, names.L2_SHARE) is None
    assert heaviest(seen) is seen.launches[2]


def test_the_busiest_unit_comes_first_with_its_share():
    found = loads(profile(launch(DRAM_SHARE=30.0, L2_SHARE=50.0, ISSUE_SHARE=0.0)))
    assert [(one.unit, one.fraction) for one in found] == [(L2, 0.5), (DRAM, 0.3)]


@pytest.mark.parametrize(("passed", "units"), [(1.0, [DRAM]), (4.0, [L2, DRAM])])
def test_an_l2_that_only_passes_on_what_dram_moves_is_left_out(passed, units):
    moved = 1e6
    seen = launch(
        DRAM_SHARE=90.0,
        L2_SHARE=95.0,
        DRAM_READ=moved,
        DRAM_WRITE=0.0,
        L2_SECTORS=passed * moved / SECTOR_BYTES,
    )
    assert [one.unit for one in loads(profile(seen))] == units


def test_stalls_are_those_of_the_longest_launch_the_most_first():
    reasons = {
        names.STALL.format(reason): value for reason, value in (("barrier", 1.0), ("wait", 3.0), ("lg", 0.0))
    }
    seen = profile(launch(1e-3, **{names.STALL.format("wait"): 9.0}), launch(2e-3, **reasons))
    assert list(stalls(seen).items()) == [("wait", 3.0), ("barrier", 1.0)]


def test_counts_of_the_simulator_are_no_measurement():
    assert is_measured(profile(launch(DRAM_SHARE=1.0)))
    assert not is_measured(profile(launch(DRAM_SHARE=1.0), source=ProfileSource.SIMULATED))
    assert not is_measured(profile(launch()))
