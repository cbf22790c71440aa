"""Sectors of a launch by the memory that serves them."""

from __future__ import annotations

import pytest

from cutegen_nb.analysis.estimate.constants import CONSTANTS
from cutegen_nb.analysis.estimate.memory_traffic import memory_traffic
from cutegen_nb.analysis.estimate.residency import Residency
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.estimate import Reuse, Sharing
from cutegen_nb.core.profile import Access

H200 = find_target("H200")
GIB = 1 << 30
SECTORS = GIB // 32
L2_BYTES = H200.l2_bytes * CONSTANTS.l2_share


def placed(resident, ctas=1 << 18, l1_bytes=128 << 10):
    """A GPU of one multiprocessor that holds so many CTAs at once."""
    return Residency(ctas=ctas, ctas_per_sm=resident, sms=1, warps_per_cta=8, l1_bytes=l1_bytes)


def moved(sample, resident=8, *, is_first=True, **more):
    return memory_traffic(sample, placed(resident, **more), H200, CONSTANTS, is_first=is_first)


def test_a_stream_crosses_dram_once_each_way(launch):
    found = moved(launch())
    assert (found.l1, found.l2, found.dram, found.dram_again) == (0, 0, SECTORS, 0)
    assert (found.stores, found.dram_stores, found.loads) == (SECTORS, SECTORS, SECTORS)
    assert (found.load_scatter, found.store_scatter) == (0, 0)


@pytest.mark.parametrize(
    ("distance", "level"),
    [
        (16 << 10, "l1"),  # 128 KiB for 8 CTAs
        ((16 << 10) + 1, "l2"),
        (int(L2_BYTES / 8), "l2"),
        (int(L2_BYTES / 8) + 1, "dram_again"),
    ],
)
def test_a_sector_loaded_again_is_where_its_ctas_share_of_a_cache_reaches(launch, distance, level):
    found = moved(launch(reuses=(Reuse(distance_bytes=distance, sectors=1000),)))
    assert {name: getattr(found, name) for name in ("l1", "l2", "dram_again")} == {
        **dict.fromkeys(("l1", "l2", "dram_again"), 0), level: 1000,
    }  # fmt: skip
    assert found.dram == SECTORS + found.dram_again
    assert found.loads == SECTORS + 1000


@pytest.mark.parametrize(
    ("grid", "sharing", "fresh"),
    [
        ((1 << 18, 1, 1), Sharing(x=0.5), 0.5 + 0.5 / 16),
        ((4, 1 << 16, 1), Sharing(x=0.5), 0.5 + 0.5 / 4),
        ((4, 1 << 16, 1), Sharing(y=0.5), 0.5 + 0.5 / 4),
        ((2, 2, 1 << 16), Sharing(z=0.5), 0.5 + 0.5 / 4),
        ((1 << 18, 1, 1), Sharing(y=0.5), 1.0),  # no neighbour in y runs at the same time
        ((4, 1 << 16, 1), Sharing(all=0.5), 0.5 + 0.5 / 16),
        ((4, 1 << 16, 1), Sharing(x=0.25, y=0.25), 0.5 + 0.25 / 4 + 0.25 / 4),
        ((4, 1 << 16, 1), Sharing(), 1.0),
    ],
)
def test_what_resident_neighbours_share_reads_dram_once_for_all_of_them(launch, grid, sharing, fresh):
    found = moved(launch(grid=grid, sharing=sharing, gmem_distinct_sectors=0), resident=16)
    assert found.dram == pytest.approx(SECTORS * fresh)
    assert found.l2 == pytest.approx(SECTORS * (1 - fresh))


@pytest.mark.parametrize(("part", "fresh"), [(1.0, 1.0), (0.5, 0.5), (0.01, 1 / 8)])
def test_ctas_that_take_a_part_of_each_sector_share_it_in_the_l2(launch, part, fresh):
    counters = {"gmem_load_bytes": int(part * GIB)}
    found = moved(launch(counters=counters, gmem_distinct_sectors=0))
    assert found.dram == pytest.approx(SECTORS * fresh)


def test_the_number_of_distinct_sectors_bounds_what_dram_reads(launch):
    """A sharing of neighbours cannot leave fewer sectors than were touched, nor more than once where all fit."""
    half = moved(
        launch(sharing=Sharing(all=1.0), gmem_distinct_sectors=SECTORS + SECTORS // 2), resident=1000
    )
    assert half.dram == pytest.approx(SECTORS / 2)
    fitting = moved(launch(gmem_distinct_sectors=SECTORS + 10_000), resident=1)
    assert fitting.dram == 10_000


@pytest.mark.parametrize(("passes", "scatter"), [(4, 0.0), (16, 0.0), (24, 2 / 3), (32, 1.0)])
def test_threads_with_a_sector_each_are_scattered_and_neighbours_are_not(launch, passes, scatter):
    accesses = {
        "load": Access(requests=1000, bytes=128000, passes=1000 * passes, ideal=4000),
        "store": Access(requests=1000, bytes=128000, passes=4000, ideal=4000),
    }
    found = moved(launch(counters={"gmem_accesses": accesses}))
    assert found.load_scatter == pytest.approx(scatter)
    assert found.store_scatter == 0
    assert moved(launch(counters={"gmem_accesses": {}})).load_scatter == 0


def test_parts_of_sectors_are_joined_before_they_are_written_to_dram(launch):
    assert moved(launch(counters={"gmem_store_bytes": GIB // 4})).dram_stores == SECTORS / 4
    atomics = moved(launch(counters={"gmem_atomic_sectors": 7}))
    assert atomics.stores == SECTORS + 7


def test_a_later_launch_finds_in_the_l2_what_fits_there(launch):
    small = launch(
        counters={"gmem_load_sectors": 1000, "gmem_load_bytes": 32000, "gmem_store_bytes": 32, "gmem_store_sectors": 1},
        first_touch_sectors=1000, gmem_distinct_sectors=0,
    )  # fmt: skip
    assert (moved(small).dram, moved(small).l2) == (1000, 0)
    later = moved(small, is_first=False)
    assert (later.dram, later.l2) == (0, 1000)
    assert moved(launch(), is_first=False).dram == SECTORS


def test_scatter_is_the_share_of_scattered_sectors_where_instructions_were_counted(launch):
    """The mean of broadcasts and scattered loads looks like whole lines; the count by instruction does not."""
    mixed = {"load": Access(requests=SECTORS // 16, bytes=GIB, passes=SECTORS, ideal=SECTORS)}
    sample = launch(counters={"gmem_accesses": mixed})
    assert moved(sample).load_scatter == 0
    counted = launch(
        counters={"gmem_accesses": mixed},
        scattered_load_sectors=SECTORS // 2,
        scattered_store_sectors=SECTORS,
    )
    assert (moved(counted).load_scatter, moved(counted).store_scatter) == (0.5, 1)


def test_a_store_of_a_word_a_sector_is_partial_and_one_of_whole_sectors_is_not(launch):
    assert moved(launch()).partial_stores == 0
    words = launch(counters={"gmem_store_bytes": 4 * SECTORS})
    assert moved(words).partial_stores == SECTORS
    halves = launch(counters={"gmem_store_bytes": 16 * SECTORS})
    assert moved(halves).partial_stores == pytest.approx(4 / 7 * SECTORS)
