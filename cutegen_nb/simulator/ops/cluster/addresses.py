"""``mapa`` and ``getctarank`` (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import U32, Value
from cutegen_nb.simulator.ops.arithmetic.integer import unsigned_of
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ops.memory.move import moved
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Register
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.clusters import mapped, ranks_of


@opcode("mapa", forms="shared::cluster or generic; u32, u64")
def _mapa(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.flag("shared::cluster")
    modifiers.done()
    _, origin, rank = instruction.operands
    address = moved(instruction, lowering, origin, kind)
    number = lowering.source(instruction, rank, "u32")
    unsigned = unsigned_of(kind)

    def compute(registers: list[Value]) -> Value:
        return mapped(np.asarray(registers[address].view(unsigned)), np.asarray(registers[number].view(U32)))

    return lowering.assign(instruction, compute)


@opcode("getctarank", forms="shared::cluster or generic; u32, u64")
def _rank(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.flag("shared::cluster")
    modifiers.done()
    target, origin = instruction.operands
    address = moved(instruction, lowering, origin, kind)
    own = lowering.source(instruction, Register(name="%cluster_ctarank"), "u32")
    put = lowering.writer(instruction, target)
    unsigned = unsigned_of(kind)

    def run(lanes: Batch, mask: Mask | None) -> None:
        given = np.asarray(lanes.registers[address].view(unsigned)).astype(np.int64)
        put(lanes, mask, ranks_of(given, np.asarray(lanes.registers[own].view(U32))).astype(U32))

    return run


def even_peer(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of an ``and`` that names the even CTA of a pair (:mod:`~..arithmetic.bits`)."""
    a, b = lowering.sources(instruction, ("b32", "b32"))
    own = lowering.source(instruction, Register(name="%cluster_ctarank"), "u32")
    put = lowering.writer(instruction, instruction.operands[0])

    def run(lanes: Batch, mask: Mask | None) -> None:
        left, right = (np.asarray(lanes.registers[slot].view(U32)) for slot in (a, b))
        if lanes.cluster_ctas == 1:
            put(lanes, mask, left & right)
            return
        address, keep = (left, right) if isinstance(instruction.operands[2], Immediate) else (right, left)
        rank = ranks_of(address.astype(np.int64), np.asarray(lanes.registers[own].view(U32)))
        put(lanes, mask, mapped(address & (keep | U32.type(0xFF000000)), (rank & ~1).astype(U32)))

    return run
