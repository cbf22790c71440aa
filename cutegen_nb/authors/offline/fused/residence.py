"""Room on the chip for a row: registers of its threads, or shared memory of a CTA or a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.expressions import leaves
from cutegen_nb.authors.offline.fused.loops import LoopNest, loop_nest
from cutegen_nb.authors.offline.fused.lowering import OperandAccess
from cutegen_nb.authors.offline.fused.plan import KernelPlan, PlannedKernel
from cutegen_nb.authors.offline.fused.rows_text import is_strided
from cutegen_nb.authors.offline.graph.ir import elements
from cutegen_nb.core.graph import DTYPE_BYTES

HALF_OF_AN_SM = 96 * 1024
"""Bytes of a row in one CTA, of which two fit the 227 KiB of an SM of Hopper: one loads while one stores."""
WHOLE_SM = 208 * 1024
"""Bytes of a row in a CTA that has the 227 KiB of an SM of Hopper to itself, with room for the statistics."""
LARGEST_CLUSTER = 16
"""Largest number of CTAs of a cluster on Hopper, of which 8 are portable; the DSL asks for the others."""
LONGEST_ROW = 16 * 2**20
"""Bytes of a row of which a cluster keeps a part worth having; L2 holds much of the rest."""
MOST_TENSORS = 4
"""Largest number of tensors whose rows are kept together."""
IN_REGISTERS = 16384
"""Elements of a row that 256 threads keep in 64 registers each."""
REGISTERS_FOR_A_ROW = 64
"""Largest number of 32-bit registers a thread for keeping its share of a row."""
WARP_THREADS = 32
"""Threads in a warp."""
CTA_THREADS = 256
"""Default threads of a CTA."""
LARGEST_CTA_THREADS = 1024
"""Largest number of threads of a CTA in CUDA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Residence:
    """Division of a row among the CTAs that keep it."""

    held: tuple[OperandAccess, ...]
    """Tensors that are needed again after a reduction over them."""
    row_bytes: int
    """Bytes of a row of those tensors at the full size."""
    ctas: int
    """CTAs that share a row, at most 16."""

    @property
    def in_cta(self) -> bool:
        """True if one CTA has room for the row."""
        return self.ctas == 1

    @property
    def whole(self) -> bool:
        """True if all of the row fits."""
        return self.row_bytes <= self.ctas * WHOLE_SM

    @property
    def kept_bytes(self) -> int:
        """Largest number of bytes of a row that a CTA keeps."""
        return HALF_OF_AN_SM if self.row_bytes <= self.ctas * HALF_OF_AN_SM else WHOLE_SM

    @property
    def bytes_of_two(self) -> int:
        """Largest number of bytes of a row that each of two CTAs of an SM keeps."""
        return HALF_OF_AN_SM

    @property
    def threads(self) -> int:
        """Threads of a CTA: 1024 where it has the SM to itself."""
        return 512 if self.kept_bytes == HALF_OF_AN_SM else 1024


def residence(kernel: PlannedKernel, plan: KernelPlan) -> Residence | None:
    """Find how to keep a kernel's rows on the chip; None where nothing is read twice or a row is too long."""
    nest = loop_nest(kernel)
    if not kernel.reductions or is_strided(kernel, nest):
        return None
    held = _held(kernel, nest)
    cols = elements([loop.extent for loop in nest.cols]).full
    row_bytes = cols * sum(DTYPE_BYTES[plan.dtype(access.value)] for access in held)
    if not 0 < len(held) <= MOST_TENSORS or cols * len(held) <= IN_REGISTERS or row_bytes > LONGEST_ROW:
        return None
    ctas = 1
    while ctas < LARGEST_CLUSTER and row_bytes > ctas * HALF_OF_AN_SM:
        ctas *= 2
    return Residence(held=held, row_bytes=row_bytes, ctas=ctas)


def threads_with_registers(nest: LoopNest, tensors: int, lanes: str) -> int | None:
    """Find the threads of a CTA whose registers hold the rows of `tensors` tensors at every size.

    `lanes` names what takes a row: ``thread``, ``warp`` or ``cta``. None where a row is too long.
    """
    # Elements of a row in all tensors kept; each counts as one register, whatever its dtype.
    cols = 1
    for loop in nest.cols:
        cols *= max(loop.extent.full, loop.extent.scaled)
    sharing = {"thread": (1,), "warp": (WARP_THREADS,), "cta": (CTA_THREADS, LARGEST_CTA_THREADS)}[lanes]
    enough = next((threads for threads in sharing if cols * tensors <= threads * REGISTERS_FOR_A_ROW), None)
    return None if enough is None else max(enough, CTA_THREADS)


def _held(kernel: PlannedKernel, nest: LoopNest) -> tuple[OperandAccess, ...]:
    """Loads over rows and columns that a reduction needs, and a later reduction or a store again."""
    uses = [[leaves(item.expr) for item in group] for group in kernel.passes]
    uses.append([leaves(store.expr) for store in kernel.element_stores])
    users = [frozenset[str]().union(*group) for group in uses]
    found = []
    for access in kernel.loads:
        order = nest.memory_order(access)
        over_both = nest.cols[-1] in order and any(loop in nest.rows for loop in order)
        if over_both and sum(access.register in used for used in users) > 1:
            found.append(access)
    return tuple(found)
