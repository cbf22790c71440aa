"""Checker of proxy fences: shared memory that threads store and the asynchronous proxy reads.

``wgmma``, ``tcgen05`` and bulk copies read shared memory through the asynchronous proxy. It may see what was
there before a thread's ordinary store unless a ``fence.proxy.async`` lies between the two (PTX ISA, "Async
proxy"). Questions are decided in favour of the kernel: any such fence covers all stores before it, whichever
thread executed it.
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.shared_cells import Touch
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.model import Instruction

_READERS = frozenset({"wgmma", "tcgen05", "cp"})
"""Opcodes that read shared memory through the asynchronous proxy; a plain ``cp.async`` reads none of it."""


class AsyncProxy:
    """Cells of shared memory that threads have stored since the latest proxy fence."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self._stored: Array = np.zeros(shape, np.bool_)
        self._any = False

    def written(self, touched: Touch, instruction: Instruction) -> None:
        """Note a store; a copy that landed there came through the asynchronous proxy."""
        by_thread = instruction.opcode != "cp"
        self._any |= by_thread
        if self._any:
            self._stored[touched.where] = by_thread

    def fenced(self) -> None:
        """Note a proxy fence."""
        if self._any:
            self._stored[:] = False
            self._any = False

    def misses(self, touched: Touch, instruction: Instruction) -> bool:
        """Return whether an instruction reads cells through the asynchronous proxy that no fence covers."""
        return self._any and instruction.opcode in _READERS and bool(self._stored[touched.where].any())

    def unfenced(self, row: Array, cell: Array) -> int:
        """Position of the first of some cells that no fence covers."""
        return int(np.flatnonzero(self._stored[row, cell])[0])

    def widen(self, rows: int) -> None:
        """Keep a row for each of `rows` CTAs from now on."""
        self._stored = np.repeat(self._stored, rows, axis=0)
