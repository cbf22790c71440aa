"""A case: a few PTX instructions, what is fed to every thread, and how results are judged.

A case's text runs once a thread, for ``THREADS`` threads in blocks of ``BLOCK``.  Inputs ``a``, ``b``, ``c`` … wait in
registers of those names (``a0``, ``a1`` … for several), and what the text leaves in ``d`` (``d0``, ``d1`` …) is stored.
A text may also use:

- ``t`` thread number in the grid, ``lane`` in its warp, ``i`` in its block (32 bits each)
- ``sm`` address of 8 KiB of shared memory (32 bits); what earlier cases left there is not looked at
- ``src`` and ``dst`` addresses of this case's first input and of its output in global memory (64 bits)

``{d}`` and the like are not replaced: the names are registers in a scope of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

THREADS = 512
"""Threads that run a case."""
BLOCK = 128
"""Threads of a block."""
SHARED_BYTES = 8192
"""Shared memory of a block that a case may use."""

WIDTH_BYTES = {
    "u8": 1, "s8": 1, "u16": 2, "s16": 2, "b16": 2, "f16": 2, "bf16": 2, "e4m3x2": 2, "e5m2x2": 2,
    "u32": 4, "s32": 4, "b32": 4, "f32": 4, "f16x2": 4, "bf16x2": 4, "pred": 4, "tf32": 4,
    "e4m3x4": 4, "e5m2x4": 4,
    "u64": 8, "s64": 8, "b64": 8, "f64": 8,
}  # fmt: skip
"""Bytes of one value of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One input or output: ``f32``, ``f16x2*4`` (four registers), ``s32:nonzero`` (with a way to choose values)."""

    kind: str
    """Kind of value that one register holds; a key of ``WIDTH_BYTES``."""
    count: int = 1
    """Registers a thread."""
    choice: str = ""
    """Choice of inputs; the kind's own when empty (:mod:`suite.samples`)."""

    @property
    def width(self) -> int:
        """Bytes of a register."""
        return WIDTH_BYTES[self.kind]

    @property
    def size_bytes(self) -> int:
        """Bytes for all threads."""
        return THREADS * self.count * self.width

    def names(self, letter: str) -> list[str]:
        """Registers of the operand."""
        return [letter] if self.count == 1 else [f"{letter}{index}" for index in range(self.count)]


