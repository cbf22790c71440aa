"""``cvt`` to and from pairs of 4- and 6-bit floats and of ue8m0 scales (PTX ISA, ``cvt``)."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers import formats
from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.small_floats import (
    SMALL_FLOATS,
    VALUES,
    codes_of,
    scale_codes,
    scale_values,
)
from cutegen_nb.simulator.numbers.values import F32, U32, Value
from cutegen_nb.simulator.ops.arithmetic.integer import compute1, compute2
from cutegen_nb.simulator.ops.lowering import Lowering, Operation
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_SCALES = "ue8m0"
_NIBBLE = 4
SMALL_PAIRS = frozenset({*(f"{one}x2" for one in SMALL_FLOATS), f"{_SCALES}x2"})
"""Types of packed pairs that this module converts."""


def cvt_small(
    instruction: Instruction, lowering: Lowering, mode: str, *, rectified: bool, finite: bool
) -> Operation:
    """Operation of a ``cvt`` to or from such a pair. Of two operands the first goes to the upper part.

    Raises:
        UnsupportedOpcode: another combination.
    """
    wanted, kind = instruction.modifiers[-2:]
    to, origin = wanted.removesuffix("x2"), kind.removesuffix("x2")
    if kind == "f32" and to in SMALL_FLOATS and mode == "rn" and finite:
        return _from_singles(instruction, lowering, to, rectified=rectified)
    if kind == "f32" and to == _SCALES and mode in {"rz", "rp"} and not rectified:
        upwards = mode == "rp"
        a, b = lowering.sources(instruction, ("f32", "f32"))
        return lowering.assign(
            instruction,
            compute2(
                lambda x, y: _packed(scale_codes(x, upwards=upwards), scale_codes(y, upwards=upwards)),
                F32,
                a,
                b,
            ),
        )
    if origin in SMALL_FLOATS and wanted == "f16x2" and mode == "rn":
        return _widened(instruction, lowering, origin, rectified=rectified)
    if origin == _SCALES and wanted == "bf16x2" and mode == "rn":
        (slot,) = lowering.sources(instruction, ("b16",))

        def powers(x: Value) -> Value:
            parts = (x & U16.type(0xFF), x >> U16.type(8))
            low, high = (
                formats.single_to_bfloat(scale_values(one.astype(np.uint8), _SCALES).astype(F32))
                for one in parts
            )
            return low.astype(U32) | high.astype(U32) << U32.type(16)

        return lowering.assign(instruction, compute1(powers, U16, slot))
    raise unsupported(instruction)


def _packed(high: Value, low: Value) -> Value:
    return high.astype(U16) << U16.type(8) | low.astype(U16)


def _from_singles(instruction: Instruction, lowering: Lowering, to: str, *, rectified: bool) -> Operation:
    a, b = lowering.sources(instruction, ("f32", "f32"))
    # A destination may be wider than the result, which is then extended by zeros.
    wide = lowering.width(instruction.operands[0], "b8" if to == "e2m1" else "b16") > 1

    def narrow(x: Value) -> Value:
        return codes_of(np.maximum(x, np.float32(0)) + np.float32(0) if rectified else x, to)

    def function(x: Value, y: Value) -> Value:
        high, low = narrow(x), narrow(y)
        if to != "e2m1":
            return _packed(high, low)
        pair: Value = high << np.uint8(_NIBBLE) | low
        return pair.astype(U16) if wide else pair

    return lowering.assign(instruction, compute2(function, F32, a, b))


def _widened(instruction: Instruction, lowering: Lowering, origin: str, *, rectified: bool) -> Operation:
    four = origin == "e2m1"
    (slot,) = lowering.sources(instruction, ("b8" if four else "b16",))
    bits, mask = (_NIBBLE, 0xF) if four else (8, 0x3F)

    def function(registers: list[Value]) -> Value:
        codes = np.asarray(registers[slot]).astype(U16)
        numbers = [VALUES[origin][one & U16.type(mask)] for one in (codes, codes >> U16.type(bits))]
        if rectified:
            numbers = [np.maximum(one, np.float32(0)) for one in numbers]
        low, high = (formats.single_to_half(one).astype(U32) for one in numbers)
        return low | high << U32.type(16)

    return lowering.assign(instruction, function)
