"""Reuse of sectors from logs of accesses, against lists of every access, skipped iterations written out."""

import numpy as np
import pytest

from cutegen_nb.simulator.sampling.access_log import CtaLog
from cutegen_nb.simulator.sampling.reuse import reuse_of, sharing_of

SECTOR = 32


def log_of(accesses):
    """Log of accesses (instruction, sectors, stores)."""
    log = CtaLog(0)
    for instruction, sectors, stores in accesses:
        found = np.unique(np.asarray(sectors, np.int64))
        log.add(instruction, found, int(found[0]) * SECTOR, 0, stores=stores)
    return log


def loads(*rows):
    return [(0, row, False) for row in rows]


def skipped(body, stride, executed, total):
    """Log of a loop of whose ``total`` turns the first few were run; each turn moves by ``stride`` sectors."""
    log = log_of([])
    for turn in range(executed):
        middle = len(log.instructions)
        for instruction, sectors, stores in body:
            moved = np.asarray(sectors, np.int64) + turn * stride
            log.add(instruction, moved, int(moved[0]) * SECTOR, 0, stores=stores)
    log.skip(middle, total - executed)
    return log


def written_out(body, stride, total):
    return log_of(
        (instruction, np.asarray(sectors) + turn * stride, stores)
        for turn in range(total)
        for instruction, sectors, stores in body
    )


def stack_distances(log):
    """Distinct sectors between two touches of one sector, for each load of a sector touched before."""
    order, found = [], []
    for sectors, stores in zip(log.sectors, log.stores, strict=True):
        for sector in sectors.tolist():
            if sector in order:
                if not stores:
                    found.append(len(order) - order.index(sector))
                order.remove(sector)
            order.append(sector)
    return found


def test_a_log_without_accesses_has_no_reuse():
    found = reuse_of(CtaLog(0))
    assert (found.first, found.total, found.again, len(found.fresh)) == (0, 0, {}, 0)


def test_first_loads_and_loads_again_are_told_apart():
    found = reuse_of(log_of(loads([1, 2, 3], [3, 4], [1, 2, 3, 4])))
    assert (found.first, found.total) == (4, 9)
    assert sum(found.again.values()) == 5
    assert sorted(found.fresh.tolist()) == [1, 2, 3, 4]


def test_a_store_makes_a_sector_known_and_is_no_load():
    found = reuse_of(log_of([(0, [1, 2], True), (1, [1, 2, 3], False)]))
    assert (found.first, found.total) == (1, 3)
    assert dict(zip(found.fresh.tolist(), found.fresh_loads.tolist(), strict=True)) == {
        1: False, 2: False, 3: True,
    }  # fmt: skip


@pytest.mark.parametrize("size", [16, 256, 4096])
def test_a_cyclic_sweep_has_its_own_size_as_distance(size):
    log = log_of(loads(*(np.arange(size).reshape(-1, 16).tolist() * 2)))
    found = reuse_of(log)
    assert set(stack_distances(log)) == {size}
    assert found.again == {size * SECTOR: size}


def test_distances_of_random_accesses_are_near_those_counted_one_by_one():
    chance = np.random.default_rng(2)
    log = log_of(loads(*(chance.integers(0, 400, (300, 4)).tolist())))
    found, oracle = reuse_of(log), stack_distances(log)
    mean = sum(np.log2(distance) * count for distance, count in found.again.items()) / sum(
        found.again.values()
    )
    assert sum(found.again.values()) == len(oracle)
    assert abs(mean - np.log2(SECTOR * np.array(oracle)).mean()) < 0.3


BODIES = {
    "new sectors each turn": ([(0, [0, 1, 2, 3], False)], 4),
    "backwards": ([(0, [1000, 1001], False)], -2),
    "half of the sectors again": ([(0, [0, 1, 2, 3], False)], 2),
    "the same sectors": ([(0, [5, 6], False)], 0),
    "two arrays and a store": ([(0, [0, 1], False), (1, [5000, 5001], False), (2, [9000], True)], 2),
    "holes": ([(0, [0, 8, 16], False)], 3),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_skipped_loop_counts_as_if_it_were_run(name):
    body, stride = BODIES[name]
    found, oracle = reuse_of(skipped(body, stride, 6, 100)), reuse_of(written_out(body, stride, 100))
    assert found.total == pytest.approx(oracle.total)
    assert found.first == pytest.approx(oracle.first, rel=0.1)
    assert found.fresh_weights.sum() == pytest.approx(len(oracle.fresh), rel=0.1)


def test_a_load_after_a_skipped_loop_knows_what_the_loop_touched():
    body, stride = [(0, [0, 1, 2, 3], False)], 4
    log = skipped(body, stride, 6, 100)
    late = np.array([200, 399, 400])
    log.add(1, late, 200 * SECTOR, 0, stores=False)
    assert sorted(set(reuse_of(log).fresh.tolist()) & {200, 399, 400}) == [400]


def test_neighbours_share_what_both_load_skipped_turns_included():
    body, stride = [(0, [0, 1, 2, 3], False)], 4
    own = reuse_of(skipped(body, stride, 6, 100))
    same, other = skipped(body, stride, 6, 100), skipped([(0, [9000, 9001], False)], 2, 6, 100)
    found = sharing_of(own, {"x": same, "y": other})
    assert (found.x, found.y, found.all) == (pytest.approx(1), 0, 0)
    found = sharing_of(own, {"x": same, "y": same})
    assert (found.x, found.y, found.all) == (0, 0, pytest.approx(1))
    half = skipped([(0, [2, 3], False)], stride, 6, 100)
    assert sharing_of(own, {"z": half}).z == pytest.approx(0.5)
    assert sharing_of(reuse_of(CtaLog(0)), {"x": same}).x == 0
