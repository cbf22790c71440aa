"""Every instruction that the PTX ISA documents, by chapter, with an example of each form of its own age.

Rows without an example are listed as not simulated. Examples run inside ``instruction_set.PRELUDE``: ``%rd1``
is the address of 512 bytes of global memory, ``%r1`` that of 4 KiB of shared memory, ``%rd2`` the same as a
generic address, ``%rd3`` one of 64 bytes of local memory, ``%r6`` that of an mbarrier for 32 threads, ``%p4``
holds in one thread.
"""

from __future__ import annotations

from cutegen_nb.simulator.isa_arithmetic import ARITHMETIC
from cutegen_nb.simulator.isa_movement import MOVEMENT
from cutegen_nb.simulator.isa_rows import Row

CHAPTERS: dict[str, tuple[Row, ...]] = {**ARITHMETIC, **MOVEMENT}
"""Rows by the chapter of the PTX ISA."""
