"""Lowering of PTX instructions to Python functions over a batch of lanes, and the registry of opcodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.numbers.values import DTYPES, Value
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, UnsupportedOpcode, unsupported
from cutegen_nb.simulator.ptx.inlining import SPECIAL
from cutegen_nb.simulator.ptx.model import (
    TYPE_BYTES,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Vector,
)
from cutegen_nb.simulator.state.batch import Batch, Mask

Operation = Callable[[Batch, Mask | None], None]
"""Function that executes one instruction for the active lanes; mask None means all of them."""
Compute = Callable[[list[Value]], Value]
"""Function from all registers to the value of the destination."""
Builder = Callable[[Instruction, "Lowering"], Operation]
"""Function that lowers an instruction of one opcode. Raises UnsupportedOpcode."""

SINK = "_"
"""Name of the register whose value is discarded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeEntry:
    """Registry entry of a supported opcode."""

    opcode: str
    """First dotted part of the instruction's name."""
    forms: str
    """Supported types and modifiers, in words, for the coverage table."""
    build: Builder
    """Function that lowers an instruction."""


REGISTRY: dict[str, OpcodeEntry] = {}
"""Every supported opcode, except control flow (``program.CONTROL``)."""


def opcode(*names: str, forms: str) -> Callable[[Builder], Builder]:
    """Decorator that registers a builder under these opcodes."""

    def add(build: Builder) -> Builder:
        for name in names:
            REGISTRY[name] = OpcodeEntry(opcode=name, forms=forms, build=build)
        return build

    return add


class Modifiers:
    """Modifiers of an instruction, taken one after the other; :meth:`done` refuses those left over."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._left = list(instruction.modifiers)

    def flag(self, name: str) -> bool:
        """Take a modifier. Return whether the instruction has it."""
        if name not in self._left:
            return False
        self._left.remove(name)
        return True

    def one(self, *names: str, default: str = "") -> str:
        """Take the first modifier that is among these names, or return ``default``."""
        for name in self._left:
            if name in names:
                self._left.remove(name)
                return name
        return default

    def skip(self, *names: str) -> None:
        """Take modifiers that change no value in this simulator: cache hints, scopes, memory orders."""
        self._left = [name for name in self._left if name not in names and name.split("::")[0] not in names]

    def only_type(self) -> str:
        """Take the single modifier that is a type, wherever it stands.

        Raises:
            UnsupportedOpcode: there is no type, or more than one.
        """
        found = [name for name in self._left if name in TYPE_BYTES]
        if len(found) != 1:
            raise unsupported(self._instruction)
        self._left.remove(found[0])
        return found[0]

    def types(self, count: int = 1) -> tuple[str, ...]:
        """Take the last ``count`` modifiers, which must be types.

        Raises:
            UnsupportedOpcode: they are not types.
        """
        found = tuple(self._left[-count:])
        if len(found) != count or any(name not in TYPE_BYTES for name in found):
            raise unsupported(self._instruction)
        del self._left[-count:]
        return found

    def done(self) -> None:
        """Check that no modifier is left.

        Raises:
            UnsupportedOpcode: a modifier is not known.
        """
        if self._left:
            raise unsupported(self._instruction, f"modifier .{self._left[0]}")


class Lowering:
    """Register file of one program while it is lowered: slots of registers and constants, symbols, types."""

    def __init__(
        self,
        *,
        register_types: Callable[[str], str],
        symbols: Callable[[str], tuple[str, int]],
        private: set[str],
        bytes_read: Mapping[str, int],
        has_pairs: bool = False,
    ) -> None:
        self.register_types = register_types
        self.symbols = symbols
        """Function from a variable to its state space and its address in that space's window."""
        self._private = private
        self._bytes_read = bytes_read
        self.has_pairs = has_pairs
        """True if instructions of the program name pairs of CTAs (``.cta_group::2``)."""
        self._slots: dict[str, int] = {}
        self.initial: list[Value] = []
        """Value of every slot before the first instruction: constants in place, registers zero."""
        self.tally: InstructionTally = InstructionTally()
        """Tally of the instruction being lowered."""
        self.carry = self._new(np.uint32(0))
        """Slot of the condition-code register ``CC.CF``."""

    # -- slots ----------------------------------------------------------------------------------------------
    def _new(self, value: Value) -> int:
        self.initial.append(value)
        return len(self.initial) - 1

    def scratch(self, value: Value) -> int:
        """Slot that belongs to no register, with an initial value."""
        return self._new(value)

    def constant(self, value: Value) -> int:
        """Slot of a constant; equal constants of one dtype share it."""
        key = f"constant {value.dtype} {value.tobytes().hex()}"
        if key not in self._slots:
            self._slots[key] = self._new(value)
        return self._slots[key]

    def register(self, name: str) -> int:
        """Slot of a register.

        Raises:
            LookupError: the register is not declared and is no special register.
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
        """Width in bytes of a declared register, or of ``kind`` for any other operand."""
        if isinstance(operand, Register) and operand.name in self:
            return TYPE_BYTES[self.register_types(operand.name)]
        return TYPE_BYTES[kind]

    def is_read(self, operand: Operand) -> bool:
        """Return whether any instruction reads the register."""
        return self.bytes_read(operand, 1) > 0

    def bytes_read(self, operand: Operand, most: int) -> int:
        """Number of the last byte, of ``most``, that any instruction reads of the register; 0 for none."""
        return min(most, self._bytes_read.get(operand.name, 0)) if isinstance(operand, Register) else 0

    def source(self, instruction: Instruction, operand: Operand, kind: str) -> int:
        """Slot from which to read an operand of type ``kind``.

        Raises:
            UnsupportedOpcode: the operand is neither a register, a constant nor a variable.
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
    ) -> Callable[[Batch, Mask | None, Value], None]:
        """Function that writes a value to a register, for the active lanes where that matters.

        Raises:
            UnsupportedOpcode: the destination is no register.
        """
        if not isinstance(operand, Register):
            raise unsupported(instruction, "destination form")
        slot = self.register(operand.name)
        if operand.name == SINK or (operand.name in self._private and instruction.guard is None):
            # Every read follows this write in the same segment, so inactive lanes never see the value.
            def put(lanes: Batch, mask: Mask | None, value: Value) -> None:
                del mask
                lanes.registers[slot] = value

            return put
        predicate = operand.name in self and self.register_types(operand.name) == "pred"
        width = 1 if predicate else self.width(operand, "b32")

        def merge(lanes: Batch, mask: Mask | None, value: Value) -> None:
            registers = lanes.registers
            if mask is not None:
                value = mask.select(value, registers[slot], width)
                if predicate:
                    value = value.view(np.bool_)
            registers[slot] = value

        return merge

    def assign(self, instruction: Instruction, compute: Compute) -> Operation:
        """Operation that computes for all lanes and writes operand 0 for the active lanes."""
        put = self.writer(instruction, instruction.operands[0])

        def run(lanes: Batch, mask: Mask | None) -> None:
            put(lanes, mask, compute(lanes.registers))

        return run


