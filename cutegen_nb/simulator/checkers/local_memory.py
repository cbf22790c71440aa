"""Checker of local memory: a thread's reads of bytes of its own arrays that it has not written.

Registers are not checked: PTX lets a kernel read a register that was never set, and compilers make use of it.
As in shared memory, an uninitialised read is only a doubt (see :mod:`findings
<cutegen_nb.simulator.checkers.findings>`).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.checkers.findings import UNINITIALISED, Findings
from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ptx.faults import place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.batch import Batch, Mask


class LocalWatch:
    """Cells of local memory that the threads of one batch wrote; a cell has ``cell`` bytes."""

    def __init__(self, *, local_bytes: int, cell: int, findings: Findings) -> None:
        self._cell = cell
        self._findings = findings
        cells = -(-local_bytes // cell)
        self._by_all: Array = np.zeros(cells, np.bool_)
        """Cells that every thread wrote, bool of shape (cells,)."""
        self._by_each: Array | None = None
        """Cells that each thread wrote, bool of shape (ctas, threads, cells); None while all do the same."""

    def stored(self, lanes: Batch, mask: Mask | None, start: int | Array, size: int) -> None:
        """Note a store of ``size`` bytes per thread.

        ``start`` is one byte offset for all threads, or each active thread's offset into the local memory of
        the whole batch.
        """
        if isinstance(start, int):
            cells = slice(start // self._cell, (start + size - 1) // self._cell + 1)
            if mask is None:
                self._by_all[cells] = True
            elif not self._by_all[cells].all():
                self._each(lanes)[:, :, cells] |= mask.array[..., None]
            return
        self._each(lanes).reshape(-1)[self._flat(lanes, start, size)] = True

    def loaded(
        self, lanes: Batch, mask: Mask | None, start: int | Array, size: int, instruction: Instruction
    ) -> None:
        """Check a load of ``size`` bytes per thread; ``start`` is as for :meth:`stored`."""
        if self._findings.seen(UNINITIALISED, instruction):
            return
        if isinstance(start, int):
            cells = slice(start // self._cell, (start + size - 1) // self._cell + 1)
            if self._by_all[cells].all():
                return
            written = (self._by_all[cells] | self._each(lanes)[:, :, cells]).all(axis=2)
            missing = ~written if mask is None else ~written & mask.array
            if missing.any():
                lane = int(np.flatnonzero(np.broadcast_to(missing, (lanes.ctas, lanes.threads)))[0])
                self._found(lanes, lane, start, instruction)
            return
        flat = self._flat(lanes, start, size)
        number = flat % len(self._by_all)
        written = (self._by_all[number] | self._each(lanes).reshape(-1)[flat]).all(axis=1)
        if not written.all():
            position = int(np.flatnonzero(~written)[0])
            lane = position if mask is None else int(mask.index[position])
            self._found(lanes, lane, int(start[position]) % lanes.local.shape[2], instruction)

    def _each(self, lanes: Batch) -> Array:
        if self._by_each is None:
            self._by_each = np.zeros((lanes.ctas, lanes.threads, len(self._by_all)), np.bool_)
        return self._by_each

    def _flat(self, lanes: Batch, start: Array, size: int) -> Array:
        """Indices into the flattened ``_by_each`` of the cells of a request, one row per thread."""
        lane, byte = np.divmod(start, lanes.local.shape[2])
        many = np.arange(max(1, size // self._cell))
        return (lane * len(self._by_all) + byte // self._cell)[:, None] + many

    def _found(self, lanes: Batch, lane: int, byte: int, instruction: Instruction) -> None:
        thread, cta = lanes.place_of(lane)
        self._findings.add(
            UNINITIALISED,
            f"Thread {thread} of CTA {cta} reads byte {byte} of an array of its own that it has not written "
            f"({instruction.name}, {place(instruction)}).",
            instruction, thread=thread, cta=cta, doubt=True,
        )  # fmt: skip
