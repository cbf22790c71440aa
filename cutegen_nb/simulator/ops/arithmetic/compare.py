"""Comparisons (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats, values
from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import DTYPES, F32, U32, Function, Value
from cutegen_nb.simulator.ops.arithmetic.integer import unsigned_of
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction, Register, Vector
from cutegen_nb.simulator.state.batch import Batch, Mask

_ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
"""Ufunc by comparison; lo, ls, hi, hs are those of unsigned integers (PTX ISA, "Comparisons")."""
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
"""Ordered comparison of each unordered one, which is also true if an operand is NaN."""
_COMPARISONS = (*_ORDERED, *_UNORDERED, "num", "nan")
_COMBINE: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name: str, kind: str) -> Function:
    """Function of two plain values that returns booleans; only unordered forms hold for NaN."""
    if DTYPES[kind].kind != "f" and kind != "bf16":
        return _ORDERED[name]
    if name == "num":
        return lambda x, y: ~(np.isnan(x) | np.isnan(y))
    if name == "nan":
        return lambda x, y: np.isnan(x) | np.isnan(y)
    if name == "ne":  # ordered: NumPy's != holds for NaN, as ``neu`` does
        return lambda x, y: (x < y) | (x > y)
    if name in _ORDERED:
        return _ORDERED[name]
    ufunc = _ORDERED[_UNORDERED[name]]
    if name == "neu":
        return ufunc
    return lambda x, y: ufunc(x, y) | np.isnan(x) | np.isnan(y)


def _decided(name: str, bounds: tuple[int, int], limit: int) -> bool | None:
    """Result of a comparison with ``limit`` if it is the same for all numbers within bounds, else None."""
    low, high = bounds
    # Order comparisons are monotonic, so the two ends decide.
    ufunc = _ORDERED[name]
    if name in {"eq", "ne"}:
        return name == "ne" if limit < low or limit > high else None
    first, last = bool(ufunc(low, limit)), bool(ufunc(high, limit))
    return first if first == last else None


def _known(name: str, kind: str) -> bool:
    """Return whether a comparison exists for a type (PTX ISA, "Comparisons")."""
    sign = kind[0] if kind != "bf16" else "f"
    if sign == "f":
        return kind in {"f16", "bf16", "f32", "f64"} and name not in {"lo", "ls", "hi", "hs"}
    allowed = {"b": ("eq", "ne"), "s": tuple(_ORDERED)[:6], "u": tuple(_ORDERED)}
    return kind[1:] in {"16", "32", "64"} and name in allowed.get(sign, ())


def _widener(half: str, *, flush: bool) -> Function:
    """Function from the bits of f16 or bf16 to float32; with ``flush``, subnormals become zeros."""
    widen = formats.half_to_single if half == "f16" else formats.bfloat_to_single
    if not flush:
        return widen
    least = np.float32(2.0**-14 if half == "f16" else 2.0**-126)  # smallest normal number

    def function(bits: Value) -> Value:
        x = widen(bits)
        return np.where(np.abs(x) < least, np.float32(0), x)

    return function


def _compare(
    instruction: Instruction, lowering: Lowering, kind: str, name: str, *, flush: bool = False
) -> Function:
    """Function of the registers that returns the booleans of a comparison."""
    if not _known(name, kind):
        raise unsupported(instruction)
    a, b = (lowering.source(instruction, one, kind) for one in instruction.operands[1:3])
    function = comparison(name, kind)
    if kind in {"f16", "bf16"}:
        widen = _widener(kind, flush=flush)
        return lambda registers: function(widen(registers[a].view(U16)), widen(registers[b].view(U16)))
    dtype = DTYPES[kind]
    if flush:
        flushed = formats.flushed
        return lambda registers: function(flushed(registers[a].view(F32)), flushed(registers[b].view(F32)))

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not dtype:
            # Where bounds decide, the sums of all CTAs and threads are not computed.
            if x.__class__ is values.Separable and y.__class__ is not values.Separable and y.ndim == 0:
                bounds = x.bounds(dtype)
                known = None if bounds is None else _decided(name, bounds, int(y.view(dtype)))
                if known is not None:
                    return np.bool_(known)
            x = x.view(dtype)
        if y.dtype is not dtype:
            y = y.view(dtype)
        return function(x, y)

    return compute


@opcode(
    "setp", forms="all comparisons, .and/.or/.xor, p|q; integers, f16, bf16, f32, f64, ftz; f16x2, bf16x2"
)
def _setp(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    name, flush, combine = _asked(instruction, modifiers, kind)
    combined = _combined(instruction, lowering, combine)
    target = instruction.operands[0]
    if kind in {"f16x2", "bf16x2"}:
        if not isinstance(target, Vector):
            raise unsupported(instruction, "destination form")
        halves = _compare_pair(instruction, lowering, kind, name, flush=flush)
        return _two_results(instruction, lowering, target, lambda registers: [
            combined(one, registers) for one in halves(registers)
        ])  # fmt: skip
    compare = _compare(instruction, lowering, kind, name, flush=flush)
    if not isinstance(target, Vector):
        return lowering.assign(instruction, lambda registers: combined(compare(registers), registers))

    def both(registers: list[Value]) -> list[Value]:
        truth = compare(registers)
        # p = BoolOp(t, c) and q = BoolOp(!t, c) (PTX ISA, ``setp``).
        return [combined(truth, registers), combined(np.logical_not(truth), registers)]

    return _two_results(instruction, lowering, target, both)


def _asked(instruction: Instruction, modifiers: Modifiers, kind: str) -> tuple[str, bool, str]:
    """Take the remaining modifiers: comparison, flush of subnormals, and combination with a predicate.

    Raises:
        UnsupportedOpcode: a modifier is missing, unknown, or not of this type.
    """
    name, flush = modifiers.one(*_COMPARISONS), modifiers.flag("ftz")
    combine = modifiers.one(*_COMBINE)
    modifiers.done()
    if not name or (flush and kind.removesuffix("x2") not in {"f16", "f32"}):
        raise unsupported(instruction)
    return name, flush, combine


def _two_results(
    instruction: Instruction,
    lowering: Lowering,
    target: Vector,
    compute: Callable[[list[Value]], list[Value]],
) -> Operation:
    puts = [lowering.writer(instruction, one) for one in target.items]

    def run(lanes: Batch, mask: Mask | None) -> None:
        for put, value in zip(puts, compute(lanes.registers), strict=True):
            put(lanes, mask, value)

    return run


def _combined(instruction: Instruction, lowering: Lowering, combine: str) -> Callable[..., Value]:
    """Function that combines a comparison's result with predicate operand 3 (``.and``, ``.or``, ``.xor``).

    Raises:
        UnsupportedOpcode: there is a predicate too many or too few.
    """
    if len(instruction.operands) != (4 if combine else 3):
        raise unsupported(instruction, f"{len(instruction.operands) - 1} source operands")
    if not combine:
        return lambda truth, _: truth
    third = instruction.operands[3]
    if not isinstance(third, Register):
        raise unsupported(instruction, "operand form")
    slot, join, negated = lowering.register(third.name), _COMBINE[combine], third.negated

    def function(truth: Value, registers: list[Value]) -> Value:
        return join(truth, np.logical_not(registers[slot]) if negated else registers[slot])

    return function


def _compare_pair(
    instruction: Instruction, lowering: Lowering, kind: str, name: str, *, flush: bool
) -> Callable[[list[Value]], list[Value]]:
    """Function of the registers that returns the booleans of the low and of the high halves."""
    half = kind.removesuffix("x2")
    if not _known(name, half):
        raise unsupported(instruction)
    a, b = (lowering.source(instruction, one, "b32") for one in instruction.operands[1:3])
    widen, function = _widener(half, flush=flush), comparison(name, "f32")

    def compute(registers: list[Value]) -> list[Value]:
        x, y, high = registers[a].view(U32), registers[b].view(U32), np.uint32(16)
        low = function(widen(x.astype(U16)), widen(y.astype(U16)))
        return [low, function(widen((x >> high).astype(U16)), widen((y >> high).astype(U16)))]

    return compute


_TRUE = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "u16": 0xFFFF, "s16": 0xFFFF, "f16": 0x3C00,
         "bf16": 0x3F80}  # fmt: skip
"""Bits that ``set`` writes for true, by type: all ones, or 1.0 for floats; false is 0 (PTX ISA, ``set``)."""


@opcode(
    "set",
    forms="to u32, s32, f32, u16, s16, f16, bf16, f16x2, bf16x2; .and/.or/.xor, ftz; from all but predicates",
)
def _set(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    name, flush, combine = _asked(instruction, modifiers, kind)
    combined = _combined(instruction, lowering, combine)
    if kind in {"f16x2", "bf16x2"}:
        if wanted not in {kind, "u32", "s32"}:
            raise unsupported(instruction)
        bits = np.uint32(_TRUE[kind.removesuffix("x2")] if wanted == kind else 0xFFFF)
        halves = _compare_pair(instruction, lowering, kind, name, flush=flush)

        def packed(registers: list[Value]) -> Value:
            low, high = (combined(one, registers).astype(U32) * bits for one in halves(registers))
            return low | (high << np.uint32(16))

        return lowering.assign(instruction, packed)
    half = kind in {"f16", "bf16"}
    if wanted not in ({"f32", "u32", "s32"} if not half else set(_TRUE) - {"f32"}):
        raise unsupported(instruction)
    compare = _compare(instruction, lowering, kind, name, flush=flush)
    unsigned = unsigned_of(wanted)
    true = unsigned.type(_TRUE[wanted])
    return lowering.assign(
        instruction, lambda registers: combined(compare(registers), registers).astype(unsigned) * true
    )
