"""PTX text → ``ptx_model.Module`` (PTX ISA, "Syntax", "Directives", "State Spaces, Types, and Variables")."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field, replace

from cutegen_nb.simulator.ptx_model import (
    TYPE_BYTES,
    Address,
    Function,
    Immediate,
    Instruction,
    Kernel,
    Module,
    Operand,
    Parameter,
    Register,
    Symbol,
    Variable,
    Vector,
)

__all__ = ["Kernel", "Module", "PtxSyntaxError", "parse"]

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<asm>//\s*(?:begin|end)\sinline\sasm)
    |(?P<comment>//[^\n]*)
    |(?P<string>"[^"\n]*")
    |(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][-+]?\d+)?|\d+U?)
    |(?P<word>[%$_A-Za-z.](?:[\w$.%]|::)*)
    |(?P<mark>[{}\[\]();,:@!|<>=+\-])""",
    re.VERBOSE | re.DOTALL,
)
_SPACES = frozenset({".global", ".const", ".shared", ".local", ".param"})
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|nvidia_cutlass_dsl|lib[/\\]python3[^/\\]*)[/\\]")


class PtxSyntaxError(ValueError):
    """The text is not PTX that this parser knows; names the line and what stood there."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int


@dataclass(slots=True)
class _Scope:
    """Names that one ``{ … }`` declares."""

    suffix: str
    names: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Draft:
    """A function being read."""

    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    scopes: list[_Scope] = field(default_factory=list)
    scope_count: int = 0


def parse(text: str) -> Module:
    """Read a whole PTX module.

    Raises:
        PtxSyntaxError: with the line of the text.
    """
    return _Reader(text).module()


def _tokens(text: str) -> list[_Token]:
    result: list[_Token] = []
    line, position = 1, 0
    text = text.split("\0", 1)[0]
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PtxSyntaxError(f"PTX line {line}: {text[position : position + 20]!r} is no PTX token.")
        kind = match.lastgroup or ""
        if kind in {"string", "number", "word", "mark", "asm"}:
            result.append(_Token(kind, match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    return result


class _Reader:
    """Recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._files: dict[int, str] = {}
        self._inside_asm = False
        self._location: tuple[tuple[int, int, int], ...] = ()
        self._location_of: dict[tuple[int, int, int], tuple[tuple[int, int, int], ...]] = {}
        self._located: list[tuple[tuple[int, int, int], ...]] = []

    # -- tokens ---------------------------------------------------------------------------------------------
    def _peek(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index].text if index < len(self._tokens) else ""

    def _line(self) -> int:
        if not self._tokens:
            return 1
        return self._tokens[min(self._at, len(self._tokens) - 1)].line

    def _take(self) -> str:
        if self._at >= len(self._tokens):
            raise PtxSyntaxError(f"PTX line {self._line()}: the text ends in the middle of a statement.")
        self._at += 1
        return self._tokens[self._at - 1].text

    def _expect(self, wanted: str) -> None:
        line, seen = self._line(), self._take()
        if seen != wanted:
            raise PtxSyntaxError(f"PTX line {line}: {wanted!r} expected, {seen!r} seen.")

    def _accept(self, wanted: str) -> bool:
        if self._peek() != wanted:
            return False
        self._at += 1
        return True

    def _rest_of_line(self) -> list[str]:
        line, result = self._line(), []
        while self._at < len(self._tokens) and self._tokens[self._at].line == line:
            result.append(self._take())
        return result

    def _integer(self) -> int:
        sign = -1 if self._accept("-") else 1
        line, text = self._line(), self._take()
        try:
            return sign * int(text.rstrip("U"), 0)
        except ValueError:
            raise PtxSyntaxError(f"PTX line {line}: an integer expected, {text!r} seen.") from None

    # -- module ---------------------------------------------------------------------------------------------
    def module(self) -> Module:
        kernels: dict[str, Kernel] = {}
        functions: dict[str, Function] = {}
        variables: list[Variable] = []
        version = target = ""
        while self._at < len(self._tokens):
            word = self._peek()
            if word == ".version":
                version = self._rest_of_line()[1]
            elif word == ".target":
                target = self._rest_of_line()[1]
            elif word == ".address_size":
                self._rest_of_line()
            elif word in {".file", ".loc"}:
                self._debug_line()
            elif word == ".section":
                self._skip_section()
            elif word == ".pragma" or word == ".alias":
                self._skip_statement()
            else:
                self._declaration(kernels, functions, variables)
        return self._finished(kernels, functions, variables, version, target)

    def _finished(
        self,
        kernels: dict[str, Kernel],
        functions: dict[str, Function],
        variables: list[Variable],
        version: str,
        target: str,
    ) -> Module:
        shared = tuple(item for item in variables if item.space == "shared")
        placed = {
            name: replace(
                kernel,
                architecture=target,
                body=self._with_locations(kernel.body),
                static_smem_bytes=_static_bytes((*shared, *kernel.variables)),
            )
            for name, kernel in kernels.items()
        }
        others = {name: replace(one, body=self._with_locations(one.body)) for name, one in functions.items()}
        return Module(
            kernels=placed, functions=others, variables=tuple(variables), files=self._files,
            version=version, target=target,
        )  # fmt: skip

    def _declaration(
        self, kernels: dict[str, Kernel], functions: dict[str, Function], variables: list[Variable]
    ) -> None:
        external = False
        while self._peek() in {".visible", ".extern", ".weak", ".common"}:
            external = self._take() == ".extern" or external
        word = self._peek()
        if word == ".entry":
            kernel = self._entry()
            kernels[kernel.name] = kernel
        elif word == ".func":
            function = self._func()
            if function.body or function.name not in functions:
                functions[function.name] = function
        elif word in _SPACES:
            variables.extend(self._variables("", external=external))
        else:
            raise PtxSyntaxError(f"PTX line {self._line()}: {word!r} begins no declaration known here.")

    def _skip_statement(self) -> None:
        while self._take() != ";":
            pass

    def _skip_section(self) -> None:
        while self._take() != "{":
            pass
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self._take(), 0)

    # -- debug lines ----------------------------------------------------------------------------------------
    def _debug_line(self) -> None:
        words = self._rest_of_line()
        if words[0] == ".file":
            self._files[int(words[1])] = words[2].strip('"')
            return
        if self._inside_asm:
            return  # the compiler counts the lines of the assembly text as if they were Python's
        numbers = (int(words[1]), int(words[2]), int(words[3]))
        chain: tuple[tuple[int, int, int], ...] = (numbers,)
        if "inlined_at" in words:
            at = words.index("inlined_at")
            outer = (int(words[at + 1]), int(words[at + 2]), int(words[at + 3]))
            chain = (numbers, *self._location_of.get(outer, (outer,)))
        self._location_of[numbers] = chain
        self._location = chain

    def _with_locations(self, body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        """Put file names in: ``.file`` lines stand at the end, so indices wait in ``ptx_line`` order."""
        return tuple(self._with_location(item) for item in body)

    def _with_location(self, item: Instruction) -> Instruction:
        chain = self._located[item.column]
        named = [(self._files.get(number, ""), line, column) for number, line, column in chain if line]
        mine = [one for one in named if not _LIBRARY.search(one[0])] or named
        file, line, column = mine[0] if mine else ("", 0, 0)
        return replace(item, file=file, line=line, column=column)

    # -- functions ------------------------------------------------------------------------------------------
    def _entry(self) -> Kernel:
        self._expect(".entry")
        name = self._take()
        parameters = self._parameters() if self._peek() == "(" else ()
        limits: dict[str, tuple[int, int, int]] = {}
        while self._peek() not in {"{", ";"}:
            word = self._take()
            numbers = []
            while self._peek() not in {"{", ";"} and not self._peek().startswith("."):
                if not self._accept(","):
                    numbers.append(self._integer())
            if word in {".reqntid", ".maxntid"}:
                limits[word] = (*numbers, 1, 1)[:3]  # type: ignore[assignment]
        draft = self._block_of(parameters)
        return Kernel(
            name=name, parameters=parameters, body=tuple(draft.body), labels=draft.labels,
            registers=draft.registers, variables=tuple(draft.variables),
            branch_targets=draft.branch_targets, required_threads=limits.get(".reqntid"),
            max_threads=limits.get(".maxntid"),
        )  # fmt: skip

    def _func(self) -> Function:
        self._expect(".func")
        returns = self._parameters() if self._peek() == "(" else ()
        name = self._take()
        parameters = self._parameters() if self._peek() == "(" else ()
        while self._peek() not in {"{", ";"}:
            self._take()
        if self._accept(";"):
            return Function(name=name, parameters=parameters, returns=returns)
        draft = self._block_of((*parameters, *returns))
        return Function(
            name=name, parameters=parameters, returns=returns, body=tuple(draft.body), labels=draft.labels,
            registers=draft.registers, variables=tuple(draft.variables), branch_targets=draft.branch_targets,
        )  # fmt: skip

    def _parameters(self) -> tuple[Parameter, ...]:
        self._expect("(")
        result: list[Parameter] = []
        offset = 0
        while not self._accept(")"):
            if self._accept(","):
                continue
            (variable,) = self._declared()
            offset = _aligned(offset, variable.align_bytes)
            result.append(
                Parameter(name=variable.name, offset_bytes=offset, size_bytes=variable.size_bytes)
            )
            offset += variable.size_bytes
        return tuple(result)

    def _variables(self, suffix: str, *, external: bool = False) -> list[Variable]:
        result = self._declared(external=external)
        self._expect(";")
        return [replace(item, name=item.name + suffix) for item in result]

    def _declared(self, *, external: bool = False) -> list[Variable]:
        space, align, kind = self._take().lstrip("."), 0, ""
        if space == "reg":
            raise PtxSyntaxError(f"PTX line {self._line()}: parameters in registers are not known here.")
        vector = 1
        while self._peek().startswith("."):
            word = self._take()
            if word == ".align":
                align = self._integer()
            elif word in {".v2", ".v4"}:
                vector = int(word[2])
            elif word[1:] in TYPE_BYTES:
                kind = word[1:]
        if not kind:
            raise PtxSyntaxError(f"PTX line {self._line()}: a type expected before {self._peek()!r}.")
        width = TYPE_BYTES[kind] * vector
        result = []
        while True:
            name, count, initial = self._take(), 1, b""
            while self._accept("["):
                count *= 0 if self._peek() == "]" else self._integer()
                self._expect("]")
            if self._accept("="):
                initial = self._initial(kind)
            result.append(
                Variable(
                    space=space, name=name, align_bytes=align or width, size_bytes=width * count,
                    initial=initial, external=external,
                )
            )  # fmt: skip
            if space == "param" or not self._accept(","):
                return result

    def _initial(self, kind: str) -> bytes:
        data = bytearray()
        depth = 0
        while True:
            if self._accept("{"):
                depth += 1
            elif self._accept("}"):
                depth -= 1
            elif not self._accept(","):
                data += _packed(self._immediate(), kind)
            if depth == 0 and self._peek() in {";", ","}:
                return bytes(data)

    # -- bodies ---------------------------------------------------------------------------------------------
    def _block_of(self, parameters: tuple[Parameter, ...]) -> _Draft:
        draft = _Draft()
        self._location = ()
        self._block(draft)
        del parameters
        return draft

    def _block(self, draft: _Draft) -> None:
        self._expect("{")
        suffix = f"@{draft.scope_count}" if draft.scope_count else ""
        draft.scope_count += 1
        draft.scopes.append(_Scope(suffix, self._labels_ahead()))
        while not self._accept("}"):
            self._statement(draft)
        draft.scopes.pop()

    def _labels_ahead(self) -> set[str]:
        """Labels of the block that begins here, so that a branch forward finds its own."""
        depth, index, found = 0, self._at, set()
        while index + 1 < len(self._tokens) and depth >= 0:
            text = self._tokens[index].text
            depth += {"{": 1, "}": -1}.get(text, 0)
            if depth == 0 and self._tokens[index + 1].text == ":":
                found.add(text)
            index += 1
        return found

    def _statement(self, draft: _Draft) -> None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else _Token("", "", 0)
        if token.kind == "asm":
            self._inside_asm = "begin" in token.text
            self._at += 1
        elif token.text == "{":
            self._block(draft)
        elif token.text == ";":
            self._at += 1
        elif token.text in {".loc", ".file"}:
            self._debug_line()
        elif token.text == ".reg":
            self._registers(draft)
        elif token.text in _SPACES:
            scope = draft.scopes[-1]
            added = self._variables(scope.suffix)
            scope.names.update(item.name.removesuffix(scope.suffix) for item in added)
            draft.variables.extend(added)
        elif token.text == ".pragma":
            self._skip_statement()
        elif self._peek(1) == ":":
            self._label(draft)
        else:
            self._instruction(draft)

    def _label(self, draft: _Draft) -> None:
        name = self._take() + draft.scopes[-1].suffix
        self._expect(":")
        if self._peek() in {".branchtargets", ".calltargets", ".callprototype"}:
            self._take()
            names = []
            while not self._accept(";"):
                if not self._accept(","):
                    names.append(self._renamed(draft, self._take()))
            draft.branch_targets[name] = tuple(names)
            return
        draft.labels[name] = len(draft.body)

    def _registers(self, draft: _Draft) -> None:
        self._expect(".reg")
        kind = self._take().lstrip(".")
        while self._peek().startswith("."):
            kind = self._take().lstrip(".")  # .v2 and .v4 registers keep their element type
        scope = draft.scopes[-1]
        while not self._accept(";"):
            if self._accept(","):
                continue
            name = self._take()
            if self._accept("<"):
                count = self._integer()
                self._expect(">")
                if scope.suffix:
                    names = [f"{name}{index}" for index in range(count)]
                    scope.names.update(names)
                    draft.registers.update({one + scope.suffix: kind for one in names})
                else:
                    draft.registers[name + "<"] = kind
                continue
            scope.names.add(name)
            draft.registers[name + scope.suffix] = kind

    def _renamed(self, draft: _Draft, name: str) -> str:
        for scope in reversed(draft.scopes):
            if name in scope.names:
                return name + scope.suffix
        return name

    # -- instructions ---------------------------------------------------------------------------------------
    def _instruction(self, draft: _Draft) -> None:
        line = self._line()
        guard = None
        if self._accept("@"):
            negated = self._accept("!")
            guard = Register(name=self._renamed(draft, self._take()), negated=negated)
        opcode, *modifiers = self._take().split(".")
        operands: list[Operand] = []
        while not self._accept(";"):
            if self._accept(","):
                continue
            operands.append(self._operand(draft))
        # The index of the location travels in ``column`` until the file table is complete.
        if not self._located or self._located[-1] != self._location:
            self._located.append(self._location)
        draft.body.append(
            Instruction(
                opcode=opcode, modifiers=tuple(modifiers), operands=tuple(operands), guard=guard,
                ptx_line=line, column=len(self._located) - 1,
            )
        )  # fmt: skip

    def _operand(self, draft: _Draft) -> Operand:
        word = self._peek()
        if word in {"{", "("}:
            return self._vector(draft)
        if word == "[":
            return self._address(draft)
        if self._accept("!"):
            return Register(name=self._renamed(draft, self._take()), negated=True)
        if word == "-" or self._tokens[self._at].kind == "number":
            return self._immediate()
        first = self._named(draft)
        if not self._accept("|"):
            return first
        return Vector(items=(first, self._named(draft)))

    def _named(self, draft: _Draft) -> Register | Symbol:
        if self._tokens[self._at].kind != "word":
            raise PtxSyntaxError(f"PTX line {self._line()}: an operand expected, {self._peek()!r} seen.")
        name = self._renamed(draft, self._take())
        if name.startswith("%") or name == "_" or name in draft.registers:
            return Register(name=name)
        if self._peek() in {"+", "-"}:
            return Symbol(name=name, offset=self._offset())
        return Symbol(name=name)

    def _offset(self) -> int:
        total = 0
        while self._peek() in {"+", "-"}:
            sign = -1 if self._take() == "-" else 1
            total += sign * self._integer()
        return total

    def _vector(self, draft: _Draft) -> Vector:
        closing = {"{": "}", "(": ")"}[self._take()]
        items: list[Operand] = []
        while not self._accept(closing):
            if not self._accept(","):
                items.append(self._operand(draft))
        return Vector(items=tuple(items))

    def _address(self, draft: _Draft) -> Operand:
        self._expect("[")
        base: Operand = self._immediate() if self._tokens[self._at].kind == "number" else self._named(draft)
        offset = self._offset()
        if self._accept(","):  # tensor coordinates: [map, {x, y}]
            coordinates = [self._operand(draft)]
            while self._accept(","):
                coordinates.append(self._operand(draft))
            self._expect("]")
            return Vector(items=(Address(base=base), *coordinates))  # type: ignore[arg-type]
        self._expect("]")
        if isinstance(base, Symbol) and base.offset:
            base, offset = Symbol(name=base.name), offset + base.offset
        if isinstance(base, (Register, Symbol, Immediate)):
            return Address(base=base, offset=offset)
        raise PtxSyntaxError(f"PTX line {self._line()}: this address form is not known here.")

    def _immediate(self) -> Immediate:
        sign = -1 if self._accept("-") else 1
        line, text = self._line(), self._take()
        if text[:2] in {"0f", "0F"}:
            bits = int(text[2:], 16)
            return Immediate(value=struct.unpack("<f", struct.pack("<I", bits))[0], bits=bits)
        if text[:2] in {"0d", "0D"}:
            bits = int(text[2:], 16)
            return Immediate(value=struct.unpack("<d", struct.pack("<Q", bits))[0], bits=bits)
        try:
            if "." in text:
                return Immediate(value=sign * float(text))
            return Immediate(value=sign * int(text.rstrip("U"), 0))
        except ValueError:
            raise PtxSyntaxError(f"PTX line {line}: a constant expected, {text!r} seen.") from None


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def _static_bytes(variables: tuple[Variable, ...]) -> int:
    offset = 0
    for item in variables:
        if item.space == "shared" and item.size_bytes:
            offset = _aligned(offset, item.align_bytes) + item.size_bytes
    return offset


def _packed(constant: Immediate, kind: str) -> bytes:
    width = TYPE_BYTES[kind]
    if constant.bits is not None:
        return constant.bits.to_bytes(width, "little")
    if kind.startswith("f"):
        return struct.pack("<f" if width == TYPE_BYTES["f32"] else "<d", constant.value)
    return (int(constant.value) % (1 << 8 * width)).to_bytes(width, "little")
