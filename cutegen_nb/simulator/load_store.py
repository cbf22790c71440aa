"""``ld`` and ``st`` over every state space (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cutegen_nb.simulator import global_ops, shared_ops, values
from cutegen_nb.simulator.addressing import At
from cutegen_nb.simulator.faults import unsupported
from cutegen_nb.simulator.global_ops import GlobalForm
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.lowering import NONE, Lowering, Modifiers, Operation, items, opcode, under
from cutegen_nb.simulator.memory import UNSIGNED
from cutegen_nb.simulator.move_ops import GENERIC_LOCAL, GENERIC_PARAM, GENERIC_SHARED
from cutegen_nb.simulator.ptx_model import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from cutegen_nb.simulator.shared_ops import SharedForm
from cutegen_nb.simulator.values import S64, U64, Value

HINTS = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release",
    "acq_rel", "mmio", "cta", "cluster", "gpu", "sys", "L1", "L2", "unified",
)  # fmt: skip
"""Modifiers that say how memory is cached or ordered: threads here run in step, so they change nothing."""
_SPACES = ("global", "shared", "shared::cta", "local", "param", "param::entry", "param::func", "const")

Reader = Callable[[Lanes, Mask | None, At], list[Value]]
Writer = Callable[[Lanes, Mask | None, At, list[Value]], None]


def parse_access(instruction: Instruction) -> tuple[str, int, str]:
    """State space (empty for generic), elements and type of a load or store.

    Raises:
        UnsupportedOpcode: a modifier is not known.
    """
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    space = modifiers.one(*_SPACES).split("::")[0]
    modifiers.skip(*HINTS)
    count = int(modifiers.one("v2", "v4", "v8", default="v1")[1])
    modifiers.done()
    return space, count, kind


def address_of(instruction: Instruction, lowering: Lowering, operand: Operand) -> tuple[int, int, str]:
    """Slot and offset of an address operand, and the state space of a variable it names.

    Raises:
        UnsupportedOpcode: a form without a value.
    """
    if not isinstance(operand, Address):
        raise unsupported(instruction, "address form")
    if isinstance(operand.base, Register):
        return lowering.register(operand.base.name), operand.offset, ""
    if isinstance(operand.base, Symbol):
        space, address = lowering.symbols(operand.base.name)
        return lowering.constant(np.uint64(address)), operand.offset + operand.base.offset, space
    assert isinstance(operand.base, Immediate)
    return lowering.constant(np.uint64(int(operand.base.value))), operand.offset, ""


@opcode("ld", "ldu", forms="param, const, global, shared, local, generic; v1–v8 of 8–64 bits; cache hints")
def _load(instruction: Instruction, lowering: Lowering) -> Operation:
    space, count, kind = parse_access(instruction)
    slot, offset, own = address_of(instruction, lowering, instruction.operands[1])
    targets = items(instruction.operands[0])
    if len(targets) != count:
        raise unsupported(instruction, f"{len(targets)} destinations")
    read = _reader(instruction, lowering, own or space, (UNSIGNED[TYPE_BYTES[kind]].itemsize, count))
    puts = [lowering.writer(instruction, one) for one in targets]
    extend = [_extension(lowering.width(one, kind), kind) for one in targets]

    def run(lanes: Lanes, mask: Mask | None) -> None:
        data = read(lanes, mask, At(lanes.registers[slot], offset))
        for put, wider, value in zip(puts, extend, data, strict=True):
            put(lanes, mask, wider(value) if wider else value)

    return run


def _extension(width: int, kind: str) -> Callable[[Value], Value] | None:
    """How a loaded element fills a wider register: by its sign for signed types, else by zeros."""
    if width <= TYPE_BYTES[kind]:
        return None
    unsigned = UNSIGNED[width]
    if kind.startswith("s"):
        narrow, wide = np.dtype(f"i{TYPE_BYTES[kind]}"), np.dtype(f"i{width}")
        return lambda value: value.view(narrow).astype(wide).view(unsigned)
    return lambda value: value.astype(unsigned)


@opcode("st", forms="param, global, shared, local, generic; v1–v8 of 8–64 bits; cache hints")
def _store(instruction: Instruction, lowering: Lowering) -> Operation:
    space, count, kind = parse_access(instruction)
    slot, offset, own = address_of(instruction, lowering, instruction.operands[0])
    sources = items(instruction.operands[1])
    if len(sources) != count:
        raise unsupported(instruction, f"{len(sources)} sources")
    write = _writer(instruction, lowering, own or space, (UNSIGNED[TYPE_BYTES[kind]].itemsize, count))
    slots = [lowering.source(instruction, one, kind) for one in sources]
    cuts = [narrowing(lowering, one, kind) for one in sources]

    def run(lanes: Lanes, mask: Mask | None) -> None:
        registers = lanes.registers
        data = [cut(registers[one]) for cut, one in zip(cuts, slots, strict=True)]
        write(lanes, mask, At(registers[slot], offset), data)

    return run


def narrowing(lowering: Lowering, operand: Operand, kind: str) -> Callable[[Value], Value]:
    """How a register's value becomes the bits of a type that may be narrower."""
    width = lowering.width(operand, kind)
    unsigned = UNSIGNED[TYPE_BYTES[kind]]
    if width == TYPE_BYTES[kind]:
        return lambda value: value if value.dtype is unsigned else value.view(unsigned)
    whole = UNSIGNED[width]
    return lambda value: value.view(whole).astype(unsigned)


