"""Arithmetic, comparisons and selections of ATen as expressions, and access to their operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from cutegen_nb.authors.offline.expressions.expressions import (
    Const,
    Expr,
    ValueType,
    apply,
    cast,
    number,
    promoted,
)

Rule = Callable[[Sequence[object], Mapping[str, object], ValueType], Expr]
"""Function of positional operands, keyword operands and result kind that returns the expression."""

LARGEST_UNROLLED_POWER = 8
"""Largest integer exponent that becomes multiplications instead of ``pow``."""


class UnsupportedOperationError(Exception):
    """Operation without an expression; the message is a sentence for the person."""


def operand(value: object, kind: ValueType) -> Expr:
    """Convert an operand to an expression of `kind`. Raises UnsupportedOperationError."""
    if isinstance(value, bool | int | float):
        return number(value, kind)
    if isinstance(value, str | list | tuple) or value is None:
        raise UnsupportedOperationError(f"the offline author met an operand it cannot read: {value!r}")
    return cast(value, kind)  # type: ignore[arg-type]


def given(
    args: Sequence[object], kwargs: Mapping[str, object], at: int, name: str, default: object
) -> object:
    """Return an operand by position or keyword; an explicit None takes the default, if there is one."""
    if len(args) > at:
        return default if args[at] is None and default is not None else args[at]
    return kwargs.get(name, default)


def scalar(value: object) -> float:
    """Return a number that must be known at generation time. Raises UnsupportedOperationError."""
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Const):
        return value.value
    raise UnsupportedOperationError(f"the offline author expected a number, got {value!r}")


def floating(kind: ValueType) -> ValueType:
    """Return a floating-point kind unchanged, float32 for any other."""
    return kind if kind in (ValueType.F32, ValueType.F64) else ValueType.F32


def _function(name: str) -> Rule:
    return lambda args, _, kind: apply(name, operand(args[0], floating(kind)))


def _infix(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
        # bool operands count as 0 and 1; the caller casts the result back to bool.
        work = ValueType.I32 if kind is ValueType.BOOL else kind
        right = operand(args[1], work)
        # add and sub compute left ± alpha·right.
        alpha = kwargs.get("alpha", 1)
        if alpha != 1:
            right = apply("*", right, operand(alpha, work))
        return apply(op, operand(args[0], work), right)

    return rule


def _comparison_kind(values: Sequence[object]) -> ValueType:
    kinds = []
    for value in values:
        if isinstance(value, bool):
            kinds.append(ValueType.I32)
        elif isinstance(value, float):
            kinds.append(ValueType.F32)
        elif isinstance(value, int):
            kinds.append(ValueType.I32)
        else:
            kind: ValueType = value.kind  # type: ignore[attr-defined]
            kinds.append(ValueType.I32 if kind is ValueType.BOOL else kind)
    return promoted(kinds)


def _comparison(op: str) -> Rule:
    def rule(args: Sequence[object], _: Mapping[str, object], __: ValueType) -> Expr:
        work = _comparison_kind(args[:2])
        return apply(op, operand(args[0], work), operand(args[1], work), kind=ValueType.BOOL)

    return rule


def _logical(op: str) -> Rule:
    return lambda args, _, __: apply(
        op, operand(args[0], ValueType.BOOL), operand(args[1], ValueType.BOOL), kind=ValueType.BOOL
    )


def _bitwise(op: str) -> Rule:
    return lambda args, _, kind: apply(op, operand(args[0], kind), operand(args[1], kind), kind=kind)


def _not(args: Sequence[object], _: Mapping[str, object], __: ValueType) -> Expr:
    return apply("not", operand(args[0], ValueType.BOOL), kind=ValueType.BOOL)


def _bitwise_not(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    if kind is ValueType.BOOL:
        return apply("not", operand(args[0], kind), kind=kind)
    # ~x = −1 − x in two's complement.
    return apply("-", number(-1, kind), operand(args[0], kind))


def _rsub(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    return _infix("-")([args[1], args[0]], kwargs, kind)


def _div(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    mode = given(args, kwargs, 2, "rounding_mode", None)
    if mode is None:
        work = floating(kind)
        return apply("/", operand(args[0], work), operand(args[1], work))
    if kind not in (ValueType.F32, ValueType.F64):
        # The DSL's quotient of integers is rounded down; less the remainder, the dividend is a multiple.
        dividend = operand(args[0], kind)
        if mode != "floor":
            dividend = apply("-", dividend, _fmod(args, kwargs, kind))
        return apply("//", dividend, operand(args[1], kind))
    quotient = apply("/", operand(args[0], kind), operand(args[1], kind))
    return apply("floor" if mode == "floor" else "trunc", quotient)


def _fmod(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # Of integers too the remainder has the dividend's sign.
    op = "rem" if kind in (ValueType.F32, ValueType.F64) else "%"
    return apply(op, operand(args[0], kind), operand(args[1], kind))


def _remainder(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    # torch.remainder takes the divisor's sign, rem the dividend's: add the divisor where the signs differ.
    left, right = _fmod(args, kwargs, kind), operand(args[1], kind)
    zero = number(0, kind)
    negative = [apply("<", value, zero, kind=ValueType.BOOL) for value in (left, right)]
    inexact = apply("!=", left, zero, kind=ValueType.BOOL)
    wrong = apply("&", inexact, apply("!=", *negative, kind=ValueType.BOOL), kind=ValueType.BOOL)
    return apply("select", wrong, apply("+", left, right), left, kind=kind)


def _pow(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    if not isinstance(args[1], bool | int | float | Const):
        work = floating(kind)
        return apply("pow", operand(args[0], work), operand(args[1], work))
    exponent = scalar(args[1])
    value = operand(args[0], ValueType.I32 if kind is ValueType.BOOL else kind)
    if exponent == int(exponent) and 0 <= abs(exponent) <= LARGEST_UNROLLED_POWER:
        return unrolled_power(value, int(exponent))
    if exponent == 0.5:  # noqa: PLR2004 - a square root
        return apply("sqrt", operand(value, floating(kind)))
    if exponent == -0.5:  # noqa: PLR2004 - its reciprocal
        return apply("rsqrt", operand(value, floating(kind)))
    if kind not in (ValueType.F32, ValueType.F64):
        raise UnsupportedOperationError(f"the offline author does not write integer powers of {exponent}")
    return apply("pow", value, number(exponent, kind))


def unrolled_power(value: Expr, exponent: int) -> Expr:
    """Expand an integer power by repeated squaring: exact to an ulp a step, without the cost of ``pow``."""
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
    """Maximum or minimum of two expressions; NaN propagates, as in torch."""
    if left.kind is ValueType.BOOL:
        return apply("|" if name == "max" else "&", left, right, kind=ValueType.BOOL)
    if left.kind in (ValueType.F32, ValueType.F64) and not isinstance(right, Const):
        return apply(name, left, right)
    # The compiler turns a max against a number into an instruction that drops NaN. A comparison with NaN is
    # false, so the selection returns it.
    beyond = apply("<" if name == "max" else ">", left, right, kind=ValueType.BOOL)
    return apply("select", beyond, right, left, kind=left.kind)


def clamp(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    """Clamp between two bounds, either of which may be None."""
    result = operand(args[0], kind)
    low = given(args, kwargs, 1, "min", None)
    high = given(args, kwargs, 2, "max", None)
    if low is not None:
        result = extremum("max", result, operand(low, kind))
    return result if high is None else extremum("min", result, operand(high, kind))


def _clamp_max(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return extremum("min", operand(args[0], kind), operand(args[1], kind))


def _where(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return select(operand(args[0], ValueType.BOOL), operand(args[1], kind), operand(args[2], kind))


def select(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """Select one of two values by a condition."""
    return apply("select", condition, chosen, other, kind=chosen.kind)


def _masked_fill(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return select(operand(args[1], ValueType.BOOL), operand(args[2], kind), operand(args[0], kind))


def _same(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return operand(args[0], kind)


def _fill(at: float | None) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
        value = given(args, kwargs, 1, "fill_value", None) if at is None else at
        return operand(value, kind)

    return rule


def _abs(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    value = operand(args[0], kind)
    if kind in (ValueType.F32, ValueType.F64):
        return apply("abs", value)
    return select(apply("<", value, number(0, kind), kind=ValueType.BOOL), apply("neg", value), value)


def _isnan(args: Sequence[object], _: Mapping[str, object], __: ValueType) -> Expr:
    # Only NaN differs from itself (IEEE 754).
    return apply("!=", args[0], args[0], kind=ValueType.BOOL)  # type: ignore[arg-type]


def _isinf(args: Sequence[object], _: Mapping[str, object], __: ValueType) -> Expr:
    # A finite float64 above 3.4e38 is infinite in float32, so a float64 operand stays one.
    given = getattr(args[0], "kind", ValueType.F32)
    kind = given if given is ValueType.F64 else ValueType.F32
    value = operand(args[0], kind)
    return apply("==", apply("abs", value), number(math.inf, kind), kind=ValueType.BOOL)


def _reciprocal(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    work = floating(kind)
    return apply("/", number(1, work), operand(args[0], work))


def _addc(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
        term = apply(op, operand(args[1], kind), operand(args[2], kind))
        factor = kwargs.get("value", 1)
        term = term if factor == 1 else apply("*", operand(factor, kind), term)
        return apply("+", operand(args[0], kind), term)

    return rule


def _lerp(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    start, end, weight = (operand(arg, kind) for arg in args[:3])
    return apply("+", start, apply("*", weight, apply("-", end, start)))


def _xlogy(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    left, right = operand(args[0], kind), operand(args[1], kind)
    # torch.xlogy defines 0·log(0) as 0, where the product would be NaN.
    nothing = apply("==", left, number(0, kind), kind=ValueType.BOOL)
    return select(nothing, number(0, kind), apply("*", left, apply("log", right)))


def positive(value: Expr) -> Expr:
    """Condition that a value is above zero."""
    return apply(">", value, number(0, value.kind), kind=ValueType.BOOL)


def _sign(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    value, zero = operand(args[0], kind), number(0, kind)
    negative = apply("<", value, zero, kind=ValueType.BOOL)
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
