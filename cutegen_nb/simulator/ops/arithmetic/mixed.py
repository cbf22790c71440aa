"""``add``, ``sub`` and ``fma`` of f32 with f16 or bf16 factors (PTX ISA, "Mixed Precision")."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers import formats, rounding
from cutegen_nb.simulator.numbers.formats import U16
from cutegen_nb.simulator.numbers.values import F32, F64, Value
from cutegen_nb.simulator.ops.lowering import Lowering, Modifiers, Operation
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import Instruction

_WIDEN = {"f16": formats.half_to_single, "bf16": formats.bfloat_to_single}


def is_mixed(instruction: Instruction) -> bool:
    """Return whether an instruction names f32 and, after it, a type of 16 bits."""
    return instruction.modifiers[-2:-1] == ("f32",) and instruction.modifiers[-1] in _WIDEN


def lower_mixed(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of a mixed ``add``, ``sub`` or ``fma``.

    Raises:
        UnsupportedOpcode: a rounding other than to nearest, or another opcode.
    """
    modifiers = Modifiers(instruction)
    kind = instruction.modifiers[-1]
    modifiers.one(kind)
    modifiers.one("f32")
    mode = modifiers.one("rn", "rz", "rm", "rp", default="rn")
    clamp = modifiers.flag("sat")
    modifiers.done()
    name = instruction.opcode
    if mode != "rn" or name not in {"add", "sub", "fma"}:
        raise unsupported(instruction)
    kinds = (kind, kind, "f32") if name == "fma" else (kind, "f32")
    *narrow, last = lowering.sources(instruction, kinds)
    lowering.tally.flop_kind = "cuda.f32"
    lowering.tally.flops_each = len(kinds) - 1
    widen = _WIDEN[kind]

    def compute(registers: list[Value]) -> Value:
        factors = [widen(np.asarray(registers[slot].view(U16))) for slot in narrow]
        third = np.asarray(registers[last].view(F32))
        if name == "fma":
            result = rounding.multiply_add_single(factors[0], factors[1], third)
        else:
            wide = factors[0].astype(F64)
            result = (wide + third if name == "add" else wide - third).astype(F32)
        return formats.saturated(result) if clamp else formats.canonical(result)

    return lowering.assign(instruction, compute)