def operand(text: str) -> Operand:
    """Read ``kind``, ``kind*count`` or ``kind*count:choice``."""
    found = re.fullmatch(r"(\w+)(?:\*(\d+))?(?::([\w.]+))?", text)
    if found is None or found[1] not in WIDTH_BYTES:
        raise ValueError(f"{text!r} is no operand; write kind, kind*count or kind*count:choice.")
    return Operand(kind=found[1], count=int(found[2] or 1), choice=found[3] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Distance by which two results may lie apart."""

    kind: str = "bits"
    """``bits``: equal bits. ``value``: equal bits, and any NaN equals any other. ``near``: floats within the documented
    error. ``sum``: a tensor-core sum, within what the order of additions can change."""
    relative: float = 0.0
    """Documented relative error of an approximation."""
    absolute: float = 0.0
    """Documented absolute error of an approximation."""
    ulps: float = 0.0
    """Documented error in units of the last place of the exact result."""
    function: str = ""
    """Name of the exact function, see :mod:`suite.comparison`."""
    scale: float = 0.0
    """For sums: the most that absolute products and the addend can add up to, times the unit of rounding."""


BITS = Rule()
VALUE = Rule(kind="value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One entry of the suite."""

    family: str
    """Group it is listed under: ``integers``, ``conversions`` …"""
    name: str
    """Unique name; begins with the opcode."""
    text: str
    """PTX, see the module's docstring."""
    inputs: tuple[Operand, ...]
    """``a``, ``b``, ``c`` …"""
    output: Operand
    """``d``."""
    rule: Rule = field(default_factory=Rule)
    """Rule by which results are judged."""
    loads: bool = True
    """True if inputs are loaded into registers; a case about memory reads ``src`` itself."""
    stores: bool = True
    """True if ``d`` is stored; a case about memory writes ``dst`` itself, which begins as zeros."""

    @property
    def input_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(one.size_bytes for one in self.inputs)


_REGISTER = {1: ".b16", 2: ".b16", 4: ".b32", 8: ".b64"}


def block_of(case: Case, input_offset: int, output_offset: int) -> str:
    """PTX of a case as one inline-assembly block.

    Operands of the block: ``$0`` inputs of all cases, ``$1`` outputs, ``$2`` thread, ``$3`` shared memory.
    """
    lines = [
        ".reg .b64 src, dst, at;",
        ".reg .b32 t, i, lane, sm;",
        f"add.s64 src, $0, {input_offset};",
        f"add.s64 dst, $1, {output_offset};",
        "mov.b32 t, $2;",
        f"and.b32 i, t, {BLOCK - 1};",
        "and.b32 lane, t, 31;",
        "mov.b32 sm, $3;",
    ]
    offset = 0
    for letter, one in zip("abcefghk", case.inputs, strict=False):
        lines += _declared(one, letter)
        if case.loads:
            lines += _loads(one, letter, offset)
        offset += one.size_bytes
    lines += _declared(case.output, "d")
    lines += [line.strip() for line in case.text.strip().splitlines()]
    if case.stores:
        lines += _stores(case.output)
    return "{\n" + "\n".join(lines) + "\n}"


def _declared(one: Operand, letter: str) -> list[str]:
    kind = ".pred" if one.kind == "pred" else _REGISTER[one.width]
    listed = ", ".join(one.names(letter))
    return [f".reg {kind} {listed};"] + ([f".reg .b32 {letter}_word;"] if one.kind == "pred" else [])


def _loads(one: Operand, letter: str, offset: int) -> list[str]:
    lines = [f"mad.wide.u32 at, t, {one.width}, src;"]
    for index, name in enumerate(one.names(letter)):
        place = f"[at+{offset + index * THREADS * one.width}]"
        if one.kind == "pred":
            lines += [f"ld.global.b32 {letter}_word, {place};", f"setp.ne.b32 {name}, {letter}_word, 0;"]
        else:
            kind = one.kind if one.width == 1 else f"b{8 * one.width}"
            lines.append(f"ld.global.{kind} {name}, {place};")
    return lines


def _stores(one: Operand) -> list[str]:
    lines = [f"mad.wide.u32 at, t, {one.width}, dst;"]
    for index, name in enumerate(one.names("d")):
        place = f"[at+{index * THREADS * one.width}]"
        if one.kind == "pred":
            lines += [f"selp.b32 d_word, 1, 0, {name};", f"st.global.b32 {place}, d_word;"]
        else:
            kind = one.kind if one.width == 1 else f"b{8 * one.width}"
            lines.append(f"st.global.{kind} {place}, {name};")
    return lines


def signature(text: str) -> tuple[tuple[Operand, ...], Operand]:
    """Read ``f32 f32 > f32``."""
    given, _, made = text.partition(">")
    return tuple(operand(one) for one in given.split()), operand(made.strip())


def case(
    family: str, name: str, kinds: str, text: str = "", rule: Rule | None = None, *, loads: bool = True,
    stores: bool = True,
) -> Case:  # fmt: skip
    """A case from a row. Without text: the instruction named by ``name`` (up to a space), applied to the inputs."""
    inputs, output = signature(kinds)
    opcode = name.split(" ", maxsplit=1)[0]
    if not text:
        given = [_bracketed(one, letter) for letter, one in zip("abcefghk", inputs, strict=False)]
        text = f"{opcode} {', '.join([_bracketed(output, 'd'), *given])};"
    return Case(
        family=family, name=name, text=text, inputs=inputs, output=output, rule=rule or BITS, loads=loads,
        stores=stores,
    )  # fmt: skip


def _bracketed(one: Operand, letter: str) -> str:
    names = one.names(letter)
    return names[0] if one.count == 1 else "{" + ", ".join(names) + "}"
