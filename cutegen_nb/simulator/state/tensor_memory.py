"""Tensor memory of a batch of CTAs: 512 columns of 128 lanes of 32 bits, and its allocations.

An address has the lane in its upper and the column in its lower 16 bits (PTX ISA, "Tensor Memory
Addressing"). Columns are allocated in units of 32 (PTX ISA, "Tensor Memory Allocation"). The memory of a CTA
is its own here: CTAs that share an SM do not take columns from one another.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import Array

COLUMNS, LANES = 512, 128
"""Columns and lanes of a CTA's tensor memory."""
UNIT = 32
"""Columns of the smallest allocation."""
HALF = 16
"""Lanes of the smallest part that a product writes apart from its neighbours."""
_LANE_AT = 16
_COLUMN_MASK = 0xFFFF


class TensorMemory:
    """Contents and allocations of the tensor memory of a batch."""

    def __init__(self, ctas: int, filling: Array) -> None:
        cells = np.empty((ctas, COLUMNS, LANES), np.uint32)
        cells[...] = np.resize(filling, 4).view(np.uint32)
        self.cells: Array = cells
        """Contents, uint32 of shape (ctas, columns, lanes). At first they are undefined on a GPU."""
        self.sizes: Array = np.zeros((ctas, COLUMNS), np.int64)
        """Columns of the allocation that begins at a column, 0 where none begins."""
        self.allocated: Array = np.zeros((ctas, COLUMNS), np.bool_)
        """True for columns that are allocated."""
        self.relinquished: Array = np.zeros(ctas, np.bool_)
        """True for CTAs that gave up the right to allocate."""
        self.under_way: Array = np.zeros((ctas, COLUMNS, LANES // HALF), np.int32)
        """Products and copies that are to write a column, by groups of 16 lanes."""
        self.unwaited: Array = np.zeros((ctas, COLUMNS), np.uint32)
        """Warps, as bits, whose stores to a column no ``tcgen05.wait::st`` has covered."""

    def take(self, cta: int, columns: int) -> int | None:
        """Allocate columns of a CTA and return the first; None where so many are not free side by side."""
        for first in range(0, COLUMNS - columns + 1, UNIT):
            if not self.allocated[cta, first : first + columns].any():
                self.allocated[cta, first : first + columns] = True
                self.sizes[cta, first] = columns
                return first
        return None

    def free(self, cta: int, first: int, columns: int) -> bool:
        """Free an allocation; False where none of this size begins at the column."""
        if not 0 <= first < COLUMNS or columns < 1 or self.sizes[cta, first] != columns:
            return False
        self.sizes[cta, first] = 0
        self.allocated[cta, first : first + columns] = False
        return True


def lane_of(addresses: Array) -> Array:
    """Lane of each address, int64."""
    return addresses >> _LANE_AT & _COLUMN_MASK


def column_of(addresses: Array) -> Array:
    """Column of each address, int64."""
    return addresses & _COLUMN_MASK
