"""Totals of a candidate beside those of a base: order, sign, and for better or worse."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.analysis.tables.count_changes import count_changes, is_comparable
from cutegen_nb.core.profile import Counters, ProfileSource
from cutegen_nb.testing import examples


def profile(source=ProfileSource.SIMULATED, **counts):
    made = examples.passed(1).profile
    launch = replace(made.launches[0], counters=Counters(**counts))
    return replace(made, source=source, launches=(launch,))


BASE = profile(gmem_load_sectors=800, gmem_ideal_sectors=100, warp_instructions=100, thread_instructions=3200)


def told(now, base=BASE):
    return {one.title: one for one in count_changes(now, base)}


def test_what_changed_most_comes_first_with_its_sign_and_its_worth():
    now = profile(
        gmem_load_sectors=100, gmem_ideal_sectors=100, warp_instructions=110, thread_instructions=3168
    )
    found = count_changes(now, BASE)
    assert [one.title for one in found][:3] == [
        "Global sectors (32 B)",
        "Global sectors of loads",
        "Sectors ÷ ideal",
    ]
    assert (found[0].before, found[0].after, found[0].moved) == ("800", "100", "−87.5 % better")
    assert told(now)["Warp instructions"].moved == "+10.0 % worse"
    assert told(now)["Lanes active"].kind == "bad", "more of the lanes active is better"


def test_a_tiny_change_is_neither_better_nor_worse():
    now = profile(
        gmem_load_sectors=801, gmem_ideal_sectors=100, warp_instructions=100, thread_instructions=3200
    )
    assert told(now)["Global sectors (32 B)"].kind == "neutral"


def test_work_that_moves_to_another_pipe_is_neither_better_nor_worse_and_less_of_it_is_better():
    cuda, tensor = profile(flops={"cuda.f32": 1000}), profile(flops={"tensor.f16": 1000, "cuda.f32": 10})
    assert {one.kind for title, one in told(tensor, cuda).items() if title.startswith("FLOPs")} == {"neutral"}
    assert told(profile(flops={"cuda.f32": 500}), cuda)["FLOPs, cuda.f32"].kind == "good"


def test_counts_of_another_source_are_not_compared():
    other = profile(ProfileSource.NSIGHT, gmem_load_sectors=800)
    assert not is_comparable(BASE, other)
    assert {one.change for one in count_changes(BASE, other)} == {""}


def test_a_ratio_that_the_base_does_not_have_is_neither_better_nor_worse():
    shared = profile(smem_wavefronts=4096, smem_ideal_wavefronts=4096, warp_instructions=100)
    found = told(shared)["Wavefronts ÷ ideal"]
    assert (found.before, found.after, found.moved, found.kind) == ("–", "1.00×", "", "neutral")
    assert "Wavefronts ÷ ideal" not in told(BASE, shared)
