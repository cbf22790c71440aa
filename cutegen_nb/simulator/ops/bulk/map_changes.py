"""``tensormap.replace`` and ``tensormap.cp_fenceproxy`` (PTX ISA, "Tensor Map instructions").

A map in global or in shared memory is changed at once. Fences between the proxies do nothing: threads run in
step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ops.memory.load_store import BASES, address_of
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Operand
from cutegen_nb.simulator.state.addressing import AddressOperand, listed, raise_outside
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.tensor_map import MAP_BYTES, UnknownTensorMap, replaced

_FIELDS = ("global_address", "rank", "box_dim", "global_dim", "global_stride", "swizzle_mode")
_BY_DIMENSION = ("box_dim", "global_dim", "global_stride")


@dataclass(frozen=True, slots=True)
class _MapPlace:
    """Address operand of a tensor map in global, shared or generic memory."""

    instruction: Instruction
    slot: int
    offset: int

    @staticmethod
    def of(instruction: Instruction, lowering: Lowering, operand: Operand, space: str) -> _MapPlace:
        """Operand of an instruction; addresses in shared memory become generic ones."""
        slot, offset, _ = address_of(instruction, lowering, operand)
        return _MapPlace(instruction, slot, offset + (BASES["shared"] if space.startswith("shared") else 0))

    def each(self, lanes: Batch, mask: Mask | None) -> list[Array]:
        """Bytes of the map of each active thread, views of memory.

        Raises:
            OutOfBounds: an address outside shared memory and every allocation.
        """
        request = listed(lanes, mask, AddressOperand(lanes.registers[self.slot], self.offset))
        return [
            self._bytes(lanes, int(address), request.lane(at)) for at, address in enumerate(request.addresses)
        ]

    def _bytes(self, lanes: Batch, address: int, lane: int) -> Array:
        inside = address - BASES["shared"]
        if 0 <= inside <= lanes.shared_limit - MAP_BYTES:
            return lanes.shared[lane // lanes.threads, inside : inside + MAP_BYTES]
        allocation = lanes.memory.find(address, address + MAP_BYTES)
        if allocation is None:
            raise_outside(lanes, lane, self.instruction, f"names a tensor map at address {address:#x}")
        allocation.about_to_store()
        start = address - allocation.address
        return allocation.bytes[start : start + MAP_BYTES]


@opcode(
    "tensormap",
    forms="replace of global_address, rank, box_dim, global_dim, global_stride, swizzle_mode in global or "
    "shared memory; cp_fenceproxy",
)
def _tensormap(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    if modifiers.flag("cp_fenceproxy"):
        return _copied(instruction, lowering)
    if not (modifiers.flag("replace") and modifiers.flag("tile") and modifiers.flag("b1024")):
        raise unsupported(instruction)
    field = modifiers.one(*_FIELDS)
    space = modifiers.one("global", "shared::cta")
    (kind,) = modifiers.types()
    modifiers.done()
    place, *rest = instruction.operands
    ordinal = rest.pop(0) if field in _BY_DIMENSION else Immediate(value=0)
    if not field or not isinstance(ordinal, Immediate):
        raise unsupported(instruction)
    at = _MapPlace.of(instruction, lowering, place, space)
    slot, number = lowering.source(instruction, rest[0], kind), int(ordinal.value)

    def run(lanes: Batch, mask: Mask | None) -> None:
        values = listed(lanes, mask, AddressOperand(lanes.registers[slot], 0)).addresses
        for data, value in zip(at.each(lanes, mask), values, strict=True):
            try:
                data[:] = np.frombuffer(replaced(data.tobytes(), field, number, int(value)), np.uint8)
            except UnknownTensorMap as problem:
                raise unsupported(instruction, str(problem)) from problem

    return run


def _copied(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of ``cp_fenceproxy``: copy a map from shared to global memory."""
    target, origin, size = instruction.operands
    if not isinstance(size, Immediate) or int(size.value) != MAP_BYTES:
        raise unsupported(instruction, "size")
    to = _MapPlace.of(instruction, lowering, target, "global")
    source = _MapPlace.of(instruction, lowering, origin, "shared")

    def run(lanes: Batch, mask: Mask | None) -> None:
        for there, here in zip(to.each(lanes, mask), source.each(lanes, mask), strict=True):
            there[:] = here

    return run
