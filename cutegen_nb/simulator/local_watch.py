"""Local memory watched: reads of what a thread never wrote into its own array.

Registers are out of reach of this check: PTX lets a kernel read one that was never set, and compilers make
use of it.  Like in shared memory a read of what nobody wrote is a doubt only (``findings``).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.faults import place
from cutegen_nb.simulator.findings import UNINITIALISED, Findings
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.ptx_model import Instruction
from cutegen_nb.simulator.values import Array


class LocalWatch:
    """What the threads of one batch wrote, cell by cell."""

    def __init__(self, *, local_bytes: int, cell: int, findings: Findings) -> None:
        self._cell = cell
        self._findings = findings
        cells = -(-local_bytes // cell)
        self._by_all: Array = np.zeros(cells, np.bool_)
        """Cells that every thread wrote."""
        self._by_each: Array | None = None
        """Cells that each thread wrote, shape (ctas, threads, cells); None while all do the same."""

    def stored(self, lanes: Lanes, mask: Mask | None, start: int | Array, size: int) -> None:
        """Note a store of ``size`` bytes: at one byte for all threads, or at one of the batch for each."""
        if isinstance(start, int):
            cells = slice(start // self._cell, (start + size - 1) // self._cell + 1)
            if mask is None:
                self._by_all[cells] = True
            elif not self._by_all[cells].all():
                self._each(lanes)[:, :, cells] |= mask.array[..., None]
            return
        self._each(lanes).reshape(-1)[self._flat(lanes, start, size)] = True

    def loaded(
        self, lanes: Lanes, mask: Mask | None, start: int | Array, size: int, instruction: Instruction
    ) -> None:
        """Look at a load."""
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

    def _each(self, lanes: Lanes) -> Array:
        if self._by_each is None:
            self._by_each = np.zeros((lanes.ctas, lanes.threads, len(self._by_all)), np.bool_)
        return self._by_each

    def _flat(self, lanes: Lanes, start: Array, size: int) -> Array:
        """Cells of each thread's request in ``_by_each``, one row a thread."""
        lane, byte = np.divmod(start, lanes.local.shape[2])
        many = np.arange(max(1, size // self._cell))
        return (lane * len(self._by_all) + byte // self._cell)[:, None] + many

    def _found(self, lanes: Lanes, lane: int, byte: int, instruction: Instruction) -> None:
        thread, cta = lanes.place_of(lane)
        self._findings.add(
            UNINITIALISED,
            f"Thread {thread} of CTA {cta} reads byte {byte} of an array of its own that it has not written "
            f"({instruction.name}, {place(instruction)}).",
            instruction, thread=thread, cta=cta, doubt=True,
        )  # fmt: skip
