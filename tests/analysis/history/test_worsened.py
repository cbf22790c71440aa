"""Figures that got worse, beside whatever decided a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.analysis.history.worsened import worsened
from cutegen_nb.core.profile import Counters, KernelResources, LaunchProfile

H200 = find_target("H200")
TENTH = "1,000 → 1,100 (+10.0 %)"
RESOURCES = KernelResources(architecture="sm_90a", registers=32)
LAUNCH = LaunchProfile(
    kernel="k", grid=(1000, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0, resources=RESOURCES,
    counters=Counters(gmem_load_sectors=1000, smem_wavefronts=1000, warp_instructions=1000),
)  # fmt: skip


def counted(**counters):
    return replace(LAUNCH, counters=replace(LAUNCH.counters, **counters))


def built(**resources):
    return replace(LAUNCH, resources=replace(RESOURCES, **resources))


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        (LAUNCH, ""),
        (counted(gmem_load_sectors=1030), ""),
        (counted(gmem_load_sectors=1031), " Worse: global sectors 1,000 → 1,031 (+3.1 %)."),
        (
            counted(smem_wavefronts=2000),
            " Worse: shared-memory wavefronts 1,000 → 2,000 (+100.0 %).",
        ),
        (
            counted(smem_wavefronts=1100, warp_instructions=1100),
            f" Worse: shared-memory wavefronts {TENTH}; warp instructions {TENTH}.",
        ),
        (built(registers=33), " Worse: registers of a thread 32 → 33; occupancy 100.0 % → 75.0 %."),
        (built(spill_load_bytes=8), " Worse: spilled bytes of a thread 0 → 8."),
        (
            replace(LAUNCH, dynamic_smem_bytes=100 << 10),
            " Worse: occupancy 100.0 % → 25.0 %.",
        ),
        # More CTAs than multiprocessors stay enough, however many fewer they are.
        (replace(LAUNCH, grid=(132, 1, 1)), ""),
        (replace(LAUNCH, grid=(66, 1, 1)), " Worse: CTAs 1,000 → 66 for 132 SMs, 50.0 % of them idle."),
    ],
)
def test_each_figure_that_got_worse_is_told(candidate, said):
    assert worsened((LAUNCH,), (candidate,), H200) == said


def test_counts_are_of_all_launches_and_the_size_is_named():
    said = worsened((LAUNCH,), (LAUNCH, LAUNCH), H200, where="at full size")
    assert said.startswith(" Worse at full size: global sectors 1,000 → 2,000 (+100.0 %)")


def test_nothing_is_told_without_launches_on_both_sides():
    assert worsened((), (LAUNCH,), H200) == worsened((LAUNCH,), (), H200) == ""


def test_unknown_resources_are_no_worse():
    unknown = replace(LAUNCH, resources=None)
    assert worsened((unknown,), (built(registers=255),), H200) == ""
    assert worsened((LAUNCH,), (unknown,), H200) == ""
