"""Comparisons (PTX ISA, "Comparison and Selection Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator import formats, values
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.formats import U16
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.lowering import Lowering, Modifiers, Operation, opcode
from cutegen_nb.simulator.ptx_model import Instruction, Register, Vector
from cutegen_nb.simulator.values import DTYPES, F32, U32, Value

Function = Callable[..., Value]
_ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
_UNORDERED = {"equ": "eq", "neu": "ne", "ltu": "lt", "leu": "le", "gtu": "gt", "geu": "ge"}
_COMPARISONS = (*_ORDERED, *_UNORDERED, "num", "nan")
_COMBINE: dict[str, Any] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(name: str, kind: str) -> Function:
    """Function of two plain values that gives booleans; unordered forms hold for NaN, ordered ones do not."""
    if DTYPES[kind].kind != "f" and kind != "bf16":
        return _ORDERED[name]
    if name == "num":
        return lambda x, y: ~(np.isnan(x) | np.isnan(y))
    if name == "nan":
        return lambda x, y: np.isnan(x) | np.isnan(y)
    if name == "ne":
        return lambda x, y: (x < y) | (x > y)
    if name in _ORDERED:
        return _ORDERED[name]
    ufunc = _ORDERED[_UNORDERED[name]]
    if name == "neu":
        return ufunc
    return lambda x, y: ufunc(x, y) | np.isnan(x) | np.isnan(y)


def _decided(name: str, bounds: tuple[int, int], limit: int) -> bool | None:
    """What a comparison gives for every number within bounds; None where it differs among them."""
    low, high = bounds
    ufunc = _ORDERED[name]
    if name in {"eq", "ne"}:
        return name == "ne" if limit < low or limit > high else None
    first, last = bool(ufunc(low, limit)), bool(ufunc(high, limit))
    return first if first == last else None


def _compare(instruction: Instruction, lowering: Lowering, kind: str, name: str) -> Function:
    """Function of the registers that gives booleans."""
    a, b = (lowering.source(instruction, one, kind) for one in instruction.operands[1:3])
    function = comparison(name, kind)
    if kind in {"f16", "bf16"}:
        widen = formats.half_to_single if kind == "f16" else formats.bfloat_to_single
        return lambda registers: function(widen(registers[a].view(U16)), widen(registers[b].view(U16)))
    dtype = DTYPES[kind]
    if dtype.kind == "u" and kind.startswith("s"):
        raise unsupported(instruction)

    def compute(registers: list[Value]) -> Value:
        x, y = registers[a], registers[b]
        if x.dtype is not dtype:
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
    name, flush = modifiers.one(*_COMPARISONS), modifiers.flag("ftz")
    combine = modifiers.one(*_COMBINE)
    modifiers.done()
    del flush  # comparing flushed subnormals differs only between subnormals and zero
    if not name:
        raise unsupported(instruction)
    if kind.endswith("x2"):
        return _setp_pair(instruction, lowering, kind.removesuffix("x2"), name, combine)
    compare = _compare(instruction, lowering, kind, name)
    third = instruction.operands[3] if combine else None
    slot = lowering.source(instruction, third, "pred") if isinstance(third, Register) else None
    negated = isinstance(third, Register) and third.negated

    def combined(truth: Value, registers: list[Value]) -> Value:
        if slot is None:
            return truth
        other = np.logical_not(registers[slot]) if negated else registers[slot]
        return _COMBINE[combine](truth, other)

    target = instruction.operands[0]
    if not isinstance(target, Vector):
        return lowering.assign(instruction, lambda registers: combined(compare(registers), registers))
    first, second = (lowering.writer(instruction, one) for one in target.items)

    def run(lanes: Lanes, mask: Mask | None) -> None:
        truth = compare(lanes.registers)
        yes, no = combined(truth, lanes.registers), combined(np.logical_not(truth), lanes.registers)
        first(lanes, mask, yes)
        second(lanes, mask, no)

    return run


def _setp_pair(instruction: Instruction, lowering: Lowering, half: str, name: str, combine: str) -> Operation:
    target = instruction.operands[0]
    if combine or not isinstance(target, Vector):
        raise unsupported(instruction)
    a, b = (lowering.source(instruction, one, "b32") for one in instruction.operands[1:3])
    first, second = (lowering.writer(instruction, one) for one in target.items)
    widen = formats.half_to_single if half == "f16" else formats.bfloat_to_single
    function = comparison(name, "f32")

    def run(lanes: Lanes, mask: Mask | None) -> None:
        x, y = lanes.registers[a].view(U32), lanes.registers[b].view(U32)
        high = np.uint32(16)
        low = function(widen(x.astype(U16)), widen(y.astype(U16)))
        top = function(widen((x >> high).astype(U16)), widen((y >> high).astype(U16)))
        first(lanes, mask, low)
        second(lanes, mask, top)

    return run


@opcode("set", forms="to u32, s32, f32 from integers, f32, f64")
def _set(instruction: Instruction, lowering: Lowering) -> Operation:
    modifiers = Modifiers(instruction)
    wanted, kind = modifiers.types(2)
    name = modifiers.one(*_COMPARISONS)
    modifiers.skip("ftz")
    modifiers.done()
    if wanted not in {"u32", "s32", "f32"} or not name:
        raise unsupported(instruction)
    compare = _compare(instruction, lowering, kind, name)
    if wanted == "f32":
        return lowering.assign(instruction, lambda registers: compare(registers).astype(F32))
    return lowering.assign(instruction, lambda registers: np.negative(compare(registers).astype(U32)))
