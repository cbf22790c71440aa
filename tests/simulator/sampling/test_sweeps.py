"""Sweeps over memory in skipped turns of a loop."""

import itertools

import numpy as np
import pytest

from cutegen_nb.simulator.sampling.access_log import CtaLog
from cutegen_nb.simulator.sampling.sweeps import sweeps_of

SECTOR = 32


def log_of(accesses):
    """Log of accesses (instruction, sectors, stores)."""
    log = CtaLog(0)
    for instruction, sectors, stores in accesses:
        found = np.unique(np.asarray(sectors, np.int64))
        log.add(instruction, found, int(found[0]) * SECTOR, 0, stores=stores)
    return log


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


@pytest.mark.parametrize("stride", [1, 3, 4, -5])
def test_a_sweep_finds_just_the_sectors_of_its_skipped_turns(stride):
    base = np.array([1000, 1001, 1007])
    log = skipped([(0, base, False)], stride, 4, 20)
    (sweep,) = sweeps_of(log)
    asked = np.arange(800, 1200)
    touched = {int(one) + turn * stride for one, turn in itertools.product(base, range(3, 20))}
    assert set(asked[~np.isnan(sweep.found(asked))].tolist()) == touched
