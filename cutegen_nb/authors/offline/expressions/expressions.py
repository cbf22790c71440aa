"""Expression trees for one element of a kernel, and their text in CuTe DSL.

Leaves are names of registers that the surrounding kernel loads. All arithmetic is in the kind of the leaf
(fp32 for fp16 and bf16); results are rounded once, when they are stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

LONGEST_NESTED_TEXT = 64
"""Longest nested expression in characters; a longer one gets a name of its own, so that lines stay short."""


class ValueType(StrEnum):
    """Type of a value in registers, by the DSL's name."""

    BOOL = "Boolean"
    I32 = "Int32"
    I64 = "Int64"
    F32 = "Float32"
    F64 = "Float64"


_KIND_OF_DTYPE = {
    "float64": ValueType.F64,
    "float32": ValueType.F32,
    "float16": ValueType.F32,
    "bfloat16": ValueType.F32,
    "int64": ValueType.I64,
    "int32": ValueType.I32,
    "int16": ValueType.I32,
    "int8": ValueType.I32,
    "uint8": ValueType.I32,
    "bool": ValueType.BOOL,
}
"""Type in registers by torch dtype: half precision is computed in fp32, small integers in int32."""

DSL_TYPE = {
    "float64": "cutlass.Float64",
    "float32": "cutlass.Float32",
    "float16": "cutlass.Float16",
    "bfloat16": "cutlass.BFloat16",
    "int64": "cutlass.Int64",
    "int32": "cutlass.Int32",
    "int16": "cutlass.Int16",
    "int8": "cutlass.Int8",
    "uint8": "cutlass.Uint8",
    "bool": "cutlass.Uint8",
}
"""DSL type of an element in memory, by torch dtype. The DSL sees a bool tensor as bytes."""

_ORDER = (ValueType.BOOL, ValueType.I32, ValueType.I64, ValueType.F32, ValueType.F64)
"""Order of promotion, narrowest first."""


def kind_of(dtype: str) -> ValueType:
    """Type in registers for elements of a torch dtype (``float16``)."""
    return _KIND_OF_DTYPE[dtype]


def promoted(kinds: Sequence[ValueType]) -> ValueType:
    """Narrowest kind that holds all of `kinds`."""
    return max(kinds, key=_ORDER.index)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Register by name."""

    name: str
    """Name in the kernel."""
    kind: ValueType
    """Type of the value."""


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """Number known at generation time."""

    value: float | int | bool
    """The number."""
    kind: ValueType
    """Type that the number is computed in."""


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """Operation on other expressions."""

    op: str
    """An infix operator, ``neg``, ``not``, ``select``, ``to:TYPE``, or a function of ``cute.math``."""
    args: tuple[Expr, ...]
    """Operands."""
    kind: ValueType
    """Type of the result."""


Expr = Leaf | Const | Apply


def number(value: float, kind: ValueType) -> Const:
    """Constant of the given kind."""
    if kind is ValueType.BOOL:
        return Const(bool(value), kind)
    return Const(float(value) if kind in (ValueType.F32, ValueType.F64) else int(value), kind)


def apply(op: str, *args: Expr, kind: ValueType | None = None) -> Expr:
    """Operation whose result has the promoted kind of its operands, or `kind` where given."""
    return Apply(op, args, kind or promoted([arg.kind for arg in args]))


def cast(value: Expr, kind: ValueType) -> Expr:
    """Convert a value to `kind`; constants are converted at generation time."""
    if value.kind is kind:
        return value
    if isinstance(value, Const):
        return number(value.value, kind)
    if kind is ValueType.BOOL:
        return apply("!=", value, number(0, value.kind), kind=kind)
    return Apply(f"to:cutlass.{kind.value}", (value,), kind)


def rounded(value: Expr, dtype: str) -> Expr:
    """Round `value` to a half-precision dtype and widen it again, as the reference's own rounding does."""
    if dtype not in ("float16", "bfloat16"):
        return value
    narrow = Apply(f"to:{DSL_TYPE[dtype]}", (value,), value.kind)
    return Apply(f"to:cutlass.{value.kind.value}", (narrow,), value.kind)


def leaves(expr: Expr) -> frozenset[str]:
    """Names of the registers that an expression reads."""
    seen: set[int] = set()
    names: set[str] = set()
    pending = [expr]
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Leaf):
            names.add(item.name)
        elif isinstance(item, Apply):
            pending.extend(item.args)
    return frozenset(names)


def same(first: Expr, second: Expr) -> bool:
    """Return whether two expressions are structurally equal."""
    compared: set[tuple[int, int]] = set()

    def equal(one: Expr, other: Expr) -> bool:
        if one is other or (id(one), id(other)) in compared:
            return True
        if isinstance(one, Apply) and isinstance(other, Apply):
            alike = (one.op, one.kind, len(one.args)) == (other.op, other.kind, len(other.args))
            if not (alike and all(equal(a, b) for a, b in zip(one.args, other.args, strict=True))):
                return False
            compared.add((id(one), id(other)))
            return True
        if isinstance(one, Leaf) and isinstance(other, Leaf):
            return one.name == other.name
        if isinstance(one, Const) and isinstance(other, Const):
            # repr tells 0.0 from −0.0, and makes NaN equal to itself.
            return (repr(one.value), one.kind) == (repr(other.value), other.kind)
        return False

    return equal(first, second)


