"""128-bit registers as pairs of 64-bit registers: loads, stores and moves are rewritten for the halves.

See PTX ISA, "Data Movement and Conversion Instructions": ``mov.b128``, ``ld.b128``, ``st.b128``. Other
instructions keep the register and are refused when they are lowered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.simulator.ptx.model import Instruction, Operand, Register, Vector

HALVES = (".lo", ".hi")
"""Suffixes of the names of the halves, the low one first."""
_WIDE = "b128"


def half_type(name: str, type_of: Callable[[str], str]) -> str:
    """Type of a half of a 128-bit register; empty for any other name."""
    base, dot, part = name.rpartition(".")
    if dot + part not in HALVES or type_of(base) != _WIDE:
        return ""
    return "b64"


def narrowed(instruction: Instruction, is_wide: Callable[[str], bool]) -> list[Instruction]:
    """Rewrite a 128-bit instruction for the halves; any other is returned as it is.

    ``mov.b128`` becomes two ``mov.b64``; ``ld.b128`` and ``st.b128`` become ``v2.b64``. The response that
    ``clusterlaunchcontrol.query_cancel`` reads becomes a vector of its halves.
    """
    modifiers, operands = instruction.modifiers, instruction.operands
    if modifiers[-1:] != (_WIDE,) or len(operands) < len(HALVES):
        return [instruction]
    if instruction.opcode == "clusterlaunchcontrol" and "query_cancel" in modifiers:
        parts = _parts(operands[-1], is_wide)
        return [
            instruction
            if parts is None
            else replace(instruction, operands=(*operands[:-1], Vector(items=parts)))
        ]
    if instruction.opcode == "mov":
        targets, origins = (_parts(one, is_wide) for one in operands[:2])
        if targets is None or origins is None:
            return [instruction]
        return [
            replace(instruction, modifiers=("b64",), operands=pair)
            for pair in zip(targets, origins, strict=True)
        ]
    if instruction.opcode not in {"ld", "st"} or "v2" in modifiers:
        return [instruction]
    at = 0 if instruction.opcode == "ld" else 1
    parts = _parts(operands[at], is_wide)
    if parts is None:
        return [instruction]
    given = (*operands[:at], Vector(items=parts), *operands[at + 1 :])
    return [replace(instruction, modifiers=(*modifiers[:-1], "v2", "b64"), operands=given)]


def _parts(operand: Operand, is_wide: Callable[[str], bool]) -> tuple[Operand, ...] | None:
    if isinstance(operand, Vector) and len(operand.items) == len(HALVES):
        return operand.items
    if isinstance(operand, Register) and operand.name == "_":
        return (operand, operand)
    if isinstance(operand, Register) and is_wide(operand.name):
        return tuple(replace(operand, name=operand.name + half) for half in HALVES)
    return None
