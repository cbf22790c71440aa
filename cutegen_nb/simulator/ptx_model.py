"""What the PTX parser gives: modules, kernels, instructions and their operands, as plain values.

Names of registers are unique within a function: the parser renames those that an inner block declares again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_BYTES: dict[str, int] = {
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8,
    "b128": 16,
    "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2,
    "u16x2": 4, "s16x2": 4,
    "pred": 1,
}  # fmt: skip
"""Bytes of each fundamental and packed type (PTX ISA, "Types")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """A register, a special register included."""

    name: str
    """Unique in its function, with its per cent sign."""
    negated: bool = False
    """Whether ``!`` stands before it; only predicates have that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    """A constant in the text."""

    value: int | float
    """Integer value, or the float the text means."""
    bits: int | None = None
    """Bit pattern of a ``0f``, ``0d`` or ``0x`` constant; None for a decimal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A variable, label, function or parameter by name."""

    name: str
    """As written, or as renamed where an inner block declares it again."""
    offset: int = 0
    """Bytes added to its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """``[base + offset]``."""

    base: Register | Symbol | Immediate
    """What the offset is added to."""
    offset: int = 0
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """``{a, b, …}`` and the pair ``p|q``."""

    items: tuple[Operand, ...]
    """Elements in order; a register named ``_`` is a sink."""


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One PTX instruction with the line of Python it came from."""

    opcode: str
    """First part of the name: ``add``, ``ld``, ``cp``."""
    modifiers: tuple[str, ...]
    """The other parts in order: ``("rn", "f32")``."""
    operands: tuple[Operand, ...]
    """As written, destination first."""
    guard: Register | None = None
    """Predicate before the instruction."""
    file: str = ""
    """Python file the compiler named; empty where it gave none."""
    line: int = 0
    """From 1; 0 where there is none."""
    column: int = 0
    """From 1; 0 where there is none."""
    ptx_line: int = 0
    """Line in the PTX text, from 1."""

    @property
    def name(self) -> str:
        """The whole name: ``add.rn.f32``."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a kernel or function."""

    name: str
    """Name in the PTX."""
    offset_bytes: int
    """Where it starts, each parameter on its natural or stated alignment."""
    size_bytes: int
    """Bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable in memory."""

    space: str
    """``global``, ``const``, ``shared``, ``local`` or ``param``."""
    name: str
    """Unique in its scope."""
    align_bytes: int
    """Alignment."""
    size_bytes: int
    """Bytes; 0 for an array without bounds (dynamic shared memory)."""
    initial: bytes = b""
    """First bytes; the rest is zero."""
    external: bool = False
    """Whether it is ``.extern``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A ``.func`` or ``.entry`` with its body."""

    name: str
    """Name in the PTX."""
    parameters: tuple[Parameter, ...]
    """In order."""
    returns: tuple[Parameter, ...] = ()
    """Return parameters of a ``.func``."""
    body: tuple[Instruction, ...] = ()
    """Instructions in order; empty for a prototype."""
    labels: dict[str, int] = field(default_factory=dict)
    """Label → index into ``body`` (may equal its length)."""
    registers: dict[str, str] = field(default_factory=dict)
    """Register name or ``prefix<`` for a numbered family → type without its dot."""
    variables: tuple[Variable, ...] = ()
    """Local, shared and param variables declared inside."""
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """``.branchtargets`` lists by their label."""

    def type_of(self, name: str) -> str:
        """Declared type of a register.

        Raises:
            KeyError: the register is not declared.
        """
        if name in self.registers:
            return self.registers[name]
        return self.registers[name.rstrip("0123456789") + "<"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel(Function):
    """A ``.entry``: what a launch names."""

    architecture: str = ""
    """``.target`` of its module: ``sm_80``."""
    static_smem_bytes: int = 0
    """Shared memory that it and its module declare with bounds."""
    required_threads: tuple[int, int, int] | None = None
    """``.reqntid``."""
    max_threads: tuple[int, int, int] | None = None
    """``.maxntid``."""

    @property
    def target(self) -> str:
        """The architecture again, under PTX's name for it."""
        return self.architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One PTX text."""

    kernels: dict[str, Kernel]
    """By name."""
    functions: dict[str, Function]
    """``.func`` definitions and prototypes by name."""
    variables: tuple[Variable, ...]
    """Module-scope global, const and shared variables."""
    files: dict[int, str]
    """``.file`` index → path."""
    version: str
    """``.version``."""
    target: str
    """First part of ``.target``."""
