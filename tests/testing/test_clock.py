"""A clock that stands still unless it is moved."""

from cutegen_nb.testing.clock import FixedClock


def test_it_moves_by_its_step_and_by_hand():
    clock = FixedClock(step_s=0.5)
    assert [clock.monotonic(), clock.monotonic()] == [0.5, 1.0]
    clock.move(60)
    assert clock.now() == "2026-01-01T00:01:01+00:00"
    assert FixedClock().monotonic() == 0.0
