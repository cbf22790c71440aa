"""Arithmetic, comparisons and selections of ATen as expressions, and how rules read their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from cutegen_nb.authors.offline.expressions import Const, Expr, Kind, apply, cast, number, promoted

Rule = Callable[[Sequence[object], Mapping[str, object], Kind], Expr]
"""From positional operands, keyword operands and the kind of the result to the expression."""

LARGEST_UNROLLED_POWER = 8
"""Integer powers up to this one are products."""


class UnsupportedOperationError(Exception):
    """An operation that has no expression; the message is the sentence for the person."""


def operand(value: object, kind: Kind) -> Expr:
    """An operand as an expression of `kind`."""
    if isinstance(value, bool | int | float):
        return number(value, kind)
    if isinstance(value, str | list | tuple) or value is None:
        raise UnsupportedOperationError(f"the offline author met an operand it cannot read: {value!r}")
    return cast(value, kind)  # type: ignore[arg-type]


def given(
    args: Sequence[object], kwargs: Mapping[str, object], at: int, name: str, default: object
) -> object:
    """An operand by position or keyword; None given for one that has a default means the default."""
    if len(args) > at:
        return default if args[at] is None and default is not None else args[at]
    return kwargs.get(name, default)


def scalar(value: object) -> float:
    """A number that must be known when the kernel is written. Raises UnsupportedOperationError."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Const):
        return value.value
    raise UnsupportedOperationError(f"the offline author expected a number, got {value!r}")


def floating(kind: Kind) -> Kind:
    """The kind itself where it is a floating-point one, otherwise float32."""
    return kind if kind in (Kind.F32, Kind.F64) else Kind.F32


def _function(name: str) -> Rule:
    return lambda args, _, kind: apply(name, operand(args[0], floating(kind)))


