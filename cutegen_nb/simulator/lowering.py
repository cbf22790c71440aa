"""From a PTX instruction to a Python function over a batch of lanes; the registry of opcodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cutegen_nb.simulator.counters import InstructionTally
from cutegen_nb.simulator.faults import MISTAKES, UnsupportedOpcode, unsupported
from cutegen_nb.simulator.flatten import SPECIAL
from cutegen_nb.simulator.lanes import Lanes, Mask
from cutegen_nb.simulator.ptx_model import (
    TYPE_BYTES,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from cutegen_nb.simulator.values import DTYPES, Value

Operation = Callable[[Lanes, Mask | None], None]
"""Executes one instruction for the active lanes; no mask means all of them."""
Compute = Callable[[list[Value]], Value]
"""Reads registers and gives the value of the destination."""
Builder = Callable[[Instruction, "Lowering"], Operation]

SINK = "_"
"""The register that takes what nobody reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeEntry:
    """One supported opcode."""

    opcode: str
    """First part of the instruction's name."""
    forms: str
    """Types and modifiers known, for people."""
    build: Builder
    """Makes the operation."""


REGISTRY: dict[str, OpcodeEntry] = {}
"""Every opcode the machine knows, control flow apart (``program.CONTROL``)."""


def opcode(*names: str, forms: str) -> Callable[[Builder], Builder]:
    """Register a builder under these opcodes."""

    def add(build: Builder) -> Builder:
        for name in names:
            REGISTRY[name] = OpcodeEntry(opcode=name, forms=forms, build=build)
        return build

    return add


