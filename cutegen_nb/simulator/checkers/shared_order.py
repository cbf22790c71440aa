"""Fast proof that the clocks order a request to shared memory after all earlier accesses to its cells.

Neighbouring cells of one warp are compared together, by their latest epoch. A proof that fails says nothing:
the request is then compared cell by cell.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.happens_before import HappensBefore
from cutegen_nb.simulator.checkers.shared_cells import Touch
from cutegen_nb.simulator.numbers.values import Array

_ONE = np.uint32(1)


def in_order(order: HappensBefore, touched: Touch, before: Array, epochs: Array) -> bool:
    """Return True if all earlier accesses precede a request.

    Args:
        order: clocks of the warps.
        touched: cells of the request.
        before: warps, as bits, that accessed each of these cells earlier.
        epochs: latest epoch of each cell up to which these accesses count.
    """
    if not order.partial:
        return False
    if touched.listed:
        return _listed(order, touched, before & ~touched.bits, epochs)
    every = int(np.bitwise_or.reduce(touched.bits))
    warps = [warp for warp in range(every.bit_length()) if every >> warp & 1]
    return all(_of_warp(order, touched, warp, before, epochs) for warp in warps)


def _listed(order: HappensBefore, touched: Touch, others: Array, epochs: Array) -> bool:
    rows, bits = touched.where[0], touched.bits
    starts = np.flatnonzero(np.concatenate([[True], (rows[1:] != rows[:-1]) | (bits[1:] != bits[:-1])]))
    together = np.bitwise_or.reduceat(others, starts)
    latest = np.maximum.reduceat(np.where(others != 0, epochs, 0), starts)
    # The number of bits below a warp's bit is its number.
    known = order.known_to(rows[starts], np.bitwise_count(bits[starts] - _ONE), latest)
    return not (together & ~known).any()


def _of_warp(order: HappensBefore, touched: Touch, warp: int, before: Array, epochs: Array) -> bool:
    """Compare the cells of one warp: ``before`` and ``epochs`` have the shape (rows, cells)."""
    bit = _ONE << np.uint32(warp)
    others = np.where(touched.bits & bit, before & ~bit, np.uint32(0))
    together = np.bitwise_or.reduce(others, axis=1)
    latest = np.where(others != 0, epochs, 0).max(axis=1)
    known = order.known_to(np.arange(len(together)), np.full(len(together), warp), latest)
    return not (together & ~known).any()


def least_epoch(order: HappensBefore, touched: Touch) -> Array:
    """Least epoch of the warps of a request.

    One epoch per cell is kept, not one per warp. The least one reports fewer races, never too many.
    """
    every = int(np.bitwise_or.reduce(touched.bits))
    warps = np.flatnonzero([every >> warp & 1 for warp in range(32)])
    if touched.listed:
        # Each entry has the bit of one warp; the number of bits below it is the warp's number.
        return order.epochs_of(touched.where[0], np.bitwise_count(touched.bits - np.uint32(1)))
    return order.least(warps)
