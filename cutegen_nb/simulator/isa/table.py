"""Every instruction that the PTX ISA documents, by chapter, with an example.

Forms that a later architecture added have rows of their own. Rows without an example are listed as not
simulated. Examples run inside ``instruction_set.PRELUDE``. ``%rd1`` is the address of 512 bytes of global
memory and ``%r1`` that of 4 KiB of shared memory, of which ``%rd2`` is the generic address. ``%rd3`` is the
address of 64 bytes of local memory, ``%r6`` that of an mbarrier for 32 threads. ``%p4`` holds in one thread.
"""

from __future__ import annotations

from cutegen_nb.simulator.isa.arithmetic import ARITHMETIC
from cutegen_nb.simulator.isa.movement import MOVEMENT
from cutegen_nb.simulator.isa.row import Row

CHAPTERS: dict[str, tuple[Row, ...]] = {**ARITHMETIC, **MOVEMENT}
"""Rows by chapter of the PTX ISA."""