def lower(instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation of an instruction; an unsupported one gives an operation that stops the launch."""
    entry = REGISTRY.get(instruction.opcode)
    try:
        if entry is None:
            raise unsupported(instruction)
        operation = entry.build(instruction, lowering)
    except UnsupportedOpcode as fault:
        operation = stops(fault)
    except SIMULATOR_DEFECTS as problem:
        operation = stops(unsupported(instruction, f"operands: {problem}"))
    return _under_guard(operation, instruction, lowering)


def _under_guard(operation: Operation, instruction: Instruction, lowering: Lowering) -> Operation:
    """Operation restricted to the lanes whose guard predicate (``@p``) holds."""
    if instruction.guard is None:
        return operation
    try:
        return _guarded(operation, instruction.guard, lowering)
    except LookupError as problem:
        return stops(unsupported(instruction, f"guard: {problem}"))


def refuse(instruction: Instruction, why: str, lowering: Lowering) -> Operation:
    """Operation that stops the launch when the instruction is reached and its guard holds."""
    return _under_guard(stops(unsupported(instruction, why)), instruction, lowering)


@dataclass(frozen=True, slots=True)
class Stop:
    """Operation that raises a fault when it is reached."""

    fault: Exception
    """Exception to raise."""

    def __call__(self, lanes: Batch, mask: Mask | None) -> NoReturn:
        """Raise the fault."""
        del lanes, mask
        raise self.fault


def stops(fault: Exception) -> Operation:
    """Operation that raises ``fault`` when it is reached."""
    return Stop(fault)


def _guarded(operation: Operation, guard: Register, lowering: Lowering) -> Operation:
    slot, negated, tally = lowering.register(guard.name), guard.negated, lowering.tally
    tally.guarded = True

    def run(lanes: Batch, mask: Mask | None) -> None:
        predicate = lanes.registers[slot]
        if negated:
            predicate = np.logical_not(predicate)
        active = under(lanes, mask, predicate)
        if active is NONE:
            return
        tally.guarded_threads += lanes.lane_count if active is None else active.threads
        operation(lanes, active)

    return run


class _EmptyMask(Mask):
    """Mask without threads."""

    def __init__(self) -> None:
        self.threads = 0


NONE: Mask = _EmptyMask()
"""Result of :func:`under` when no thread is left; compared by identity."""


def under(lanes: Batch, mask: Mask | None, predicate: Value) -> Mask | None:
    """Active lanes for which a predicate holds: None for all lanes of the batch, ``NONE`` for none."""
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
        # A ``0f`` constant has 32 bits even where the type is f16.
        width = 4 if operand.bits < 1 << 32 and dtype.itemsize != TYPE_BYTES["f64"] else dtype.itemsize
        return np.dtype(f"u{width}").type(operand.bits).view(np.dtype(f"f{width}")).astype(dtype)
    if kind == "pred":
        return np.bool_(operand.value)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    bits = operand.bits if operand.bits is not None else int(operand.value)
    return unsigned.type(bits % (1 << 8 * dtype.itemsize))


def items(operand: Operand) -> tuple[Operand, ...]:
    """Elements of a vector operand, or the operand itself as the only element."""
    return operand.items if isinstance(operand, Vector) else (operand,)
