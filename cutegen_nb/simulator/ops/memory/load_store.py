"""``ld`` and ``st`` over every state space (PTX ISA, "Data Movement and Conversion Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cutegen_nb.simulator.numbers import values
from cutegen_nb.simulator.numbers.values import S64, U64, Value
from cutegen_nb.simulator.ops.cluster import memory as cluster
from cutegen_nb.simulator.ops.lowering import NONE, Lowering, Modifiers, Operation, items, opcode, under
from cutegen_nb.simulator.ops.memory import global_ as global_ops
from cutegen_nb.simulator.ops.memory import local, shared
from cutegen_nb.simulator.ops.memory.global_traffic import GlobalForm
from cutegen_nb.simulator.ops.memory.move import GENERIC_LOCAL, GENERIC_PARAM, GENERIC_SHARED
from cutegen_nb.simulator.ops.memory.shared import SharedAccessForm
from cutegen_nb.simulator.ptx.faults import unsupported
from cutegen_nb.simulator.ptx.model import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from cutegen_nb.simulator.state.addressing import AddressOperand
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

HINTS = (
    "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "volatile", "weak", "relaxed", "acquire", "release",
    "acq_rel", "mmio", "cta", "cluster", "gpu", "sys", "L1", "L2", "unified",
)  # fmt: skip
"""Modifiers for caching, memory order and scope; they change nothing here, because threads run in step."""
_SPACES = (
    "global",
    "shared",
    "shared::cta",
    "shared::cluster",
    "local",
    "param",
    "param::entry",
    "param::func",
    "const",
)

CLUSTER = "cluster"
"""Name here of shared memory of any CTA of the cluster (``shared::cluster``)."""

Reader = Callable[[Batch, Mask | None, AddressOperand], list[Value]]
"""Function that loads elements at addresses, as unsigned bits."""
Writer = Callable[[Batch, Mask | None, AddressOperand, list[Value]], None]
"""Function that stores elements, given as unsigned bits, at addresses."""


def parse_access(instruction: Instruction) -> tuple[str, int, str]:
    """State space (empty for generic), number of elements and type of a load or store.

    Raises:
        UnsupportedOpcode: a modifier is not known.
    """
    modifiers = Modifiers(instruction)
    (kind,) = modifiers.types()
    space = modifiers.one(*_SPACES)
    space = CLUSTER if space == "shared::cluster" else space.split("::")[0]
    modifiers.skip(*HINTS)
    count = int(modifiers.one("v2", "v4", "v8", default="v1")[1])
    modifiers.done()
    return space, count, kind


def address_of(instruction: Instruction, lowering: Lowering, operand: Operand) -> tuple[int, int, str]:
    """Slot and byte offset of an address operand, and the state space if it names a variable, else empty.

    Raises:
        UnsupportedOpcode: the operand is no address.
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
    width = UNSIGNED[TYPE_BYTES[kind]].itemsize
    used = [lowering.bytes_read(one, width) for one in targets]
    # Only what comes after the last byte that is read: nobody can tell whether it was loaded.
    count = max((number for number, last in enumerate(used, 1) if last), default=len(targets))
    extent = _Extent(
        width=width, count=count, surplus=len(targets) - count, unread=width - (used[count - 1] or width)
    )
    read = _reader(instruction, lowering, own or space, extent)
    puts = [lowering.writer(instruction, one) for one in targets[:count]]
    extend = [_extension(lowering.width(one, kind), kind) for one in targets[:count]]

    def run(lanes: Batch, mask: Mask | None) -> None:
        data = read(lanes, mask, AddressOperand(lanes.registers[slot], offset))
        for put, wider, value in zip(puts, extend, data, strict=True):
            put(lanes, mask, wider(value) if wider else value)

    return run


def _extension(width: int, kind: str) -> Callable[[Value], Value] | None:
    """Function that extends a loaded element to a wider register; None if the register is no wider.

    Signed types are sign-extended, others zero-extended (PTX ISA, "Operand Size Exceeding Instruction-Type
    Size").
    """
    if width <= TYPE_BYTES[kind]:
        return None
    unsigned = UNSIGNED[width]
    if kind.startswith("s"):
        narrow, wide = np.dtype(f"i{TYPE_BYTES[kind]}"), np.dtype(f"i{width}")
        return lambda value: value.view(narrow).astype(wide).view(unsigned)
    return lambda value: value.astype(unsigned)


