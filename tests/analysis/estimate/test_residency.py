"""CTAs that a GPU holds at once, and the waves of a grid."""

from __future__ import annotations

import math

import pytest

from cutegen_nb.analysis.estimate.residency import residency
from cutegen_nb.analysis.estimate.targets import find_target

H200 = find_target("H200")


@pytest.mark.parametrize(
    ("grid", "smem", "expected"),
    [
        # Placed: CTAs a multiprocessor, CTAs at once, multiprocessors with work, fullest ÷ mean.
        (132, 0, (8, 132, 132, 1.0)),
        (66, 0, (8, 66, 66, 2.0)),
        (133, 0, (8, 133, 132, 2 * 132 / 133)),
        (132 * 8, 0, (8, 132 * 8, 132, 1.0)),
        (10_000_000, 0, (8, 132 * 8, 132, 1.0)),
        (132 * 2, 100 << 10, (2, 132 * 2, 132, 1.0)),
        (132, 300 << 10, (1, 132, 132, 1.0)),
    ],
)
def test_a_grid_is_placed_by_its_resources(launch, grid, smem, expected):
    placed = residency(launch(grid=(grid, 1, 1), dynamic_smem_bytes=smem).profile, H200)
    assert (placed.ctas_per_sm, placed.resident, placed.busy_sms) == expected[:3]
    assert placed.imbalance == pytest.approx(expected[3], rel=0.01)
    assert placed.warps_per_cta == 8


def test_the_last_of_few_waves_counts_whole_and_of_many_hardly(launch):
    held = 132 * 8

    def waves(ctas):
        return residency(launch(grid=(ctas, 1, 1)).profile, H200).waves

    assert waves(held) == 1
    assert waves(held + 1) == 2
    assert waves(2 * held) == 2
    many = 100 * held + 1
    assert many / held < waves(many) < math.ceil(many / held)


def test_shared_memory_is_taken_from_the_l1(launch):
    empty, full = (residency(launch(dynamic_smem_bytes=size).profile, H200) for size in (0, 100 << 10))
    assert empty.l1_bytes - full.l1_bytes == 2 * (100 << 10)
    assert residency(launch(dynamic_smem_bytes=300 << 10).profile, H200).l1_bytes == 0
