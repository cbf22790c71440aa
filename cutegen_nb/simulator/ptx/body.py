"""Bodies of PTX functions: statements, registers, instructions and their operands."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from struct import pack

from cutegen_nb.analysis.binary.ptx_places import Location, PtxPlaces
from cutegen_nb.simulator.ptx.model import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from cutegen_nb.simulator.ptx.tokens import Cursor, PtxSyntaxError, Token

_WARP = 32
_PARTS = {"v2": "xy", "v4": "xyzw"}
"""Elements of a vector register by its size."""
"""Value of ``WARP_SZ`` (PTX ISA, "Predefined Constants")."""
_GREATEST_BYTES, _GREATEST_ALIGN, _MOST_REGISTERS = 1 << 31, 1 << 16, 1 << 20
"""Greatest size and alignment of a variable and most registers of a family; more is a syntax error."""
SPACES = frozenset({".global", ".const", ".shared", ".local", ".param"})
"""State spaces in which variables are declared."""


@dataclass(slots=True)
class _Scope:
    """Block ``{ … }`` with the names that it declares."""

    suffix: str
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Draft:
    """Function that is being parsed."""

    body: list[Instruction] = field(default_factory=list)
    """Instructions so far."""
    labels: dict[str, int] = field(default_factory=dict)
    """Index of the instruction that follows each label."""
    registers: dict[str, str] = field(default_factory=dict)
    """Type of each register, or of each family ``prefix<``."""
    vectors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the elements of each vector register."""
    variables: list[Variable] = field(default_factory=list)
    """Variables declared in the function: shared, local, param."""
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Labels of each ``.branchtargets`` list, by its label."""
    scopes: list[_Scope] = field(default_factory=list)
    """Open blocks, the innermost last."""
    scope_count: int = 0
    """Number of blocks opened so far, which makes the suffix of the next block's names."""