_PRECEDENCE = {"|": 2, "^": 3, "&": 4, "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7}
"""Python's operator precedence, tightest binding highest."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_COMPARISON, _UNARY, _ATOM = 1, 8, 10


def constant_text(value: float, kind: ValueType) -> str:
    """Literal that Python reads back as the same number."""
    if kind is ValueType.BOOL:
        return f"cutlass.Boolean({bool(value)})"
    if kind in (ValueType.F32, ValueType.F64):
        return repr(float(value)) if math.isfinite(value) else f'float("{float(value)}")'
    return repr(int(value))


def typed_text(expr: Expr, text: str) -> str:
    """`text` of `expr`, with a bare literal wrapped in its DSL type."""
    if isinstance(expr, Const) and expr.kind is not ValueType.BOOL:
        return f"cutlass.{expr.kind.value}({text})"
    return text


def grouped(text: str) -> str:
    """`text` in parentheses unless it is a name, a call or in parentheses already."""
    return text if text.replace("_", "").isalnum() or _is_call(text) else f"({text})"


def _is_call(text: str) -> bool:
    """Return whether the first bracket of `text` closes at its end and follows only a dotted name."""
    name, bracket, rest = text.partition("(")
    if not bracket or (not (name + "_").replace("_", "").replace(".", "").isalnum() and name):
        return False
    depth = 1
    for at, sign in enumerate(rest):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return at == len(rest) - 1
    return False


class _Numbering:
    """Hash consing: one node for all equal expressions, so that shared work is written once."""

    def __init__(self) -> None:
        self.canonical: dict[int, Expr] = {}
        self.uses: dict[int, int] = {}
        self._by_key: dict[tuple[object, ...], Expr] = {}

    def visit(self, expr: Expr) -> Expr:
        """Return the node that stands for all expressions equal to `expr`, and count a use of it."""
        known = self.canonical.get(id(expr))
        if known is None:
            known = self._intern(expr)
            self.canonical[id(expr)] = known
        self.uses[id(known)] = self.uses.get(id(known), 0) + 1
        return known

    def _intern(self, expr: Expr) -> Expr:
        if isinstance(expr, Leaf):
            key: tuple[object, ...] = ("leaf", expr.name)
            return self._by_key.setdefault(key, expr)
        if isinstance(expr, Const):
            return self._by_key.setdefault(("const", repr(expr.value), expr.kind), expr)
        # visit counts a use of each operand; the loop below takes it back when the operation is known
        # already.
        operands = tuple(self.visit(arg) for arg in expr.args)
        key = (expr.op, *(id(arg) for arg in operands))
        known = self._by_key.get(key)
        if known is None:
            known = Apply(expr.op, operands, expr.kind)
            self._by_key[key] = known
            self.canonical[id(known)] = known
            return known
        for operand in operands:
            self.uses[id(operand)] -= 1
        return known


def body(results: Mapping[str, Expr], *, prefix: str = "t") -> tuple[list[str], dict[str, str]]:
    """Return statements that compute shared parts, and for each result the text of its value.

    A part used more than once, or too long to nest, is assigned to a name `prefix` + number.
    """
    numbering = _Numbering()
    # The nodes must outlive the numbering: its keys are their ids.
    roots = {name: numbering.visit(expr) for name, expr in results.items()}
    lines: list[str] = []
    texts: dict[int, tuple[str, int]] = {}
    whole = {id(expr) for expr in roots.values()}

    def emit(expr: Expr) -> tuple[str, int]:
        known = texts.get(id(expr))
        if known is not None:
            return known
        text, precedence = _text(expr, emit)
        shared = numbering.uses[id(expr)] > 1
        long = len(text) > LONGEST_NESTED_TEXT and id(expr) not in whole
        if isinstance(expr, Apply) and (shared or long):
            name = f"{prefix}{len(lines)}"
            lines.append(f"{name} = {text}")
            text, precedence = name, _ATOM
        texts[id(expr)] = (text, precedence)
        return texts[id(expr)]

    values = {name: typed_text(expr, emit(expr)[0]) for name, expr in roots.items()}
    return lines, values


def _text(expr: Expr, emit: object) -> tuple[str, int]:
    """Return the text of one operation, with its operands' text, and its precedence."""
    assert callable(emit)
    if isinstance(expr, Leaf):
        return expr.name, _ATOM
    if isinstance(expr, Const):
        text = constant_text(expr.value, expr.kind)
        return text, _UNARY if text.startswith("-") else _ATOM
    parts = [emit(arg) for arg in expr.args]
    op = expr.op
    if op in _PRECEDENCE:
        level = _PRECEDENCE[op]
        (left, left_level), (right, right_level) = parts
        left = left if left_level >= level else f"({left})"
        # Operators associate to the left: a right operand of equal precedence needs parentheses.
        right = right if right_level > level else f"({right})"
        return f"{left} {op} {right}", level
    if op in _COMPARISONS:
        left, right = (text if level > _COMPARISON else f"({text})" for text, level in parts)
        return f"({left} {op} {right})", _ATOM
    if op == "neg":
        text, level = parts[0]
        return f"-{text}" if level > _UNARY else f"-({text})", _UNARY
    if op == "not":
        return f"({parts[0][0]} == cutlass.Boolean(False))", _ATOM
    if op.startswith("to:"):
        text, level = parts[0]
        return f"{text if level == _ATOM else f'({text})'}.to({op.removeprefix('to:')})", _ATOM
    arguments = ", ".join(typed_text(arg, text) for arg, (text, _) in zip(expr.args, parts, strict=True))
    if op == "select":
        # select_ returns a bare MLIR value; the type turns it into a DSL value again.
        return f"cutlass.{expr.kind.value}(cutlass.select_({arguments}))", _ATOM
    return f"cute.math.{op}({arguments})", _ATOM