# -- by state space ------------------------------------------------------------------------------------------
def _reader(instruction: Instruction, lowering: Lowering, space: str, shape: tuple[int, int]) -> Reader:
    """Loads of ``shape`` (width, count) from a state space; no space means generic addresses."""
    width, count = shape
    everywhere = GlobalForm(
        instruction=instruction, tally=lowering.tally, width=width, count=count, counted=space != "const"
    )
    inside = SharedForm(instruction=instruction, tally=lowering.tally, width=width, count=count)
    readers: dict[str, Reader] = {
        "global": lambda lanes, mask, at: global_ops.load(lanes, mask, at, everywhere),
        "const": lambda lanes, mask, at: global_ops.load(lanes, mask, at, everywhere),
        "shared": lambda lanes, mask, at: shared_ops.load(lanes, mask, at, inside),
        "local": lambda lanes, mask, at: shared_ops.load_local(lanes, mask, at, inside),
        "param": lambda lanes, _, at: shared_ops.load_parameter(lanes, at, inside),
    }
    if space:
        return readers[space]

    def generic(lanes: Lanes, mask: Mask | None, at: At) -> list[Value]:
        results: list[Value] | None = None
        for window, active in windows(lanes, mask, at):
            data = readers[window](lanes, active, At(at.value, at.offset - BASES[window]))
            if results is None or active is None:
                results = data
            else:
                results = [active.select(new, old, width) for new, old in zip(data, results, strict=True)]
        return results or [UNSIGNED[width].type(0)] * count

    return generic


def _writer(instruction: Instruction, lowering: Lowering, space: str, shape: tuple[int, int]) -> Writer:
    """Stores of ``shape`` (width, count) to a state space; no space means generic addresses."""
    width, count = shape
    tally = lowering.tally
    everywhere = GlobalForm(instruction=instruction, tally=tally, width=width, count=count, stores=True)
    inside = SharedForm(instruction=instruction, tally=tally, width=width, count=count, stores=True)
    writers: dict[str, Writer] = {
        "global": lambda lanes, mask, at, data: global_ops.store(lanes, mask, at, data, everywhere),
        "shared": lambda lanes, mask, at, data: shared_ops.store(lanes, mask, at, data, inside),
        "local": lambda lanes, mask, at, data: shared_ops.store_local(lanes, mask, at, data, inside),
    }
    if space and space not in writers:
        raise unsupported(instruction, f"writing to .{space}")
    if space:
        return writers[space]

    def generic(lanes: Lanes, mask: Mask | None, at: At, data: list[Value]) -> None:
        for window, active in windows(lanes, mask, at):
            if window not in writers:
                raise unsupported(instruction, f"writing to .{window}")
            writers[window](lanes, active, At(at.value, at.offset - BASES[window]), data)

    return generic


BASES = {"global": 0, "shared": GENERIC_SHARED, "local": GENERIC_LOCAL, "param": GENERIC_PARAM}
"""Where each window begins in the generic address space."""


def windows(lanes: Lanes, mask: Mask | None, at: At) -> list[tuple[str, Mask | None]]:
    """Which window generic addresses lie in, with the lanes for each."""
    value, offset = at
    plain: Any = value.view(U64 if value.__class__ is values.Separable else value.dtype).view(S64) + offset
    if mask is None and plain.size:
        low, high = _window(int(plain.min())), _window(int(plain.max()))
        if low == high:
            return [(low, None)]
    found: list[tuple[str, Mask | None]] = []
    for name, inside in (
        ("global", plain < GENERIC_SHARED),
        ("shared", (plain >= GENERIC_SHARED) & (plain < GENERIC_LOCAL)),
        ("local", (plain >= GENERIC_LOCAL) & (plain < GENERIC_PARAM)),
        ("param", plain >= GENERIC_PARAM),
    ):
        active = under(lanes, mask, inside)
        if active is not NONE:
            found.append((name, active))
    return found


def _window(address: int) -> str:
    if address < GENERIC_SHARED:
        return "global"
    if address < GENERIC_LOCAL:
        return "shared"
    return "local" if address < GENERIC_PARAM else "param"
