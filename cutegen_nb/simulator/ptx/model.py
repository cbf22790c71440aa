"""Parsed PTX: modules, kernels, instructions and their operands, as plain values.

Names of registers are unique within a function: the parser renames those that an inner block declares again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

TYPE_BYTES: dict[str, int] = {
    "e2m1x2": 1, "e2m3x2": 2, "e3m2x2": 2, "ue8m0x2": 2,
    "b8": 1, "u8": 1, "s8": 1,
    "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2,
    "b32": 4, "u32": 4, "s32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "tf32": 4,
    "b64": 8, "u64": 8, "s64": 8, "f64": 8, "f32x2": 8,
    "b128": 16,
    "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2,
    "u16x2": 4, "s16x2": 4,
    "pred": 1,
}  # fmt: skip
"""Size in bytes of each fundamental and packed type (PTX ISA, "Types")."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """Register operand; special registers too."""

    name: str
    """Name, unique in its function, with its per cent sign."""
    negated: bool = False
    """True for a predicate that is negated (``!p``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    """Constant operand."""

    value: int | float
    """Integer or float that the text denotes."""
    bits: int | None = None
    """Bit pattern of a ``0f``, ``0d`` or ``0x`` constant; None for a decimal one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """Variable, label, function or parameter as an operand."""

    name: str
    """Name as written, or as renamed if an inner block declares it again."""
    offset: int = 0
    """Bytes added to the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Address operand ``[base + offset]``."""

    base: Register | Symbol | Immediate
    """Register, variable or constant with the base address."""
    offset: int = 0
    """Bytes added to the base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """Vector operand ``{a, b, …}``, argument list ``(a, b)`` or pair ``p|q``."""

    items: tuple[Operand, ...]
    """Elements in order; the value of a register named ``_`` is discarded."""


Operand = Register | Immediate | Symbol | Address | Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """PTX instruction with its place in the Python source."""

    opcode: str
    """First dotted part of the name: ``add``, ``ld``, ``cp``."""
    modifiers: tuple[str, ...]
    """Other parts of the name in order: ``("rn", "f32")``."""
    operands: tuple[Operand, ...]
    """Operands as written, destination first."""
    guard: Register | None = None
    """Predicate before the instruction (``@p``); None for none."""
    file: str = ""
    """Path of the Python file; empty if the compiler gave none."""
    line: int = 0
    """Line in that file, from 1; 0 if unknown."""
    column: int = 0
    """Column in that line, from 1; 0 if unknown."""
    ptx_line: int = 0
    """Line in the PTX text, from 1."""

    @property
    def name(self) -> str:
        """Full name: ``add.rn.f32``."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """Parameter of a kernel or function."""

    name: str
    """Name in the PTX."""
    offset_bytes: int
    """Byte offset in the parameter buffer, on the natural or stated alignment."""
    size_bytes: int
    """Size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """Variable in memory."""

    space: str
    """State space: ``global``, ``const``, ``shared``, ``local`` or ``param``."""
    name: str
    """Name, unique in its scope."""
    align_bytes: int
    """Alignment in bytes."""
    size_bytes: int
    """Size in bytes; 0 for an array without bounds (dynamic shared memory)."""
    initial: bytes = b""
    """Initial value of the first bytes; the rest is zero."""
    external: bool = False
    """True if the variable is ``.extern``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """Function (``.func``) or kernel (``.entry``) with its body."""

    name: str
    """Name in the PTX."""
    parameters: tuple[Parameter, ...]
    """Parameters in order."""
    returns: tuple[Parameter, ...] = ()
    """Return parameters of a ``.func``."""
    body: tuple[Instruction, ...] = ()
    """Instructions in order; empty for a prototype."""
    labels: dict[str, int] = field(default_factory=dict)
    """Index into ``body`` by label; may equal the body's length."""
    registers: dict[str, str] = field(default_factory=dict)
    """Type without its dot by register name, or by ``prefix<`` for a numbered family."""
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
    """Kernel (``.entry``)."""

    architecture: str = ""
    """Architecture (``.target`` of the module): ``sm_80``."""
    static_smem_bytes: int = 0
    """Bytes of shared memory that the kernel and its module declare with bounds."""
    required_threads: tuple[int, int, int] | None = None
    """Required CTA shape (``.reqntid``); None if not given."""
    max_threads: tuple[int, int, int] | None = None
    """Maximum CTA shape (``.maxntid``); None if not given."""

    @property
    def target(self) -> str:
        """Architecture, under PTX's name for it."""
        return self.architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Parsed PTX module."""

    kernels: dict[str, Kernel]
    """Kernels by name."""
    functions: dict[str, Function]
    """Function definitions and prototypes (``.func``) by name."""
    variables: tuple[Variable, ...]
    """Module-scope global, const and shared variables."""
    files: dict[int, str]
    """Path by ``.file`` index."""
    version: str
    """PTX version (``.version``)."""
    target: str
    """Architecture: first part of ``.target``."""