def _infix(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        work = Kind.I32 if kind is Kind.BOOL else kind
        right = operand(args[1], work)
        alpha = kwargs.get("alpha", 1)
        if alpha != 1:
            right = apply("*", right, operand(alpha, work))
        return apply(op, operand(args[0], work), right)

    return rule


def _comparison_kind(values: Sequence[object]) -> Kind:
    kinds = []
    for value in values:
        if isinstance(value, bool):
            kinds.append(Kind.I32)
        elif isinstance(value, float):
            kinds.append(Kind.F32)
        elif isinstance(value, int):
            kinds.append(Kind.I32)
        else:
            kind: Kind = value.kind  # type: ignore[attr-defined]
            kinds.append(Kind.I32 if kind is Kind.BOOL else kind)
    return promoted(kinds)


def _comparison(op: str) -> Rule:
    def rule(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
        work = _comparison_kind(args[:2])
        return apply(op, operand(args[0], work), operand(args[1], work), kind=Kind.BOOL)

    return rule


def _logical(op: str) -> Rule:
    return lambda args, _, __: apply(
        op, operand(args[0], Kind.BOOL), operand(args[1], Kind.BOOL), kind=Kind.BOOL
    )


def _bitwise(op: str) -> Rule:
    return lambda args, _, kind: apply(op, operand(args[0], kind), operand(args[1], kind), kind=kind)


def _not(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    return apply("not", operand(args[0], Kind.BOOL), kind=Kind.BOOL)


def _bitwise_not(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if kind is Kind.BOOL:
        return apply("not", operand(args[0], kind), kind=kind)
    return apply("-", number(-1, kind), operand(args[0], kind))


def _rsub(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    return _infix("-")([args[1], args[0]], kwargs, kind)


def _div(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    mode = given(args, kwargs, 2, "rounding_mode", None)
    if mode is None:
        work = floating(kind)
        return apply("/", operand(args[0], work), operand(args[1], work))
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError("the offline author does not write integer division (aten.div)")
    quotient = apply("/", operand(args[0], kind), operand(args[1], kind))
    return apply("floor" if mode == "floor" else "trunc", quotient)


def _fmod(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError("the offline author does not write integer remainders")
    return apply("rem", operand(args[0], kind), operand(args[1], kind))


def _remainder(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    # The result takes the divisor's sign (torch.remainder); rem takes the dividend's.
    left, right = _fmod(args, kwargs, kind), operand(args[1], kind)
    zero = number(0, kind)
    negative = [apply("<", value, zero, kind=Kind.BOOL) for value in (left, right)]
    inexact = apply("!=", left, zero, kind=Kind.BOOL)
    wrong = apply("&", inexact, apply("!=", *negative, kind=Kind.BOOL), kind=Kind.BOOL)
    return apply("select", wrong, apply("+", left, right), left, kind=kind)


def _pow(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if not isinstance(args[1], bool | int | float | Const):
        work = floating(kind)
        return apply("pow", operand(args[0], work), operand(args[1], work))
    exponent = scalar(args[1])
    value = operand(args[0], Kind.I32 if kind is Kind.BOOL else kind)
    if exponent == int(exponent) and 0 <= abs(exponent) <= LARGEST_UNROLLED_POWER:
        return unrolled_power(value, int(exponent))
    if exponent == 0.5:  # noqa: PLR2004 - a square root
        return apply("sqrt", operand(value, floating(kind)))
    if exponent == -0.5:  # noqa: PLR2004 - its reciprocal
        return apply("rsqrt", operand(value, floating(kind)))
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError(f"the offline author does not write integer powers of {exponent}")
    return apply("pow", value, number(exponent, kind))


def unrolled_power(value: Expr, exponent: int) -> Expr:
    """x³ as x·x·x: exact to an ulp a step, and without the hundred instructions of ``pow``."""
    if exponent < 0:
        return apply("/", number(1, value.kind), unrolled_power(value, -exponent))
    if exponent == 0:
        return number(1, value.kind)
    result, square = None, value
    while exponent:
        if exponent & 1:
            result = square if result is None else apply("*", result, square)
        exponent >>= 1
        if exponent:
            square = apply("*", square, square)
    assert result is not None
    return result


def _maximum(name: str) -> Rule:
    return lambda args, _, kind: extremum(name, operand(args[0], kind), operand(args[1], kind))


def extremum(name: str, left: Expr, right: Expr) -> Expr:
    """``max`` or ``min``; NaN wins, as in torch."""
    if left.kind is Kind.BOOL:
        return apply("|" if name == "max" else "&", left, right, kind=Kind.BOOL)
    if left.kind in (Kind.F32, Kind.F64) and not isinstance(right, Const):
        return apply(name, left, right)
    # Against a number the compiler turns max into an instruction that drops NaN; a comparison keeps it.
    beyond = apply("<" if name == "max" else ">", left, right, kind=Kind.BOOL)
    return apply("select", beyond, right, left, kind=left.kind)


def clamp(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    """Between two bounds, either of which may be None."""
    result = operand(args[0], kind)
    low = given(args, kwargs, 1, "min", None)
    high = given(args, kwargs, 2, "max", None)
    if low is not None:
        result = extremum("max", result, operand(low, kind))
    return result if high is None else extremum("min", result, operand(high, kind))


def _clamp_max(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return extremum("min", operand(args[0], kind), operand(args[1], kind))


def _where(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return select(operand(args[0], Kind.BOOL), operand(args[1], kind), operand(args[2], kind))


def select(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """One of two values."""
    return apply("select", condition, chosen, other, kind=chosen.kind)


def _masked_fill(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return select(operand(args[1], Kind.BOOL), operand(args[2], kind), operand(args[0], kind))


def _same(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return operand(args[0], kind)


def _fill(at: float | None) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        value = given(args, kwargs, 1, "fill_value", None) if at is None else at
        return operand(value, kind)

    return rule


def _abs(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value = operand(args[0], kind)
    if kind in (Kind.F32, Kind.F64):
        return apply("abs", value)
    return select(apply("<", value, number(0, kind), kind=Kind.BOOL), apply("neg", value), value)


def _isnan(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    return apply("!=", args[0], args[0], kind=Kind.BOOL)  # type: ignore[arg-type]


def _isinf(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    value = operand(args[0], Kind.F32)
    return apply("==", apply("abs", value), number(math.inf, Kind.F32), kind=Kind.BOOL)


def _reciprocal(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    work = floating(kind)
    return apply("/", number(1, work), operand(args[0], work))


def _addc(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        term = apply(op, operand(args[1], kind), operand(args[2], kind))
        factor = kwargs.get("value", 1)
        term = term if factor == 1 else apply("*", operand(factor, kind), term)
        return apply("+", operand(args[0], kind), term)

    return rule


def _lerp(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    start, end, weight = (operand(arg, kind) for arg in args[:3])
    return apply("+", start, apply("*", weight, apply("-", end, start)))


def _xlogy(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    left, right = operand(args[0], kind), operand(args[1], kind)
    nothing = apply("==", left, number(0, kind), kind=Kind.BOOL)
    return select(nothing, number(0, kind), apply("*", left, apply("log", right)))


def positive(value: Expr) -> Expr:
    """Whether a value is above zero."""
    return apply(">", value, number(0, value.kind), kind=Kind.BOOL)


def _sign(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value, zero = operand(args[0], kind), number(0, kind)
    negative = apply("<", value, zero, kind=Kind.BOOL)
    return select(positive(value), number(1, kind), select(negative, number(-1, kind), zero))


_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil",
    "trunc",
)  # fmt: skip

ARITHMETIC: dict[str, Rule] = {
    **{name: _function(name) for name in _FUNCTIONS},
    "round": _function("roundeven"),
    "neg": lambda args, _, kind: apply("neg", operand(args[0], kind)),
    "abs": _abs,
    "sign": _sign,
    "sgn": _sign,
    "isnan": _isnan,
    "isinf": _isinf,
    "reciprocal": _reciprocal,
    "square": lambda args, _, kind: unrolled_power(operand(args[0], kind), 2),
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "rsub": _rsub,
    "div": _div,
    "true_divide": _div,
    "fmod": _fmod,
    "remainder": _remainder,
    "pow": _pow,
    "atan2": lambda args, _, kind: apply("atan2", operand(args[0], kind), operand(args[1], kind)),
    "maximum": _maximum("max"),
    "minimum": _maximum("min"),
    "clamp": clamp,
    "clamp_min": lambda args, _, kind: extremum("max", operand(args[0], kind), operand(args[1], kind)),
    "clamp_max": _clamp_max,
    "where": _where,
    "masked_fill": _masked_fill,
    "addcmul": _addc("*"),
    "addcdiv": _addc("/"),
    "lerp": _lerp,
    "xlogy": _xlogy,
    "eq": _comparison("=="),
    "ne": _comparison("!="),
    "lt": _comparison("<"),
    "le": _comparison("<="),
    "gt": _comparison(">"),
    "ge": _comparison(">="),
    "logical_and": _logical("&"),
    "logical_or": _logical("|"),
    "logical_xor": _logical("^"),
    "logical_not": _not,
    "bitwise_not": _bitwise_not,
    "bitwise_and": _bitwise("&"),
    "bitwise_or": _bitwise("|"),
    "bitwise_xor": _bitwise("^"),
    "full_like": _fill(None),
    "zeros_like": _fill(0),
    "ones_like": _fill(1),
    "_to_copy": _same,
    "to": _same,
    "convert_element_type": _same,
    "clone": _same,
    "detach": _same,
    "alias": _same,
    "lift_fresh_copy": _same,
    "contiguous": _same,
    "positive": _same,
}  # fmt: skip
"""Rules by ATen's short name."""
