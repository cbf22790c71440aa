"""The state of an mbarrier after arrivals one by one, and its encoding."""

import numpy as np
import pytest

from cutegen_nb.simulator.state.mbarrier import MOST_ARRIVALS, States, pending_of, phase_of, word


def state(pending, expected, bytes_left=0, phase=0):
    return States.read(word(*(np.array([one]) for one in (pending, expected, bytes_left, phase))))


def one_by_one(pending, expected, arrivals):
    """Pending arrivals and parity after arrivals of a plain counter."""
    phase = 0
    for _ in range(arrivals):
        pending -= 1
        if pending == 0:
            pending, phase = expected, phase ^ 1
    return pending, phase


@pytest.mark.parametrize("fields", [(3, 7, 0, 1), (MOST_ARRIVALS, MOST_ARRIVALS, -5, 0), (1, 1, 1 << 19, 1)])
def test_a_word_comes_back_as_its_fields(fields):
    found = state(*fields)
    assert (
        int(found.pending[0]),
        int(found.expected[0]),
        int(found.bytes_left[0]),
        int(found.phase[0]),
    ) == fields
    assert bool(found.valid[0])
    assert not States.read(np.array([0, 2**64 - 1], np.uint64)).valid.any()


@pytest.mark.parametrize("arrivals", range(1, 12))
def test_arrivals_of_many_threads_are_those_of_a_counter(arrivals):
    found = state(2, 3)
    tokens, wrong = found.arrive(np.ones((1, arrivals), np.int64))
    assert not wrong.any()
    assert (int(found.pending[0]), int(found.phase[0])) == one_by_one(2, 3, arrivals)
    assert int(pending_of(tokens)[0, 0]) == 2
    assert int(phase_of(tokens)[0, -1]) == one_by_one(2, 3, arrivals - 1)[1]


def test_a_phase_with_bytes_outstanding_does_not_end():
    found = state(1, 1, bytes_left=64)
    _, wrong = found.arrive(np.array([[1]]))
    assert not wrong.any()
    found.finish()
    assert int(found.phase[0]) == 0
    found.bytes_left = np.array([0])
    found.finish()
    assert (int(found.phase[0]), int(found.pending[0])) == (1, 1)


def test_more_arrivals_at_once_than_a_phase_waits_for_are_wrong():
    _, wrong = state(2, 3).arrive(np.array([[3]]))
    assert wrong.all()
