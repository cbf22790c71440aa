"""Columns of tensor memory are taken side by side and freed as they were taken."""

import numpy as np

from cutegen_nb.simulator.state.tensor_memory import COLUMNS, TensorMemory, column_of, lane_of


def memory(ctas=2):
    return TensorMemory(ctas, np.frombuffer(b"\xa5" * 16, np.uint8))


def test_the_first_gap_that_is_wide_enough_is_taken():
    tensor = memory()
    assert [tensor.take(0, 64), tensor.take(0, 32), tensor.take(0, 128)] == [0, 64, 96]
    assert tensor.free(0, 64, 32)
    assert tensor.take(0, 64) == 224
    assert tensor.take(0, 32) == 64
    assert tensor.take(1, 32) == 0  # another CTA has columns of its own


def test_no_room_and_a_wrong_size_are_told():
    tensor = memory()
    assert tensor.take(0, COLUMNS) == 0
    assert tensor.take(0, 32) is None
    assert not tensor.free(0, 0, 32)
    assert not tensor.free(0, 32, 32)
    assert not tensor.free(0, -1, COLUMNS)
    assert tensor.free(0, 0, COLUMNS)
    assert not tensor.free(0, 0, COLUMNS)


def test_an_address_holds_lane_and_column():
    addresses = np.array([(37 << 16) | 300])
    assert (lane_of(addresses).tolist(), column_of(addresses).tolist()) == ([37], [300])
