"""The fast proof of order never holds where the comparison cell by cell finds an unordered access."""

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.happens_before import HappensBefore
from cutegen_nb.simulator.checkers.shared_cells import Touch
from cutegen_nb.simulator.checkers.shared_order import in_order

WARPS, CELLS = 6, 24


def clocks(random, rows):
    """Clocks after some releases and acquires."""
    order = HappensBefore(WARPS)
    order.begin_partial()
    for _ in range(12):
        who = random.random((rows, WARPS)) < 0.4
        if random.random() < 0.5:
            order.release(who, "key")
        else:
            order.acquire(who, "key")
    return order


def unordered(order, touched, before, epochs):
    """Warps of earlier accesses that some entry of the request does not come after, one by one."""
    cells = np.broadcast_to(np.arange(CELLS), before.shape) if not touched.listed else None
    for index, warps in np.ndenumerate(before):
        row = index[0] if cells is not None else touched.where[0][index[0]]
        for warp in range(WARPS):
            bit = 1 << warp
            mine = touched.bits[index[-1]] & bit
            for other in range(WARPS):
                if mine and other != warp and warps >> other & 1:
                    known = order.known[row if len(order.known) > 1 else 0, warp, other]
                    if known < epochs[index]:
                        return True
    return False


@pytest.mark.parametrize("listed", [True, False])
def test_what_is_proved_is_so_and_single_accesses_are_decided(listed):
    random = np.random.default_rng(0)
    proved = 0
    for _ in range(300):
        rows = int(random.integers(1, 4))
        order = clocks(random, rows)
        shape = (CELLS,) if listed else (rows, CELLS)
        bits = (np.uint32(1) << random.integers(0, WARPS, CELLS)).astype(np.uint32)
        where = (np.sort(random.integers(0, rows, CELLS)), np.arange(CELLS)) if listed else (slice(None),) * 2
        touched = Touch(where, bits, several=False, listed=listed)
        before = (np.uint32(1) << random.integers(0, WARPS, shape)).astype(np.uint32)
        before[random.random(shape) < 0.9] = 0
        epochs = random.integers(0, order.now, shape)
        found = in_order(order, touched, before, epochs)
        assert not (found and unordered(order, touched, before, epochs))
        proved += found
        alone = np.zeros_like(before)
        alone[(..., 3)] = before[(..., 3)] = 1 << 2
        assert in_order(order, touched, alone, epochs) != unordered(order, touched, alone, epochs)
    assert proved > 20


def test_nothing_is_proved_before_warps_have_clocks():
    touched = Touch((slice(None), slice(0, 1)), np.ones(1, np.uint32), several=False, listed=False)
    assert not in_order(HappensBefore(2), touched, np.zeros((1, 1), np.uint32), np.zeros((1, 1), np.int64))
