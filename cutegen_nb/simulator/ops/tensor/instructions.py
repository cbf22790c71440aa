"""``tcgen05``: the instructions of tensor memory and of Blackwell's tensor cores, by their second name."""

from __future__ import annotations

from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ops.sync.async_copy import no_effect
from cutegen_nb.simulator.ops.tensor import allocation, moves
from cutegen_nb.simulator.ops.tensor.copies import lower_copy
from cutegen_nb.simulator.ops.tensor.mma import lower_mma
from cutegen_nb.simulator.ops.tensor.work import lower_commit
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_NAMES = (
    "alloc", "dealloc", "relinquish_alloc_permit", "ld", "st", "cp", "mma", "commit",
    "wait::ld", "wait::st", "fence::before_thread_sync", "fence::after_thread_sync",
)  # fmt: skip


@opcode(
    "tcgen05",
    forms="alloc, dealloc, relinquish_alloc_permit; ld (red), st, wait; cp; mma of kinds f16, tf32, f8f6f4, "
    "i8, mxf8f6f4, mxf4, mxf4nvf4 by one CTA or two; commit, fence",
)
def _tcgen05(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    what = modifiers.one(*_NAMES)
    ctas = 2 if modifiers.one("cta_group::1", "cta_group::2") == "cta_group::2" else 1
    modifiers.skip("sync", "aligned")
    if what.startswith("fence"):
        modifiers.done()
        return no_effect
    if what.startswith("wait"):
        return moves.lower_wait(instruction, modifiers, what)
    if what == "relinquish_alloc_permit":
        return allocation.lower_relinquish(instruction, modifiers)
    if what == "mma":
        return lower_mma(instruction, lowering, modifiers, ctas)
    if what == "cp":
        return lower_copy(instruction, lowering, modifiers, ctas)
    build = {
        "alloc": allocation.lower_alloc, "dealloc": allocation.lower_dealloc, "ld": moves.lower_load,
        "st": moves.lower_store, "commit": lower_commit,
    }.get(what)  # fmt: skip
    if build is None:
        raise unsupported(instruction)
    return build(instruction, lowering, modifiers)
