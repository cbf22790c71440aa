"""Bytes of a loaded register that instructions read.

The compiler joins loads of neighbours: for three elements it may request four, where the address is aligned
for that. No instruction reads the fourth, which may lie past the end of the tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.simulator.machine.register_uses import names_in
from cutegen_nb.simulator.ops.lowering import SINK
from cutegen_nb.simulator.ptx.model import TYPE_BYTES, Immediate, Instruction, Operand, Register, Vector

_WHOLE = 16
"""Bytes of the widest register: all that a register has."""
_LOADS = frozenset({"ld", "ldu", "atom"})
"""Opcodes whose first operand is written and not read."""
_INTEGERS = frozenset(f"{sign}{bits}" for sign in "su" for bits in (8, 16, 32, 64))
_NIBBLE = 0xF
_BYTES_OF_A = 4
"""Bytes that ``prmt`` selects from its first source; the next four are those of its second."""


def bytes_read(body: Sequence[Instruction]) -> dict[str, int]:
    """Number of the last byte that instructions read of each register, from 1; none for one that is not read.

    An operand that is not the destination of a load counts as read whole, but for the ways in which the
    compiler takes bytes and halves from a register.
    """
    found: dict[str, int] = {}
    for item in body:
        for index, operand in enumerate(item.operands):
            if index == 0 and item.opcode in _LOADS and isinstance(operand, (Register, Vector)):
                continue
            last = _last_byte(item, index)
            for name in names_in(operand):
                found[name] = max(found.get(name, 0), last)
        if item.guard is not None:
            found[item.guard.name] = _WHOLE
    return found


def _last_byte(item: Instruction, index: int) -> int:
    if not item.modifiers:
        return _WHOLE
    if item.opcode == "mov" and index == 1 and isinstance(item.operands[0], Vector):
        return _unpacked(item.operands[0].items, TYPE_BYTES.get(item.modifiers[-1], _WHOLE))
    if item.opcode == "prmt" and index in {1, 2} and item.modifiers == ("b32",):
        return _permuted(item.operands[-1], index)
    if item.opcode == "cvt" and index == 1 and _INTEGERS.issuperset(item.modifiers):
        return min(TYPE_BYTES[kind] for kind in item.modifiers)
    return _WHOLE


def _unpacked(parts: Sequence[Operand], size: int) -> int:
    """Last byte of a register of `size` bytes that goes into a part which is not discarded."""
    each = size // len(parts)
    kept = [
        number for number, one in enumerate(parts, 1) if not isinstance(one, Register) or one.name != SINK
    ]
    return max(kept, default=0) * each


def _permuted(selector: Operand, index: int) -> int:
    """Last byte of the first or the second source that a constant selector of ``prmt`` chooses."""
    if not isinstance(selector, Immediate) or not isinstance(selector.value, int):
        return _WHOLE
    chosen = [selector.value >> shift & _NIBBLE & ~8 for shift in (0, 4, 8, 12)]
    own = [one % _BYTES_OF_A + 1 for one in chosen if one // _BYTES_OF_A == index - 1]
    return max(own, default=0)
