"""Steps of registers over periods of a loop: found where they are constant, and added as often as asked."""

import numpy as np
import pytest

from cutegen_nb.simulator.numbers.values import Separable
from cutegen_nb.simulator.sampling.steps import UNCHANGED, advanced, same_steps, step_of

LANES = np.arange(12, dtype=np.uint32).reshape(3, 4)


def values(start, step, dtype=np.uint32, count=3):
    """Values of a register at the ends of periods."""
    return [
        np.asarray(start).astype(dtype) + np.asarray(step).astype(dtype) * dtype(one) for one in range(count)
    ]


@pytest.mark.parametrize(
    ("start", "step", "shape"),
    [
        (np.uint32(5), np.uint32(3), ()),
        (np.uint32(5), np.uint32(2**32 - 3), ()),  # downwards
        (LANES, np.uint32(8), ()),
        (LANES, LANES[:1], (1, 4)),
        (LANES, LANES[:, :1], (3, 1)),
        (LANES, LANES * LANES, (3, 4)),
        (LANES.astype(np.uint64) << np.uint64(33), np.uint64(1 << 40), ()),
    ],
)
def test_a_constant_step_is_found_and_narrowed_and_advances_as_turns_would(start, step, shape):
    with np.errstate(over="ignore"):
        first, middle, last, *_, end = values(start, step, start.dtype.type, 10)
    found = step_of(first, middle, last, None)
    assert np.shape(found) == shape
    assert np.array_equal(np.broadcast_to(advanced(last, found, 7), end.shape), end)


def test_what_did_not_change_is_unchanged():
    assert step_of(LANES, LANES, LANES, None) is UNCHANGED
    assert step_of(LANES, LANES.copy(), LANES.copy(), None) is UNCHANGED
    truth = LANES > 3
    assert step_of(truth, truth.copy(), truth.copy(), None) is UNCHANGED


def test_uneven_changes_have_no_step():
    assert step_of(LANES, LANES + 1, LANES + 3, None) is None
    assert step_of(LANES > 3, LANES > 4, LANES > 5, None) is None


def test_lanes_that_are_not_active_do_not_count():
    active = LANES < 6
    uneven = np.where(active, LANES + 8, LANES * 5)
    step = step_of(LANES, np.where(active, LANES + 4, 77), uneven, active)
    assert np.array_equal(step, np.where(active, 4, 0))


def test_signed_values_wrap_as_the_machine_s_do():
    first, middle, last = (np.array([one], np.int32) for one in (2**31 - 2, -(2**31), -(2**31) + 2))
    assert step_of(first, middle, last, None) == 2


def test_a_separable_value_stays_one():
    column, row = np.array([[0], [100]], np.uint32), np.arange(4, dtype=np.uint32)[None]
    parts = [Separable(column + np.uint32(8 * one), row) for one in range(3)]
    step = step_of(*parts, None)
    assert step == 8
    ahead = advanced(parts[-1], step, 5)
    assert ahead.__class__ is Separable
    assert np.array_equal(np.asarray(ahead.view(np.dtype(np.uint32)) + np.uint32(0)), column + row + 56)


def test_like_steps_are_told_from_unlike_ones():
    assert same_steps((LANES, LANES + 4), (LANES + 9, LANES + 13), None)
    assert not same_steps((LANES, LANES + 4), (LANES + 9, LANES + 14), None)
    assert same_steps((LANES, LANES + 4), (LANES, np.where(LANES < 6, LANES + 4, 0)), LANES < 6)
    assert not same_steps((LANES > 3, LANES > 4), (LANES > 3, LANES > 5), None)