class Modifiers:
    """The dotted parts of a name, taken one after the other; what is left over is unknown."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.modifiers)

    def flag(self, name: str) -> bool:
        """Whether the modifier stands there; it is taken."""
        if name not in self._left:
            return False
        self._left.remove(name)
        return True

    def one(self, *names: str, default: str = "") -> str:
        """The one of these modifiers that stands there."""
        for name in self._left:
            if name in names:
                self._left.remove(name)
                return name
        return default

    def skip(self, *names: str) -> None:
        """Take modifiers that change nothing here: cache hints, scopes, orders."""
        self._left = [name for name in self._left if name not in names and name.split("::")[0] not in names]

    def only_type(self) -> str:
        """The one part that is a type, wherever it stands.

        Raises:
            UnsupportedOpcode: there is none, or more than one.
        """
        found = [name for name in self._left if name in TYPE_BYTES]
        if len(found) != 1:
            raise unsupported(self._instruction)
        self._left.remove(found[0])
        return found[0]

    def types(self, count: int = 1) -> tuple[str, ...]:
        """The last ``count`` parts, which must be types.

        Raises:
            UnsupportedOpcode: they are not.
        """
        found = tuple(self._left[-count:])
        if len(found) != count or any(name not in TYPE_BYTES for name in found):
            raise unsupported(self._instruction)
        del self._left[-count:]
        return found

    def done(self) -> None:
        """Check that nothing is left.

        Raises:
            UnsupportedOpcode: a modifier is not known.
        """
        if self._left:
            raise unsupported(self._instruction, f"modifier .{self._left[0]}")


class Lowering:
    """Slots of registers and constants of one program, and what builders need to know of it."""

    def __init__(
        self,
        *,
        register_types: Callable[[str], str],
        symbols: Callable[[str], tuple[str, int]],
        read: set[str],
        private: set[str],
    ) -> None:
        self.register_types = register_types
        self.symbols = symbols
        """Variable → state space and address in its window."""
        self._read = read
        self._private = private
        self._slots: dict[str, int] = {}
        self.initial: list[Value] = []
        """Value of every slot before the first instruction: constants in place, registers zero."""
        self.tally: InstructionTally = InstructionTally()
        """Of the instruction being lowered."""
        self.carry = self._new(np.uint32(0))
        """The condition-code register."""

    # -- slots ----------------------------------------------------------------------------------------------
    def _new(self, value: Value) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def scratch(self, value: Value) -> int:
        """A slot that no register has, with its first value."""
        return self._new(value)

    def constant(self, value: Value) -> int:
        """Slot of a constant."""
        key = f"constant {value.dtype} {value.tobytes().hex()}"
        if key not in self._slots:
            self._slots[key] = self._new(value)
        return self._slots[key]

    def register(self, name: str) -> int:
        """Slot of a register.

        Raises:
            LookupError: it is declared nowhere and no special register is called so.
        """
        if name not in self._slots:
            special = name == SINK or name.split(".", maxsplit=1)[0] in SPECIAL
            if not special and name not in self:
                message = f"register {name} is not declared"
                raise LookupError(message)
            kind = "b32" if special else self.register_types(name)
            zero = np.zeros((), np.dtype(f"u{TYPE_BYTES[kind]}") if kind != "pred" else np.bool_)[()]
            self._slots[name] = self._new(zero)
        return self._slots[name]

    def __contains__(self, name: str) -> bool:
        try:
            self.register_types(name)
        except KeyError:
            return False
        return True

    def specials(self) -> list[tuple[str, int]]:
        """Special registers that the program reads, with their slots."""
        return [(name, slot) for name, slot in self._slots.items() if name.split(".")[0] in SPECIAL]

    def width(self, operand: Operand, kind: str) -> int:
        """Bytes of a register, or of ``kind`` for anything else."""
        if isinstance(operand, Register) and operand.name in self:
            return TYPE_BYTES[self.register_types(operand.name)]
        return TYPE_BYTES[kind]

    def is_read(self, operand: Operand) -> bool:
        """Whether any instruction reads the register."""
        return isinstance(operand, Register) and operand.name in self._read

    def source(self, instruction: Instruction, operand: Operand, kind: str) -> int:
        """Slot to read an operand of type ``kind`` from.

        Raises:
            UnsupportedOpcode: an operand that has no value.
        """
        if isinstance(operand, Register):
            return self.register(operand.name)
        if isinstance(operand, Immediate):
            return self.constant(_constant(operand, kind))
        if isinstance(operand, Symbol):
            _, address = self.symbols(operand.name)
            unsigned = np.dtype(f"u{TYPE_BYTES[kind]}")
            return self.constant(unsigned.type(address + operand.offset))
        raise unsupported(instruction, "operand form")

    def sources(self, instruction: Instruction, kinds: tuple[str, ...], first: int = 1) -> list[int]:
        """Slots of the operands from ``first`` on, one for each kind.

        Raises:
            UnsupportedOpcode: the number of operands differs.
        """
        given = instruction.operands[first:]
        if len(given) != len(kinds):
            raise unsupported(instruction, f"{len(given)} source operands")
        return [self.source(instruction, one, kind) for one, kind in zip(given, kinds, strict=True)]

    # -- destinations ---------------------------------------------------------------------------------------
    def writer(
        self, instruction: Instruction, operand: Operand
    ) -> Callable[[Lanes, Mask | None, Value], None]:
        """Function that puts a value into a register, under a mask where that matters.

        Raises:
            UnsupportedOpcode: the destination is no register.
        """
        if not isinstance(operand, Register):
            raise unsupported(instruction, "destination form")
        slot = self.register(operand.name)
        if operand.name == SINK or (operand.name in self._private and instruction.guard is None):
            # Every reader stands behind this write in the same stretch of code: lanes that are not active
            # here never see it.
            def put(lanes: Lanes, mask: Mask | None, value: Value) -> None:
                del mask
                lanes.registers[slot] = value

            return put
        predicate = operand.name in self and self.register_types(operand.name) == "pred"
        width = 1 if predicate else self.width(operand, "b32")

        def merge(lanes: Lanes, mask: Mask | None, value: Value) -> None:
            registers = lanes.registers
            if mask is not None:
                value = mask.select(value, registers[slot], width)
                if predicate:
                    value = value.view(np.bool_)
            registers[slot] = value

        return merge

    def assign(self, instruction: Instruction, compute: Compute) -> Operation:
        """Operation that computes for all lanes and writes operand 0 for the active ones."""
        put = self.writer(instruction, instruction.operands[0])

        def run(lanes: Lanes, mask: Mask | None) -> None:
            put(lanes, mask, compute(lanes.registers))

        return run


def lower(instruction: Instruction, lowering: Lowering) -> Operation:
    """The operation of an instruction; one that is not known stops the launch when it is reached."""
    entry = REGISTRY.get(instruction.opcode)
    try:
        if entry is None:
            raise unsupported(instruction)
        operation = entry.build(instruction, lowering)
    except UnsupportedOpcode as fault:
        operation = stops(fault)
    except MISTAKES as problem:
        operation = stops(unsupported(instruction, f"operands: {problem}"))
    return _under_guard(operation, instruction, lowering)


def _under_guard(operation: Operation, instruction: Instruction, lowering: Lowering) -> Operation:
    if instruction.guard is None:
        return operation
    try:
        return _guarded(operation, instruction.guard, lowering)
    except LookupError as problem:
        return stops(unsupported(instruction, f"guard: {problem}"))


def refuse(instruction: Instruction, why: str, lowering: Lowering) -> Operation:
    """An operation that stops the launch where the instruction is reached and its guard holds."""
    return _under_guard(stops(unsupported(instruction, why)), instruction, lowering)


@dataclass(frozen=True, slots=True)
class Stop:
    """An operation that raises its fault when it is reached."""

    fault: Exception
    """What is raised."""

    def __call__(self, lanes: Lanes, mask: Mask | None) -> NoReturn:
        """Raise it."""
        del lanes, mask
        raise self.fault


def stops(fault: Exception) -> Operation:
    """An operation that raises the fault when it is reached."""
    return Stop(fault)


def _guarded(operation: Operation, guard: Register, lowering: Lowering) -> Operation:
    slot, negated, tally = lowering.register(guard.name), guard.negated, lowering.tally
    tally.guarded = True

    def run(lanes: Lanes, mask: Mask | None) -> None:
        predicate = lanes.registers[slot]
        if negated:
            predicate = np.logical_not(predicate)
        active = under(lanes, mask, predicate)
        if active is NONE:
            return
        tally.guarded_threads += lanes.lane_count if active is None else active.threads
        operation(lanes, active)

    return run


class _Nobody(Mask):
    """Stands for a mask without threads."""

    def __init__(self) -> None:
        self.threads = 0


NONE: Mask = _Nobody()
"""What :func:`under` gives when no thread is left."""


def under(lanes: Lanes, mask: Mask | None, predicate: Value) -> Mask | None:
    """The active lanes for which a predicate holds: None for all lanes of the batch, ``NONE`` for none."""
    if predicate.ndim == 0:
        return mask if predicate else NONE
    if mask is None:
        if predicate.all():
            return None
        narrowed = Mask(lanes, predicate)
    else:
        narrowed = mask.narrowed(predicate)
    return narrowed if narrowed.threads else NONE


def _constant(operand: Immediate, kind: str) -> Value:
    dtype = DTYPES[kind]
    if dtype.kind == "f":
        if operand.bits is None:
            return dtype.type(operand.value)
        width = 4 if operand.bits < 1 << 32 and dtype.itemsize != TYPE_BYTES["f64"] else dtype.itemsize
        return np.dtype(f"u{width}").type(operand.bits).view(np.dtype(f"f{width}")).astype(dtype)
    if kind == "pred":
        return np.bool_(operand.value)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = operand.bits if operand.bits is not None else int(operand.value)
    return unsigned.type(bits % (1 << 8 * dtype.itemsize))


def items(operand: Operand) -> tuple[Operand, ...]:
    """Elements of a vector operand; anything else is its own only element."""
    return operand.items if isinstance(operand, Vector) else (operand,)