def lower_store(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of a plain ``st``.

    Raises:
        UnsupportedOpcode: a form that is not known.
    """
    space, count, kind = parse_access(instruction)
    slot, offset, own = address_of(instruction, lowering, instruction.operands[0])
    sources = items(instruction.operands[1])
    if len(sources) != count:
        raise unsupported(instruction, f"{len(sources)} sources")
    write = _writer(instruction, lowering, own or space, (UNSIGNED[TYPE_BYTES[kind]].itemsize, count))
    slots = [lowering.source(instruction, one, kind) for one in sources]
    cuts = [narrowing(lowering, one, kind) for one in sources]

    def run(lanes: Batch, mask: Mask | None) -> None:
        registers = lanes.registers
        data = [cut(registers[one]) for cut, one in zip(cuts, slots, strict=True)]
        write(lanes, mask, AddressOperand(registers[slot], offset), data)

    return run


def narrowing(lowering: Lowering, operand: Operand, kind: str) -> Callable[[Value], Value]:
    """Function that cuts a register's value to the bits of a type, which may be narrower."""
    width = lowering.width(operand, kind)
    unsigned = UNSIGNED[TYPE_BYTES[kind]]
    if width == TYPE_BYTES[kind]:
        return lambda value: value if value.dtype is unsigned else value.view(unsigned)
    whole = UNSIGNED[width]
    return lambda value: value.view(whole).astype(unsigned)


# -- by state space ------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True, kw_only=True)
class _Extent:
    """Extent of a load."""

    width: int
    """Bytes of an element."""
    count: int
    """Elements that instructions read."""
    surplus: int
    """Elements after those."""
    unread: int
    """Bytes at the end of the last of ``count`` elements that no instruction reads."""


def _reader(instruction: Instruction, lowering: Lowering, space: str, extent: _Extent) -> Reader:
    """Reader of the elements from a state space; an empty one means generic addresses."""
    width, count, surplus = extent.width, extent.count, extent.surplus
    everywhere = GlobalForm(
        instruction=instruction, tally=lowering.tally, width=width, count=count, surplus=surplus,
        unread=extent.unread, counted=space != "const",
    )  # fmt: skip
    inside = SharedAccessForm(
        instruction=instruction, tally=lowering.tally, width=width, count=count, surplus=surplus
    )
    readers: dict[str, Reader] = {
        "global": lambda lanes, mask, at: global_ops.load(lanes, mask, at, everywhere),
        "const": lambda lanes, mask, at: global_ops.load(lanes, mask, at, everywhere),
        "shared": lambda lanes, mask, at: shared.load(lanes, mask, at, inside),
        CLUSTER: lambda lanes, mask, at: cluster.load(lanes, mask, at, inside),
        "local": lambda lanes, mask, at: local.load_local(lanes, mask, at, inside),
        "param": lambda lanes, _, at: local.load_parameter(lanes, at, inside),
    }
    if space:
        return readers[space]

    def generic(lanes: Batch, mask: Mask | None, at: AddressOperand) -> list[Value]:
        results: list[Value] | None = None
        for window, active in windows(lanes, mask, at):
            there = AddressOperand(at.value, at.offset - BASES[window])
            data = readers[CLUSTER if window == "shared" else window](lanes, active, there)
            if results is None or active is None:
                results = data
            else:
                # Threads of one instruction may address different windows: each window fills in its lanes.
                results = [active.select(new, old, width) for new, old in zip(data, results, strict=True)]
        return results or [UNSIGNED[width].type(0)] * count

    return generic


def _writer(instruction: Instruction, lowering: Lowering, space: str, shape: tuple[int, int]) -> Writer:
    """Writer of ``shape`` (bytes of an element, count) to a state space; empty means generic addresses."""
    width, count = shape
    tally = lowering.tally
    everywhere = GlobalForm(instruction=instruction, tally=tally, width=width, count=count, stores=True)
    inside = SharedAccessForm(instruction=instruction, tally=tally, width=width, count=count, stores=True)
    writers: dict[str, Writer] = {
        "global": lambda lanes, mask, at, data: global_ops.store(lanes, mask, at, data, everywhere),
        "shared": lambda lanes, mask, at, data: shared.store(lanes, mask, at, data, inside),
        CLUSTER: lambda lanes, mask, at, data: cluster.store(lanes, mask, at, data, inside),
        "local": lambda lanes, mask, at, data: local.store_local(lanes, mask, at, data, inside),
    }
    if space and space not in writers:
        raise unsupported(instruction, f"writing to .{space}")
    if space:
        return writers[space]

    def generic(lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value]) -> None:
        for window, active in windows(lanes, mask, at):
            if window not in writers:
                raise unsupported(instruction, f"writing to .{window}")
            there = AddressOperand(at.value, at.offset - BASES[window])
            writers[CLUSTER if window == "shared" else window](lanes, active, there, data)

    return generic


BASES = {"global": 0, "shared": GENERIC_SHARED, "local": GENERIC_LOCAL, "param": GENERIC_PARAM}
"""First generic address of each state space's window."""


def windows(lanes: Batch, mask: Mask | None, at: AddressOperand) -> list[tuple[str, Mask | None]]:
    """Windows that generic addresses lie in, each with its active lanes (None for all)."""
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
