"""Conversions to and from packed pairs, 8-bit floats and TensorFloat-32 (PTX ISA, ``cvt``, ``cvt.pack``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import formats, rounding
from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import F32, F64, S32, S64, U32, Value
from cutegen_nb.simulator.ops.arithmetic.integer import compute1, compute2, compute3
from cutegen_nb.simulator.ops.lowering import Lowering, Operation
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_EIGHT = {"e4m3": formats.E4M3_TO_SINGLE, "e5m2": formats.E5M2_TO_SINGLE}
"""float32 values of all codes, by 8-bit format."""
_GREATEST: dict[str, np.float32] = {
    "f16": np.float32(65504), "bf16": np.uint32(0x7F7F0000).view(np.float32),
    "tf32": np.uint32(0x7F7FE000).view(np.float32),
}  # fmt: skip
"""Greatest finite number of each type, as float32 (``.satfinite``)."""


def cvt_pair(
    instruction: Instruction, lowering: Lowering, mode: str, *, rectified: bool, finite: bool
) -> Operation:
    """Operation of ``cvt`` to or from packed pairs of f16, bf16, e4m3 or e5m2.

    The forms are: halves or 8-bit floats from two f32, 8-bit floats from f16x2, f16x2 from 8-bit floats. Of
    two operands ``{a, b}`` the first goes to the upper half. Eight-bit results are always ``.rn.satfinite``:
    beyond the range the greatest number of the sign, NaN 0x7F.

    Raises:
        UnsupportedOpcode: another combination.
    """
    wanted, kind = instruction.modifiers[-2:]
    half, source = wanted.removesuffix("x2"), kind.removesuffix("x2")
    if kind == "f32":
        return _from_singles(instruction, lowering, mode, half, rectified=rectified, finite=finite)
    if half in _EIGHT and kind == "f16x2" and mode == "rn" and finite:
        (a,) = lowering.sources(instruction, (kind,))

        def narrowed(x: Value) -> Value:
            both = [formats.half_to_single(one) for one in _parts(x, U16)]
            low, high = (formats.to_eight_bits(_rectified(one, rectified), half) for one in both)
            return low.astype(U16) | (high.astype(U16) << U16.type(8))  # the low half gives the low byte

        return lowering.assign(instruction, compute1(narrowed, U32, a))
    if wanted == "f16x2" and source in _EIGHT and mode == "rn" and not finite:
        (a,) = lowering.sources(instruction, (kind,))
        table = _EIGHT[source]

        def widened(x: Value) -> Value:
            low, high = (table[one] for one in (x & U16.type(255), x >> U16.type(8)))
            bits = [formats.single_to_half(_rectified(one, rectified)).astype(U32) for one in (low, high)]
            return bits[0] | (bits[1] << np.uint32(16))

        return lowering.assign(instruction, compute1(widened, U16, a))
    raise unsupported(instruction)


def _from_singles(  # noqa: PLR0913 - one for each modifier
    instruction: Instruction, lowering: Lowering, mode: str, half: str, *, rectified: bool, finite: bool
) -> Operation:
    eight = half in _EIGHT
    if mode not in ({"rn"} if eight else {"rn", "rz"}) or (eight and not finite):
        raise unsupported(instruction)
    a, b = lowering.sources(instruction, ("f32", "f32"))

    def narrow(x: Value) -> Value:
        x = _rectified(x, rectified)
        if eight:
            return formats.to_eight_bits(x, half)
        if finite:
            x = np.clip(x, -_GREATEST[half], _GREATEST[half])
        if mode == "rn":
            return (formats.single_to_half if half == "f16" else formats.single_to_bfloat)(x)
        return rounding.narrow_bits(x.astype(F64), half, mode)

    whole, bits = (U16, 8) if eight else (U32, 16)

    def function(x: Value, y: Value) -> Value:
        return (narrow(x).astype(whole) << whole.type(bits)) | narrow(y).astype(whole)

    return lowering.assign(instruction, compute2(function, F32, a, b))


def _parts(x: Value, part: np.dtype[Any]) -> tuple[Value, Value]:
    """Low and high half of an unsigned value, as ``part``."""
    bits = 8 * part.itemsize
    return x.astype(part), (x >> x.dtype.type(bits)).astype(part)


def _rectified(x: Value, rectified: bool) -> Value:  # noqa: FBT001 - a modifier that stands there or not
    """Replace negative numbers and −0 by +0 if ``rectified``; NaN stays (``.relu``)."""
    return np.maximum(x, np.float32(0)) + np.float32(0) if rectified else x


# -- TensorFloat-32 ------------------------------------------------------------------------------------------
def cvt_tf32(
    instruction: Instruction, lowering: Lowering, mode: str, *, rectified: bool, finite: bool
) -> Operation:
    """Operation of ``cvt`` from f32 to TensorFloat-32, which has 10 fraction bits.

    Rounding is to nearest with ties away from zero (rna), to nearest even (rn) or towards zero (rz).

    Raises:
        UnsupportedOpcode: another rounding or source.
    """
    if mode not in {"rn", "rna", "rz"} or instruction.modifiers[-1] != "f32" or (rectified and mode == "rna"):
        raise unsupported(instruction)
    (slot,) = lowering.sources(instruction, ("f32",))

    def function(x: Value) -> Value:
        bits = tf32_bits(_rectified(x, rectified), mode)
        if finite:
            return np.clip(bits.view(F32), -_GREATEST["tf32"], _GREATEST["tf32"])
        return bits

    return lowering.assign(instruction, compute1(function, F32, slot))


def tf32_bits(x: Value, mode: str) -> Value:
    """Round float32 to TensorFloat-32: bits of which the lowest 13 are zero; infinities stay.

    NaN is truncated for rna and becomes 0x7FFFE000 for rn and rz, as on an H200; the PTX ISA leaves it open.
    """
    bits = x.view(U32)
    kept = np.uint32(0xFFFFE000)
    # Half a unit of the last place kept is 0x1000. Adding it rounds ties away from zero; adding one less,
    # plus the last bit kept, rounds them to even. A carry goes into the exponent, as it should.
    if mode == "rz":
        rounded = bits & kept
    elif mode == "rna":
        rounded = (bits + np.uint32(0x1000)) & kept
    else:
        rounded = (bits + np.uint32(0x0FFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & kept
    special = np.where(np.isnan(x), (bits & kept) if mode == "rna" else np.uint32(0x7FFFE000), bits)
    return np.where(np.isfinite(x), rounded, special)


# -- cvt.pack ------------------------------------------------------------------------------------------------
def cvt_pack(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of ``cvt.pack.sat``: two s32 clamped and packed, the first one above the second.

    Results below 16 bits are put under a third operand, which is shifted up (PTX ISA, ``cvt.pack``).

    Raises:
        UnsupportedOpcode: other types.
    """
    modifiers = instruction.modifiers
    if modifiers[:2] != ("pack", "sat") or len(modifiers) not in {4, 5} or modifiers[3] != "s32":
        raise unsupported(instruction)
    kind = modifiers[2]
    sizes = {"u16": 16, "s16": 16} if len(modifiers) == 4 else {  # noqa: PLR2004 - without a third type
        "u2": 2, "s2": 2, "u4": 4, "s4": 4, "u8": 8, "s8": 8,
    }  # fmt: skip
    if kind not in sizes or (len(modifiers) == 5 and modifiers[4] != "b32"):  # noqa: PLR2004 - with one
        raise unsupported(instruction)
    size = sizes[kind]
    low, high = (0, (1 << size) - 1) if kind[0] == "u" else (-(1 << (size - 1)), (1 << (size - 1)) - 1)
    ones = np.int64((1 << size) - 1)

    def packed(x: Value, y: Value) -> Value:
        # Clamped to the type, then cut to its bits: operand a is the upper one of the pair.
        upper, lower = (np.clip(one.astype(S64), low, high) & ones for one in (x, y))
        return (lower | (upper << np.int64(size))).astype(U32)

    if size == 16:  # noqa: PLR2004 - two of them fill the register
        a, b = lowering.sources(instruction, ("s32", "s32"))
        return lowering.assign(instruction, compute2(packed, S32, a, b))
    a, b, c = lowering.sources(instruction, ("s32", "s32", "b32"))

    def onto(x: Value, y: Value, rest: Value) -> Value:
        return packed(x, y) | (rest.view(U32) << np.uint32(2 * size))

    return lowering.assign(instruction, compute3(onto, S32, a, b, c))
