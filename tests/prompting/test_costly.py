"""The author's lines by what they cost, each figure with its unit; the library's lines are not its to change."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.finding import Finding
from cutegen_nb.core.profile import Counters, LineCounters
from cutegen_nb.core.stage import Stage
from cutegen_nb.prompting.costly import costly_text
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.testing import examples

SOURCE = "import cutlass\nx = mX[i]\nsmem[t] = x\ncute.arch.sync_threads()\n"
LIBRARY = "/venv/lib/python3.11/site-packages/cutlass/cute/core.py"


def profile_of(*lines: LineCounters, launches: int = 1):
    profile = examples.passed(100).profile
    return replace(profile, launches=(replace(profile.launches[0], lines=lines),) * launches)


def line(number: int, file: str = "/tmp/candidate.py", **counters) -> LineCounters:
    return LineCounters(file=file, line=number, counters=Counters(**counters))


def test_each_unit_has_its_lines_with_shares_over_all_launches():
    loads = line(2, gmem_load_sectors=300, gmem_ideal_sectors=75, gmem_requests=10, warp_instructions=40)
    stores = line(3, smem_wavefronts=64, smem_ideal_wavefronts=2, warp_instructions=10)
    text = costly_text(profile_of(loads, stores, launches=2), SOURCE)
    assert text == [
        "Lines that move the most 32-byte sectors of global memory:",
        "- line 2: 600 sectors (100%) in 20 requests, 150 would carry the bytes: `x = mX[i]`",
        "Lines that need the most passes over shared memory:",
        "- line 3: 128 wavefronts (100%), 4 without a bank conflict: `smem[t] = x`",
        "Lines that issue the most instructions:",
        "- line 2: 80 warp instructions (80%): `x = mX[i]`",
        "- line 3: 20 warp instructions (20%): `smem[t] = x`",
    ]


def test_the_librarys_lines_are_left_out():
    inside = line(2, LIBRARY, gmem_load_sectors=900, warp_instructions=900)
    assert costly_text(profile_of(inside, line(0, warp_instructions=5)), SOURCE) == []


def test_measured_stalls_are_told_by_line_with_their_reason():
    waits = line(4, stall_samples={"long_scoreboard": 30, "barrier": 10})
    assert costly_text(profile_of(waits), SOURCE)[-1] == (
        "- line 4: 40 samples (100%), most of them long_scoreboard: `cute.arch.sync_threads()`"
    )


def test_costly_lines_enter_with_the_stage_that_shows_counters():
    loads = line(2, gmem_load_sectors=300, warp_instructions=40)
    found = replace(examples.passed(100), profile=profile_of(loads))
    candidate = Candidate(source=SOURCE, author="x")
    assert "Lines that move" in evaluation_text(found, candidate, Stage.PROFILE)
    assert "Lines that move" not in evaluation_text(found, candidate, Stage.STRUCTURE)


def test_a_finding_inside_the_library_shows_no_line_of_the_candidate():
    at = Finding(kind="out-of-bounds", message="It wrote past the end.", file=LIBRARY, line=2)
    found = replace(examples.failed(examples.Verdict.OUT_OF_BOUNDS, "Past the end."), findings=(at,))
    text = evaluation_text(found, Candidate(source=SOURCE, author="x"))
    assert "in the library, core.py:2" in text
    assert "mX[i]" not in text