class BodyReader(Cursor):
    """Parser of declarations and function bodies."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.places = PtxPlaces()
        self.located: list[Location] = []

    def variables(self, suffix: str, *, external: bool = False) -> list[Variable]:
        """Take a declaration of variables in a state space, with its semicolon."""
        result = self.declared(external=external)
        self.expect(";")
        return [replace(item, name=item.name + suffix) for item in result]

    def declared(self, *, external: bool = False) -> list[Variable]:
        """Take a declaration up to its semicolon or bracket.

        Raises:
            PtxSyntaxError: the text is no declaration.
        """
        space, align, kind = self.take().lstrip("."), 0, ""
        if space == "reg":
            raise PtxSyntaxError(f"PTX line {self.line()}: parameters in registers are not known here.")
        vector, pointer = 1, False
        while self.peek().startswith("."):
            word = self.take()
            if word == ".align":
                number = self.integer()
                align = align if pointer else number  # after .ptr: alignment of the memory pointed to
            elif word == ".ptr":
                pointer = True
            elif word in {".v2", ".v4"}:
                vector = int(word[2])
            elif word[1:] in TYPE_BYTES:
                kind = word[1:]
        if not kind:
            raise PtxSyntaxError(f"PTX line {self.line()}: a type expected before {self.peek()!r}.")
        width = TYPE_BYTES[kind] * vector
        result = []
        while True:
            name, count, initial = self.take(), 1, b""
            while self.accept("["):
                count *= 0 if self.peek() == "]" else self.integer()
                self.expect("]")
            self._check_size(name, width * count, align)
            if self.accept("="):
                initial = self._initial(kind)
            result.append(
                Variable(
                    space=space, name=name, align_bytes=align or width,
                    size_bytes=self._size(name, width * count, len(initial)),
                    initial=initial, external=external,
                )
            )  # fmt: skip
            if space == "param" or not self.accept(","):
                return result

    def _check_size(self, name: str, size: int, align: int) -> None:
        if not 0 <= size <= _GREATEST_BYTES or not 0 <= align <= _GREATEST_ALIGN:
            raise PtxSyntaxError(
                f"PTX line {self.line()}: {name!r} has {size} bytes, aligned to {align}; that makes no sense."
            )

    def _size(self, name: str, stated: int, initial: int) -> int:
        """Bytes of a variable; without bounds the initial value tells (PTX ISA, "Array Declarations")."""
        if initial > (stated or initial):
            raise PtxSyntaxError(
                f"PTX line {self.line()}: {initial} bytes of initial values for {name}, which has {stated}."
            )
        return stated or initial

    def _initial(self, kind: str) -> bytes:
        data = bytearray()
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
            elif self.accept("}"):
                depth -= 1
            elif not self.accept(","):
                data += packed(self.immediate(), kind)
            if depth == 0 and self.peek() in {";", ","}:
                return bytes(data)

    # -- bodies ---------------------------------------------------------------------------------------------
    def block_of(self) -> Draft:
        """Take a function body with its braces."""
        draft = Draft()
        self.places.location = ()
        self._block(draft)
        return draft

    def _block(self, draft: Draft) -> None:
        self.expect("{")
        suffix = f"@{draft.scope_count}" if draft.scope_count else ""
        draft.scope_count += 1
        draft.scopes.append(_Scope(suffix, self._labels_ahead()))
        while not self.accept("}"):
            self._statement(draft)
        draft.scopes.pop()

    def _labels_ahead(self) -> set[str]:
        """Labels of the block that begins here, so that a forward branch finds the label of its own block."""
        depth, index, found = 0, self.at, set()
        while index + 1 < len(self.tokens) and depth >= 0:
            text = self.tokens[index].text
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth == 0 and self.tokens[index + 1].text == ":":
                found.add(text)
            index += 1
        return found

    def _statement(self, draft: Draft) -> None:
        token = self.tokens[self.at] if self.at < len(self.tokens) else Token("", "", 0)
        if token.kind == "asm":
            self.places.inside_asm = "begin" in token.text
            self.at += 1
        elif token.text == "{":
            self._block(draft)
        elif token.text == ";":
            self.at += 1
        elif token.text in {".loc", ".file"}:
            self.places.take(self.rest_of_line())
        elif token.text == ".reg":
            self._registers(draft)
        elif token.text in SPACES:
            scope = draft.scopes[-1]
            added = self.variables(scope.suffix)
            scope.names.update(item.name.removesuffix(scope.suffix) for item in added)
            draft.variables.extend(added)
        elif token.text == ".pragma":
            self.skip_statement()
        elif self.peek(1) == ":":
            self._label(draft)
        else:
            self._instruction(draft)

    def _label(self, draft: Draft) -> None:
        name = self.take() + draft.scopes[-1].suffix
        self.expect(":")
        if self.peek() in {".branchtargets", ".calltargets", ".callprototype"}:
            self.take()
            names = []
            while not self.accept(";"):
                if not self.accept(","):
                    names.append(self._renamed(draft, self.take()))
            draft.branch_targets[name] = tuple(names)
            return
        draft.labels[name] = len(draft.body)

    def _registers(self, draft: Draft) -> None:
        self.expect(".reg")
        kind, parts = self.take().lstrip("."), ""
        while self.peek().startswith("."):
            parts = _PARTS.get(kind, "")
            kind = self.take().lstrip(".")
        if kind not in TYPE_BYTES:
            raise PtxSyntaxError(f"PTX line {self.line()}: {kind!r} is no type of a register.")
        scope = draft.scopes[-1]
        while not self.accept(";"):
            if self.accept(","):
                continue
            name = self.take()
            if self.accept("<"):
                count = self.integer()
                self.expect(">")
                if not 0 <= count <= _MOST_REGISTERS:
                    raise PtxSyntaxError(f"PTX line {self.line()}: {count} registers {name!r} make no sense.")
                if scope.suffix or not name.startswith("%"):  # each is listed: % alone does not tell it
                    names = [f"{name}{index}" for index in range(count)]
                    scope.names.update(names)
                    draft.registers.update({one + scope.suffix: kind for one in names})
                else:
                    draft.registers[name + "<"] = kind
                continue
            # A vector register is as many registers, named as its elements are.
            names = [f"{name}.{part}" for part in parts] or [name]
            scope.names.update((name, *names))
            draft.registers.update({one + scope.suffix: kind for one in names})
            if parts:
                draft.vectors[name + scope.suffix] = tuple(one + scope.suffix for one in names)

    def _renamed(self, draft: Draft, name: str) -> str:
        """Unique name: with the suffix of the innermost open block that declares it."""
        for scope in reversed(draft.scopes):
            if name in scope.names:
                return name + scope.suffix
        return name

    # -- instructions ---------------------------------------------------------------------------------------
    def _instruction(self, draft: Draft) -> None:
        line = self.line()
        guard = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = Register(name=self._renamed(draft, self.take()), negated=negated)
        opcode, *modifiers = self.take().split(".")
        operands: list[Operand] = []
        while not self.accept(";"):
            if self.accept(","):
                continue
            operands.append(self._operand(draft))
        # The index of the location travels in ``column`` until the file table is complete.
        if not self.located or self.located[-1] != self.places.location:
            self.located.append(self.places.location)
        draft.body.append(
            Instruction(
                opcode=opcode, modifiers=tuple(modifiers), operands=tuple(operands), guard=guard,
                ptx_line=line, column=len(self.located) - 1,
            )
        )  # fmt: skip

    def _operand(self, draft: Draft) -> Operand:
        word = self.peek()
        if word in {"{", "("}:
            return self._vector(draft)
        if word == "[":
            return self._address(draft)
        if self.accept("!"):
            return Register(name=self._renamed(draft, self.take()), negated=True)
        if word == "-" or self.kind() == "number":
            return self.immediate()
        vector = draft.vectors.get(self._renamed(draft, word))
        if vector is not None:
            self.take()
            return Vector(items=tuple(Register(name=one) for one in vector))
        first = self._named(draft)
        if not self.accept("|"):
            return first
        return Vector(items=(first, self._named(draft)))

    def _named(self, draft: Draft) -> Register | Symbol | Immediate:
        if self.kind() != "word":
            raise PtxSyntaxError(f"PTX line {self.line()}: an operand expected, {self.peek()!r} seen.")
        name = self._renamed(draft, self.take())
        if name == "WARP_SZ":
            return Immediate(value=_WARP)
        if name.startswith("%") or name == "_" or name in draft.registers:
            return Register(name=name)
        if self.peek() in {"+", "-"}:
            return Symbol(name=name, offset=self._offset())
        return Symbol(name=name)

    def _offset(self) -> int:
        total = 0
        while self.peek() in {"+", "-"}:
            sign = -1 if self.take() == "-" else 1
            total += sign * self.integer()
        return total

    def _vector(self, draft: Draft) -> Vector:
        closing = {"{": "}", "(": ")"}[self.take()]
        items: list[Operand] = []
        while not self.accept(closing):
            if not self.accept(","):
                items.append(self._operand(draft))
        return Vector(items=tuple(items))

    def _address(self, draft: Draft) -> Operand:
        self.expect("[")
        base: Operand = self.immediate() if self.kind() == "number" else self._named(draft)
        offset = self._offset()
        if self.accept(","):  # tensor coordinates: [map, {x, y}]
            coordinates = [self._operand(draft)]
            while self.accept(","):
                coordinates.append(self._operand(draft))
            self.expect("]")
            return Vector(items=(Address(base=base, offset=offset), *coordinates))  # type: ignore[arg-type]
        self.expect("]")
        if isinstance(base, Symbol) and base.offset:
            base, offset = Symbol(name=base.name), offset + base.offset
        if isinstance(base, (Register, Symbol, Immediate)):
            return Address(base=base, offset=offset)
        raise PtxSyntaxError(f"PTX line {self.line()}: this address form is not known here.")


_FLOAT_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
"""Formats of :mod:`struct` by float type."""


def packed(constant: Immediate, kind: str) -> bytes:
    """Little-endian bytes of a constant of type `kind`, rounded where that is a narrower float."""
    width = TYPE_BYTES[kind]
    if kind in _FLOAT_FORMATS:
        return pack(_FLOAT_FORMATS[kind], constant.value)
    if constant.bits is not None:
        return constant.bits.to_bytes(width, "little")
    return (int(constant.value) % (1 << 8 * width)).to_bytes(width, "little")
