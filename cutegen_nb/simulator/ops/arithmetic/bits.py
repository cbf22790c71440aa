"""Logic, shifts, bit counts, permutations, byte dot products (PTX ISA, "Logic and Shift", "Integer")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cutegen_nb.simulator.numbers import values
from cutegen_nb.simulator.numbers.values import BOOL, DTYPES, S64, U32, U64, Value
from cutegen_nb.simulator.ops.arithmetic.integer import compute1, compute2, compute3, modular2, unsigned_of
from cutegen_nb.simulator.ops.cluster.addresses import even_peer
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Immediate, Instruction, Register, Vector
from cutegen_nb.simulator.state.batch import Batch, Mask

_PAIR = 2


# -- logic and shifts ----------------------------------------------------------------------------------------
@opcode("and", "or", "xor", "not", "cnot", forms="pred, b16, b32, b64")
def _logic(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    name = instruction.opcode
    if kind not in {"pred", "b16", "b32", "b64"} or (name == "cnot" and kind == "pred"):
        raise unsupported(instruction)
    unsigned = BOOL if kind == "pred" else unsigned_of(kind)
    if name in {"not", "cnot"}:
        (a,) = lowering.sources(instruction, (kind,))
        if name == "cnot":  # 1 where the operand is 0, else 0 (PTX ISA, ``cnot``)
            return lowering.assign(instruction, compute1(lambda x: (x == 0).astype(unsigned), unsigned, a))
        return lowering.assign(instruction, compute1(np.invert, unsigned, a))
    if name == "and" and kind == "b32" and _names_even_peer(instruction, lowering):
        return even_peer(instruction, lowering)
    a, b = lowering.sources(instruction, (kind, kind))
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name]
    if kind == "pred":
        return lowering.assign(instruction, compute2(ufunc, unsigned, a, b))
    function = values.both if name == "and" else lambda x, y: values.either(x, y, ufunc)
    return lowering.assign(instruction, modular2(function, unsigned, a, b))


def _names_even_peer(instruction: Instruction, lowering: Lowering) -> bool:
    """Return whether an ``and`` clears the lowest bit of the rank in an address of a cluster's shared memory.

    Programs name the mbarrier of a pair's even CTA so (CUTLASS, ``Sm100MmaPeerBitMask``). Ranks begin at
    bit 24 on a GPU, the thread's own included, which the simulator leaves out.
    """
    (_, *sources) = instruction.operands
    masks = [int(one.value) & 0xFFFFFFFF for one in sources if isinstance(one, Immediate)]
    return lowering.has_pairs and any(one >> 24 == 0xFE for one in masks)  # noqa: PLR2004 - bit 24 cleared


@opcode("shl", "shr", forms="b16, b32, b64; shr also u and s")
def _shift(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    signs = "b" if instruction.opcode == "shl" else "bus"
    if kind not in {f"{sign}{bits}" for sign in signs for bits in (16, 32, 64)}:
        raise unsupported(instruction)
    a, b = lowering.sources(instruction, (kind, "u32"))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    if instruction.opcode == "shl":
        return lowering.assign(
            instruction,
            lambda registers: values.shift_left(
                values.modular(registers[a], unsigned), registers[b].view(U32)
            ),
        )
    return lowering.assign(
        instruction,
        lambda registers: values.shift_right(
            values.modular(registers[a], unsigned), registers[b].view(U32), dtype
        ),
    )


@opcode("shf", forms="l, r with wrap, clamp; b32")
def _funnel(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    side, mode = modifiers.one("l", "r"), modifiers.one("wrap", "clamp")
    left, clamped = side == "l", mode == "clamp"
    modifiers.done()
    if kind != "b32" or not side or not mode:
        raise unsupported(instruction)
    a, b, c = lowering.sources(instruction, ("b32", "b32", "u32"))
    half = np.uint64(32)

    def function(low: Value, high: Value, amount: Value) -> Value:
        # d is the upper half of [high:low] << n, or the lower half of [high:low] >> n (PTX ISA, ``shf``).
        joined = (high.astype(U64) << half) | low.astype(U64)
        bits = (np.minimum(amount, np.uint32(32)) if clamped else amount & np.uint32(31)).astype(U64)
        return ((joined << bits) >> half if left else joined >> bits).astype(U32)

    return lowering.assign(instruction, compute3(function, U32, a, b, c))


@opcode("lop3", forms="b32; with .and/.or also a predicate d|p")
def _lop3(instruction: Instruction, lowering: Lowering) -> Operation:
    """Bitwise function of three operands by its truth table (PTX ISA, ``lop3``).

    ``lop3.BoolOp`` also combines ``d != 0`` with a predicate.
    """
    modifiers = Modifiers(instruction)
    modifiers.types()
    combine = modifiers.one("and", "or")
    modifiers.done()
    kinds = ("b32", "b32", "b32", "b32", *(("pred",) if combine else ()))
    a, b, c, table_slot, *rest = lowering.sources(instruction, kinds)
    if not isinstance(instruction.operands[4], Immediate):
        raise unsupported(instruction, "a table that is no constant")
    function = _minterms(int(lowering.initial[table_slot]))
    target = instruction.operands[0]
    if not combine:
        return lowering.assign(instruction, compute3(function, U32, a, b, c))
    if not isinstance(target, Vector) or len(target.items) != _PAIR:
        raise unsupported(instruction, "destination form")
    first, second = (lowering.writer(instruction, one) for one in target.items)
    other, join = instruction.operands[5], np.logical_and if combine == "and" else np.logical_or
    negated = isinstance(other, Register) and other.negated

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        result = function(registers[a].view(U32), registers[b].view(U32), registers[c].view(U32))
        q = np.logical_not(registers[rest[0]]) if negated else registers[rest[0]]
        first(lanes, mask, result)
        second(lanes, mask, join(result != 0, q))

    return run


def _minterms(table: int) -> Callable[[Value, Value, Value], Value]:
    """Function of the truth table ``immLut = F(0xF0, 0xCC, 0xAA)``: bit 4x + 2y + z is F(x, y, z)."""

    def function(x: Value, y: Value, z: Value) -> Value:
        result: Value = np.uint32(0)
        for minterm in range(8):
            if table >> minterm & 1:
                term = (x if minterm & 4 else ~x) & (y if minterm & 2 else ~y) & (z if minterm & 1 else ~z)
                result = result | term
        return result

    return function


# -- counts --------------------------------------------------------------------------------------------------
@opcode("popc", "clz", "brev", "bfind", forms="b32, b64; bfind u and s with shiftamt")
def _bits(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    from_top = modifiers.flag("shiftamt")
    modifiers.done()
    signs = "us" if instruction.opcode == "bfind" else "b"
    wrong = kind not in {f"{sign}{bits}" for sign in signs for bits in (32, 64)}
    if wrong or (from_top and instruction.opcode != "bfind"):
        raise unsupported(instruction)
    (a,) = lowering.sources(instruction, (kind,))
    dtype, unsigned = DTYPES[kind], unsigned_of(kind)
    bits = 8 * unsigned.itemsize
    name = instruction.opcode
    if name == "popc":
        return lowering.assign(instruction, compute1(lambda x: np.bitwise_count(x).astype(U32), unsigned, a))
    if name == "clz":
        return lowering.assign(
            instruction, compute1(lambda x: (bits - bit_length(x)).astype(U32), unsigned, a)
        )
    if name == "brev":
        return lowering.assign(instruction, compute1(_reversed_bits, unsigned, a))

    def find(x: Value) -> Value:
        # Of a negative number the highest 0 counts; ``.shiftamt`` gives the shift that brings it to the top.
        plain = np.where(x < 0, ~x, x).view(unsigned) if dtype.kind == "i" else x
        length = bit_length(plain)
        found = (bits - length if from_top else length - 1).astype(U32)
        return np.where(length == 0, np.uint32(0xFFFFFFFF), found)

    return lowering.assign(instruction, compute1(find, dtype, a))


def bit_length(x: Value) -> Value:
    """Number of bits up to the highest one set, as int64; 0 for 0."""
    smeared = x  # every bit below the highest one is set, in log2(width) steps
    amount = 1
    while amount < 8 * x.dtype.itemsize:
        smeared = smeared | (smeared >> x.dtype.type(amount))
        amount *= 2
    return np.bitwise_count(smeared).astype(S64)


def _reversed_bits(x: Value) -> Value:
    # Exchange the halves, then the quarters within each half, and so on down to neighbouring bits.
    bits = 8 * x.dtype.itemsize
    result = x
    amount = bits // 2
    ones = (1 << bits) - 1
    mask = ones
    while amount:
        mask ^= (mask << amount) & ones
        low = x.dtype.type(mask)
        shift = x.dtype.type(amount)
        result = ((result >> shift) & low) | ((result & low) << shift)
        amount //= 2
    return result


@opcode("prmt", forms="b32 without mode, f4e, b4e, rc8, ecl, ecr, rc16")
def _permute(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    mode = modifiers.one("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    modifiers.types()
    modifiers.done()
    a, b, c = lowering.sources(instruction, ("b32", "b32", "b32"))

    def function(x: Value, y: Value, control: Value) -> Value:
        # Bytes 0 to 3 of the pair are those of a, 4 to 7 those of b.
        joined = (y.astype(U64) << np.uint64(32)) | x.astype(U64)
        result: Value = np.uint32(0)
        for position in range(4):
            # Bits 0 to 2 select a byte of [y:x]; bit 3 spreads its sign over the byte instead.
            nibble = _selector(mode, position, control)
            byte = (joined >> ((nibble & np.uint32(7)) * np.uint32(8)).astype(U64)) & np.uint64(255)
            sign = np.where(byte >> np.uint64(7) == 1, np.uint64(255), np.uint64(0))
            chosen = np.where(nibble & np.uint32(8) != 0, sign, byte).astype(U32)
            result = result | (chosen << np.uint32(8 * position))
        return result

    return lowering.assign(instruction, compute3(function, U32, a, b, c))


def _selector(mode: str, position: int, control: Value) -> Value:
    """Selector of the byte for a position of the result (PTX ISA, ``prmt``); bit 3 asks for its sign."""
    if not mode:
        return (control >> np.uint32(4 * position)) & np.uint32(15)
    low = control & np.uint32(3)
    if mode == "f4e":
        return (low + np.uint32(position)) & np.uint32(7)
    if mode == "b4e":
        return (low - np.uint32(position)) & np.uint32(7)
    if mode == "rc8":
        return low
    if mode == "ecl":
        return np.maximum(low, np.uint32(position))
    if mode == "ecr":
        return np.minimum(low, np.uint32(position))
    return ((low & np.uint32(1)) << np.uint32(1)) + np.uint32(position & 1)


@opcode("sad", forms="u and s 16, 32, 64")
def _sad(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    modifiers.done()
    if kind not in {f"{sign}{bits}" for sign in "us" for bits in (16, 32, 64)}:
        raise unsupported(instruction)
    a, b, c = lowering.sources(instruction, (kind, kind, kind))
    dtype = DTYPES[kind]
    # c + |a − b|: larger minus smaller, so that unsigned types do not wrap around (PTX ISA, ``sad``).
    return lowering.assign(
        instruction, compute3(lambda x, y, z: np.where(x < y, y - x, x - y) + z, dtype, a, b, c)
    )


@opcode("dp4a", "dp2a", forms="u32 and s32; dp2a lo, hi")
def _dot(instruction: Instruction, lowering: Lowering) -> Operation:
    """Dot product plus an integer (PTX ISA, ``dp4a``, ``dp2a``).

    ``dp4a`` multiplies four bytes by four bytes, ``dp2a`` two 16-bit numbers by the low or high two bytes.
    """
    modifiers = Modifiers(instruction)
    first, second = modifiers.types(2)
    part = modifiers.one("lo", "hi")
    upper = part == "hi"
    modifiers.done()
    if not {first, second} <= {"u32", "s32"} or bool(part) != (instruction.opcode == "dp2a"):
        raise unsupported(instruction)
    a, b, c = lowering.sources(instruction, (first, second, "u32"))
    four = instruction.opcode == "dp4a"
    bits, count = (8, 4) if four else (16, 2)
    base = 2 if upper and not four else 0

    def function(x: Value, y: Value, z: Value) -> Value:
        total = z
        for index in range(count):
            left = _part(x, bits, index, first)
            total = total + left * _part(y, 8, index + base, second)
        return total

    return lowering.assign(instruction, compute3(function, U32, a, b, c))


def _part(x: Value, bits: int, index: int, kind: str) -> Value:
    """Field ``index`` of a 32-bit number, sign-extended where the type is signed, as unsigned bits."""
    high = x << np.uint32(32 - bits * (index + 1))  # the field at the top, to be shifted down again
    if kind.startswith("s"):
        return (high.view(DTYPES["s32"]) >> np.int32(32 - bits)).view(U32)
    return high >> np.uint32(32 - bits)
