"""A profile is read once for every cause: own lines, the longest launch, times only where measured."""

from cutegen_nb.analysis.bottleneck.profile_reading import read
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource


def profile(*lines):
    every = tuple(
        LineCounters(file=file, line=line, counters=Counters(gmem_load_sectors=sectors))
        for file, line, sectors in lines
    )
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=Counters(), lines=every
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch,))


def test_the_hottest_line_is_the_candidates_own():
    seen = read(
        profile(("candidate.py", 3, 5), ("candidate.py", 9, 7), ("/x/site-packages/cutlass/a.py", 1, 99))
    )
    assert seen.hottest(lambda item: item.gmem_load_sectors) == 9
    assert seen.hottest(lambda item: item.smem_wavefronts) == 0


def test_without_a_measurement_there_is_no_time_and_no_busiest_unit():
    seen = read(profile())
    assert (seen.is_measured, seen.took_ms, seen.busiest, seen.stalls) == (False, None, None, {})
