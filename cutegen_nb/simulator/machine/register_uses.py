"""Registers that instructions read and write, those private to one segment, and those read too early."""

from __future__ import annotations

from collections.abc import Sequence

from cutegen_nb.simulator.ptx.model import Address, Instruction, Operand, Register, Vector

_SIDE_ONLY = frozenset(
    {"st", "stmatrix", "red", "bra", "brx", "bar", "barrier", "ret", "exit", "trap", "brkpt"}
)
"""Opcodes without a destination register."""


def private_registers(body: Sequence[Instruction], ranges: Sequence[tuple[int, int]]) -> set[str]:
    """Names of the registers that are private to one segment.

    A private register is used in one segment only, and written there before it is read. Inactive lanes never
    see its value, so that it may be written for all lanes.
    """
    home: dict[str, int] = {}
    shared: set[str] = set()
    for number, (start, end) in enumerate(ranges):
        written: set[str] = set()
        for item in body[start:end]:
            sources, targets = registers_of(item)
            for name in sources | targets:
                if home.setdefault(name, number) != number:
                    shared.add(name)
            # Read before it is written here: the value comes from outside the segment, or from another turn.
            shared |= sources - written
            if item.guard is not None:
                # A guarded write keeps the old value in some lanes, which is a read of it.
                shared |= targets - written
            written |= targets
    return set(home) - shared


def read_first(body: Sequence[Instruction]) -> dict[str, Instruction]:
    """Registers that the text of a kernel reads before it writes them, with the instruction that does.

    A loop may write such a register before it comes there; a second run with other contents decides.
    """
    found: dict[str, Instruction] = {}
    known: set[str] = set()
    for item in body:
        sources, targets = registers_of(item)
        for name in sources - known:
            found[name] = item
        known |= sources | targets
    return found


def registers_of(item: Instruction) -> tuple[set[str], set[str]]:
    """Names of the registers that an instruction reads, and of those that it writes."""
    sources: set[str] = set()
    targets: set[str] = set()
    has_target = item.opcode not in _SIDE_ONLY and item.opcode != "cp"  # cp: operand 0 is an address
    if item.opcode == "tcgen05":  # of its instructions only loads write registers
        has_target = "ld" in item.modifiers
    if item.opcode in {"bar", "barrier"} and "red" in item.modifiers:
        has_target = True
    for index, operand in enumerate(item.operands):
        names = names_in(operand)
        second = index == 1 and item.opcode == "tcgen05" and "red" in item.modifiers
        if (index == 0 or second) and has_target and not isinstance(operand, Address):
            targets |= names
            if item.opcode == "wgmma":  # adds to its destination
                sources |= names
        else:
            sources |= names
    if item.guard is not None:
        sources.add(item.guard.name)
    return sources, targets


def names_in(operand: Operand) -> set[str]:
    """Names of the registers in an operand."""
    if isinstance(operand, Register):
        return {operand.name}
    if isinstance(operand, Address):
        return names_in(operand.base)
    if isinstance(operand, Vector):
        return set().union(*(names_in(one) for one in operand.items)) if operand.items else set()
    return set()
