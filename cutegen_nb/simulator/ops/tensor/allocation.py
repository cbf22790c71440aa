"""``tcgen05.alloc``, ``dealloc`` and ``relinquish_alloc_permit`` (PTX ISA, "Tensor Memory Allocation")."""

from __future__ import annotations

import numpy as np

from cutegen_nb.core.finding import Severity
from cutegen_nb.simulator.checkers.findings import TENSOR_MEMORY_KEPT
from cutegen_nb.simulator.numbers.values import U32, Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation
from cutegen_nb.simulator.ops.memory import shared
from cutegen_nb.simulator.ops.memory.load_store import BASES, address_of
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ops.tensor.places import active_warps, column_of, memory_of, misuse
from cutegen_nb.simulator.ops.warp.fragments import require_whole_warps
from cutegen_nb.simulator.ptx.faults import place
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state.addressing import AddressOperand
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.tensor_memory import COLUMNS, UNIT

_ADDRESS_BYTES = 4


def lower_alloc(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.alloc``, which writes the address of the columns to shared memory."""
    space = modifiers.one("shared::cta")
    modifiers.one("b32")
    modifiers.done()
    target, count = instruction.operands
    slot, offset, own = address_of(instruction, lowering, target)
    at = offset - (0 if space or own else BASES["shared"])
    number = lowering.source(instruction, count, "u32")
    form = SharedAccessForm(
        instruction=instruction, tally=lowering.tally, width=_ADDRESS_BYTES, count=1, stores=True
    )

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        lanes.tensor_allocation = instruction
        _, firsts = active_warps(lanes, mask)
        counts = lanes.full(lanes.registers[number], U32).reshape(-1)[firsts]
        columns = np.zeros(lanes.lane_count, U32)
        for lane, wanted in zip(firsts.tolist(), counts.tolist(), strict=True):
            columns[lane] = _taken(lanes, instruction, lane, int(wanted))
        chosen = np.zeros((lanes.ctas, lanes.threads), np.bool_)
        chosen.reshape(-1)[firsts] = True
        one = chosen[:1] if (chosen == chosen[:1]).all() else chosen
        data = columns.reshape(lanes.ctas, lanes.threads)
        shared.store(lanes, Mask(lanes, one), AddressOperand(lanes.registers[slot], at), [data], form)

    return run


def _taken(lanes: Batch, instruction: Instruction, lane: int, wanted: int) -> int:
    """First column of an allocation by the warp of a thread."""
    memory, cta = memory_of(lanes), lane // lanes.threads
    if wanted < UNIT or wanted > COLUMNS or wanted & (wanted - 1):
        raise misuse(
            lanes, lane, instruction,
            f"asks for {wanted} columns of tensor memory|Ask for a power of two from {UNIT} to {COLUMNS}.",
        )  # fmt: skip
    if memory.relinquished[cta]:
        raise misuse(
            lanes, lane, instruction,
            "allocates tensor memory after its CTA gave up the right to|"
            "Call relinquish_alloc_permit after the last allocation.",
        )  # fmt: skip
    first = memory.take(cta, wanted)
    if first is None:
        free = COLUMNS - int(memory.allocated[cta].sum())
        raise misuse(
            lanes, lane, instruction,
            f"asks for {wanted} columns of tensor memory, of which its CTA has {free} left: on a GPU it "
            "waits until others are freed, which may be for ever|"
            f"Allocate at most {COLUMNS} columns in all, and free them before asking again.",
        )  # fmt: skip
    return first


def lower_dealloc(instruction: Instruction, lowering: Lowering, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.dealloc``."""
    modifiers.one("b32")
    modifiers.done()
    address, count = lowering.sources(instruction, ("u32", "u32"), first=0)

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        memory = memory_of(lanes)
        _, firsts = active_warps(lanes, mask)
        places = column_of(_each(lanes, address, firsts))
        counts = _each(lanes, count, firsts)
        for lane, first, columns in zip(firsts.tolist(), places.tolist(), counts.tolist(), strict=True):
            if not memory.free(lane // lanes.threads, first, columns):
                raise misuse(
                    lanes, lane, instruction,
                    f"frees {columns} columns of tensor memory from column {first} on, which were not "
                    "allocated so|Free the address and the number of columns that were allocated, once.",
                )  # fmt: skip

    return run


def _each(lanes: Batch, slot: int, threads: Array) -> Array:
    return lanes.full(lanes.registers[slot], U32).reshape(-1)[threads].astype(np.int64)


def lower_relinquish(instruction: Instruction, modifiers: Modifiers) -> Operation:
    """Operation of ``tcgen05.relinquish_alloc_permit``."""
    modifiers.done()

    def run(lanes: Batch, mask: Mask | None) -> None:
        require_whole_warps(lanes, mask, instruction)
        _, firsts = active_warps(lanes, mask)
        memory_of(lanes).relinquished[firsts // lanes.threads] = True

    return run


def check_freed(lanes: Batch) -> None:
    """Note a finding where a CTA ended with columns that it had not freed."""
    memory, instruction = lanes.tensor, lanes.tensor_allocation
    if memory is None or instruction is None or not memory.allocated.any():
        return
    cta = int(np.flatnonzero(memory.allocated.any(axis=1))[0])
    _, block = lanes.place_of(cta * lanes.threads)
    lanes.findings.add(
        TENSOR_MEMORY_KEPT,
        f"CTA {block} ends with {int(memory.allocated[cta].sum())} columns of tensor memory allocated "
        f"({instruction.name}, {place(instruction)}). PTX demands that they are freed: the next CTA on the "
        "multiprocessor may wait for them for ever. Call tcgen05.dealloc before the kernel's end.",
        instruction, severity=Severity.DECIDES, cta=block,
    )  # fmt: skip
