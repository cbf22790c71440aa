"""Lines that are the candidate's own."""

import pytest

from cutegen_nb.analysis.source.lines import by_line
from cutegen_nb.core.profile import Counters, LaunchProfile, LineCounters, Profile, ProfileSource


def profile_of(*places):
    lines = tuple(
        LineCounters(file=file, line=line, counters=Counters(warp_instructions=count))
        for file, line, count in places
    )
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(1, 1, 1), dynamic_smem_bytes=0, counters=Counters(), lines=lines
    )
    return Profile(source=ProfileSource.SIMULATED, device="sm_80", launches=(launch, launch))


@pytest.mark.parametrize("file", ["candidate.py", "/home/me/cutlass/examples/python/CuTeDSL/gemm.py"])
def test_a_program_is_its_authors_own_wherever_it_lies(file):
    found = by_line(profile_of((file, 7, 3), (file, 2, 1)))

    assert {line: item.warp_instructions for line, item in found.own.items()} == {2: 2, 7: 6}
    assert found.known
    assert found.elsewhere == Counters()


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("/env/lib/python3.11/site-packages/nvidia_cutlass_dsl/dsl_packages/cutlass/cute/core.py", 12),
        ("/src/nvidia_cutlass_dsl/cutlass/cute/core.py", 12),
        ("candidate.py", 0),
        ("", 0),
    ],
)
def test_the_library_and_instructions_without_a_line_are_elsewhere(file, line):
    found = by_line(profile_of((file, line, 5)))

    assert not found.known
    assert found.elsewhere.warp_instructions == 10
