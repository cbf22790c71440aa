"""Counts: sums, derived figures, and lines that are the author's to change."""

from __future__ import annotations

import pytest

from cutegen_nb.core.profile import Access, Counters, LineCounters, is_own


def test_counters_add_up_field_by_field_and_type_by_type():
    total = Counters(branches=1, flops={"cuda.f32": 2}) + Counters(branches=2, flops={"cuda.f16": 3})

    assert total == Counters(branches=3, flops={"cuda.f16": 3, "cuda.f32": 2})


@pytest.mark.parametrize(
    ("file", "number", "own"),
    [
        ("candidate.py", 3, True),
        ("candidate.py", 0, False),
        ("/x/site-packages/torch/a.py", 3, False),
        ("/x/dist-packages/a.py", 3, False),
        ("/x/nvidia_cutlass_dsl/a.py", 3, False),
        ("/x/cutlass/examples/a.py", 3, True),
    ],
)
def test_a_line_is_the_authors_to_change_unless_a_library_holds_it(file, number, own):
    assert is_own(file, number) is own
    assert LineCounters(file=file, line=number, counters=Counters()).is_own is own


def test_derived_counts_follow_from_the_counters():
    counters = Counters(
        gmem_load_sectors=1, gmem_store_sectors=2, gmem_atomic_sectors=4, gmem_load_bytes=32, gmem_store_bytes=64,
        warp_instructions=2, thread_instructions=32, flops={"cuda.f32": 3, "tensor.f16": 4},
        stall_samples={"barrier": 5, "selected": 1},
    )  # fmt: skip
    assert (counters.gmem_sectors, counters.gmem_bytes, counters.total_flops, counters.samples) == (
        7,
        96,
        7,
        6,
    )
    assert counters.active_lane_fraction == 0.5
    assert Counters().active_lane_fraction is None
    assert (Access(passes=4, ideal=1).efficiency, Access().efficiency) == (0.25, 1.0)
