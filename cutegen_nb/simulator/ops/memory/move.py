"""Moves, packing, address conversion and selection (PTX ISA, "Data Movement", "Comparison and Selection")."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats, values
from cutegen_nb.simulator.numbers.values import DTYPES, U64, Value
from cutegen_nb.simulator.ops.arithmetic.integer import compute1, unsigned_of
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction, Operand, Register, Symbol, Vector
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

GENERIC_SHARED = 1 << 56
"""First generic address of the shared window in the simulator."""
GENERIC_LOCAL = 1 << 57
"""First generic address of the local window in the simulator."""
GENERIC_PARAM = 1 << 58
"""First generic address of the kernel parameters in the simulator."""
WINDOWS = {
    "shared": GENERIC_SHARED, "local": GENERIC_LOCAL, "param": GENERIC_PARAM, "global": 0, "const": 0,
}  # fmt: skip
"""First generic address of each state space, for ``cvta``."""


# -- mov -----------------------------------------------------------------------------------------------------
@opcode("mov", forms="pred, b/u/s/f 16–64, packing and unpacking {…}, addresses of variables")
def _mov(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    target, origin = instruction.operands
    if isinstance(target, Vector):
        return _unpack(instruction, lowering, target, kind)
    if isinstance(origin, Vector):
        return _pack(instruction, lowering, origin, kind)
    if isinstance(origin, Register) and origin.name in _CLOCKS:
        return _clock(instruction, lowering, kind)
    slot = moved(instruction, lowering, origin, kind)
    wanted = lowering.width(target, kind)
    if lowering.width(origin, kind) == wanted:
        return lowering.assign(instruction, lambda registers: registers[slot])
    unsigned = UNSIGNED[wanted]
    narrow = UNSIGNED[lowering.width(origin, kind)]
    return lowering.assign(instruction, compute1(lambda x: x.astype(unsigned), narrow, slot))


_CLOCKS = {
    "%clock": 0, "%clock64": 0, "%clock_hi": 32,
    "%globaltimer": 0, "%globaltimer_lo": 0, "%globaltimer_hi": 32,
}  # fmt: skip
"""Clock registers, with the lowest bit of the count that each one shows."""


def _clock(instruction: Instruction, lowering: Lowering, kind: str) -> Operation:
    """Operation that reads a clock: the number of instructions executed so far, which is no time."""
    put = lowering.writer(instruction, instruction.operands[0])
    unsigned = unsigned_of(kind)
    ones = (1 << 8 * unsigned.itemsize) - 1
    origin = instruction.operands[1]
    assert isinstance(origin, Register)
    first = _CLOCKS[origin.name]

    def run(lanes: Batch, mask: Mask | None) -> None:
        lanes.clock += 1  # segments count as a whole: without this, two readings in one would be equal
        put(lanes, mask, unsigned.type((lanes.clock >> first) & ones))

    return run


def moved(instruction: Instruction, lowering: Lowering, origin: Operand, kind: str) -> int:
    """Slot of an operand of ``mov`` or ``cvta``: a register, a constant, or the address of a variable."""
    if isinstance(origin, Symbol):
        space, address = lowering.symbols(origin.name)
        if space in {"const", "global"}:
            return lowering.constant(np.uint64(address + origin.offset))
        return lowering.constant(unsigned_of(kind).type(address + origin.offset))
    return lowering.source(instruction, origin, kind)


def _unpack(instruction: Instruction, lowering: Lowering, target: Vector, kind: str) -> Operation:
    (slot,) = lowering.sources(instruction, (kind,))
    puts = [lowering.writer(instruction, one) for one in target.items]
    whole = unsigned_of(kind)
    width = whole.itemsize // len(puts)
    part = UNSIGNED[width]

    def run(lanes: Batch, mask: Mask | None) -> None:
        value = lanes.registers[slot].view(whole)
        for index, put in enumerate(puts):
            put(lanes, mask, (value >> whole.type(8 * width * index)).astype(part))  # lowest part first

    return run


def _pack(instruction: Instruction, lowering: Lowering, origin: Vector, kind: str) -> Operation:
    whole = unsigned_of(kind)
    width = whole.itemsize // len(origin.items)
    part = UNSIGNED[width]
    slots = [lowering.source(instruction, one, f"b{8 * width}") for one in origin.items]

    def compute(registers: list[Value]) -> Value:
        result: Value = whole.type(0)
        for index, slot in enumerate(slots):
            result = result | (registers[slot].view(part).astype(whole) << whole.type(8 * width * index))
        return result

    return lowering.assign(instruction, compute)


@opcode("cvta", forms="to and from global, shared, local, const, param; u32, u64")
def _cvta(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    inward = modifiers.flag("to")
    space = modifiers.one("global", "local", "const", "param", "shared", "shared::cta", "shared::cluster")
    modifiers.done()
    if kind != "u64":
        raise unsupported(instruction)
    origin = instruction.operands[1]
    slot = moved(instruction, lowering, origin, kind)
    if isinstance(origin, Symbol) and inward:
        raise unsupported(instruction)
    window = np.uint64(WINDOWS[space.split("::")[0]])
    amount = np.negative(window) if inward else window
    return lowering.assign(
        instruction, lambda registers: values.add(values.modular(registers[slot], U64), amount)
    )


@opcode("isspacep", forms="global, shared, shared::cta, shared::cluster, local, const, param; u64")
def _isspacep(instruction: Instruction, lowering: Lowering) -> Operation:
    space = ".".join(instruction.modifiers).split("::")[0]
    if space not in {"global", "shared", "local", "param", "const"}:
        raise unsupported(instruction)
    (a,) = lowering.sources(instruction, ("u64",))
    edges = [0, GENERIC_SHARED, GENERIC_LOCAL, GENERIC_PARAM, 1 << 62]
    # Constants lie in global memory here, so ``const`` gets a range above 1 << 62 that holds nothing.
    number = {"global": 0, "shared": 1, "local": 2, "param": 3, "const": 4}[space]
    low = np.uint64(edges[number])
    high = np.uint64(edges[number + 1] if number + 1 < len(edges) else 1 << 63)

    def compute(registers: list[Value]) -> Value:
        address = registers[a].view(U64)
        return (address >= low) & (address < high)

    return lowering.assign(instruction, compute)


@opcode("createpolicy", forms="fractional, range, cvt: an opaque number, for caches only")
def _createpolicy(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.skip("fractional", "range", "cvt", "L2", "global")
    modifiers.done()
    if kind != "b64":
        raise unsupported(instruction)
    return lowering.assign(instruction, lambda _: np.uint64(0))


# -- selection -----------------------------------------------------------------------------------------------
def chosen(predicate: Value, yes: Value, no: Value, unsigned: np.dtype[Any]) -> Value:
    """Select ``yes`` where the predicate holds, else ``no``; bit arithmetic is faster than ``np.where``."""
    if predicate.ndim == 0:
        return yes if predicate else no
    x, y = yes.view(unsigned), no.view(unsigned)
    if unsigned is DTYPES["pred"]:
        return np.where(predicate, x, y)
    # −1 is all ones: y ^ ((x ^ y) & mask) is x where the mask is ones and y where it is zero.
    return np.bitwise_xor(y, np.bitwise_and(np.bitwise_xor(x, y), np.negative(predicate.astype(unsigned))))


@opcode("selp", forms="b/u/s/f 16–64")
def _selp(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    a, b, p = lowering.sources(instruction, (kind, kind, "pred"))
    selector = instruction.operands[3]
    negated = isinstance(selector, Register) and selector.negated
    unsigned = unsigned_of(kind)

    def compute(registers: list[Value]) -> Value:
        predicate = np.logical_not(registers[p]) if negated else registers[p]
        return chosen(predicate, registers[a], registers[b], unsigned)

    return lowering.assign(instruction, compute)


@opcode("slct", forms="b/u/s/f 16–64 by s32 or f32")
def _slct(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    kind, by = modifiers.types(2)
    flush = modifiers.flag("ftz")
    modifiers.done()
    if by not in {"s32", "f32"} or (flush and by != "f32"):
        raise unsupported(instruction)
    a, b, c = lowering.sources(instruction, (kind, kind, by))
    unsigned, dtype = unsigned_of(kind), DTYPES[by]

    def compute(registers: list[Value]) -> Value:
        selector = registers[c].view(dtype)
        positive = (formats.flushed(selector) if flush else selector) >= 0
        return chosen(positive, registers[a], registers[b], unsigned)

    return lowering.assign(instruction, compute)
