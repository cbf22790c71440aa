"""Log of a CTA's accesses: repetitions found, skipped turns counted."""

import numpy as np

from cutegen_nb.core.profile import SECTOR_BYTES
from cutegen_nb.simulator.sampling import access_log
from cutegen_nb.simulator.sampling.access_log import CtaLog


def turn(log, first, *, instruction=1, stores=False):
    log.add(instruction, np.array([first, first + 1]), first * SECTOR_BYTES, 0, stores=stores)


def test_accesses_moved_by_whole_sectors_repeat_and_others_do_not():
    log = CtaLog(0)
    turn(log, 0)
    turn(log, 8)
    assert log.repeats(0, 1)
    log.lowest[1] += 4
    assert not log.repeats(0, 1)
    other = CtaLog(0)
    turn(other, 0)
    turn(other, 8, instruction=2)
    assert not other.repeats(0, 1)


def test_a_skipped_period_counts_its_loads_and_keeps_its_stride():
    log = CtaLog(0)
    turn(log, 0)
    turn(log, 8)
    log.skip(1, 5)
    assert log.weights == [1.0, 6.0]
    assert log.clock == 2 * 7
    (level,) = log.levels[1]
    assert (level.stride, level.repetitions, level.time_each) == (8, 5, 2.0)


def test_stores_take_no_time_of_loads_and_a_full_log_ends(monkeypatch):
    monkeypatch.setattr(access_log, "MOST_SECTORS", 3)
    log = CtaLog(0)
    turn(log, 0, stores=True)
    assert (log.clock, log.full) == (0.0, False)
    turn(log, 2)
    assert log.full
    log.skip(1, 5)
    assert log.levels == {}
