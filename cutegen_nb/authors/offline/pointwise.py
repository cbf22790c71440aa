"""ATen's element-wise operations as expression trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from cutegen_nb.authors.offline.expressions import Const, Expr, Kind, apply, cast, number, promoted, rounded

Rule = Callable[[Sequence[object], Mapping[str, object], Kind], Expr]

LARGEST_UNROLLED_POWER = 8


class UnsupportedOperationError(Exception):
    """An operation that has no expression; the message is the sentence for the person."""


def short_name(op: str) -> str:
    """``relu`` for ``aten.relu.default``; ``prims.`` and overloads are dropped as well."""
    parts = op.split(".")
    return parts[1] if parts[0] in ("aten", "prims") and len(parts) > 1 else op


def is_pointwise(op: str) -> bool:
    """Whether :func:`pointwise` has a rule for the operation."""
    return short_name(op) in _RULES


def pointwise(op: str, args: Sequence[object], kwargs: Mapping[str, object], kind: Kind, dtype: str) -> Expr:
    """The expression of one operation.

    `args` and `kwargs` hold expressions where the graph has tensors; `kind` and `dtype` are the
    result's. Raises UnsupportedOperationError.
    """
    rule = _RULES.get(short_name(op))
    if rule is None:
        raise UnsupportedOperationError(f"the offline author has no element-wise rule for {op}")
    result = cast(rule(args, kwargs, kind), kind)
    narrows = short_name(op) in ("_to_copy", "convert_element_type", "to")
    return rounded(result, dtype) if narrows else result


def _expr(value: object, kind: Kind) -> Expr:
    """An operand as an expression of `kind`."""
    if isinstance(value, bool | int | float):
        return number(value, kind)
    if isinstance(value, str | list | tuple) or value is None:
        raise UnsupportedOperationError(f"the offline author met an operand it cannot read: {value!r}")
    return cast(value, kind)  # type: ignore[arg-type]


def _given(
    args: Sequence[object], kwargs: Mapping[str, object], at: int, name: str, default: object
) -> object:
    if len(args) > at:
        return default if args[at] is None and default is not None else args[at]
    return kwargs.get(name, default)


def _scalar(value: object) -> float:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Const):
        return value.value
    raise UnsupportedOperationError(f"the offline author expected a number, got {value!r}")


def _floats(kind: Kind) -> Kind:
    return kind if kind in (Kind.F32, Kind.F64) else Kind.F32


def _function(name: str) -> Rule:
    return lambda args, _, kind: apply(name, _expr(args[0], _floats(kind)))


def _infix(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        work = Kind.I32 if kind is Kind.BOOL else kind
        right = _expr(args[1], work)
        alpha = kwargs.get("alpha", 1)
        if alpha != 1:
            right = apply("*", right, _expr(alpha, work))
        return apply(op, _expr(args[0], work), right)

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
        return apply(op, _expr(args[0], work), _expr(args[1], work), kind=Kind.BOOL)

    return rule


def _logical(op: str) -> Rule:
    return lambda args, _, __: apply(op, _expr(args[0], Kind.BOOL), _expr(args[1], Kind.BOOL), kind=Kind.BOOL)


def _bitwise(op: str) -> Rule:
    return lambda args, _, kind: apply(op, _expr(args[0], kind), _expr(args[1], kind), kind=kind)


def _not(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    return apply("not", _expr(args[0], Kind.BOOL), kind=Kind.BOOL)


def _bitwise_not(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if kind is Kind.BOOL:
        return apply("not", _expr(args[0], kind), kind=kind)
    return apply("-", number(-1, kind), _expr(args[0], kind))


def _rsub(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    return _infix("-")([args[1], args[0]], kwargs, kind)


def _div(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    mode = _given(args, kwargs, 2, "rounding_mode", None)
    if mode is None:
        work = _floats(kind)
        return apply("/", _expr(args[0], work), _expr(args[1], work))
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError("the offline author does not write integer division (aten.div)")
    quotient = apply("/", _expr(args[0], kind), _expr(args[1], kind))
    return apply("floor" if mode == "floor" else "trunc", quotient)


def _fmod(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError("the offline author does not write integer remainders")
    return apply("rem", _expr(args[0], kind), _expr(args[1], kind))


def _remainder(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    # The result takes the divisor's sign (torch.remainder); rem takes the dividend's.
    left, right = _fmod(args, kwargs, kind), _expr(args[1], kind)
    zero = number(0, kind)
    negative = [apply("<", value, zero, kind=Kind.BOOL) for value in (left, right)]
    inexact = apply("!=", left, zero, kind=Kind.BOOL)
    wrong = apply("&", inexact, apply("!=", *negative, kind=Kind.BOOL), kind=Kind.BOOL)
    return apply("select", wrong, apply("+", left, right), left, kind=kind)


def _pow(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    if not isinstance(args[1], bool | int | float | Const):
        work = _floats(kind)
        return apply("pow", _expr(args[0], work), _expr(args[1], work))
    exponent = _scalar(args[1])
    value = _expr(args[0], Kind.I32 if kind is Kind.BOOL else kind)
    if exponent == int(exponent) and 0 <= abs(exponent) <= LARGEST_UNROLLED_POWER:
        return _unrolled_power(value, int(exponent))
    if exponent == 0.5:  # noqa: PLR2004
        return apply("sqrt", _expr(value, _floats(kind)))
    if exponent == -0.5:  # noqa: PLR2004
        return apply("rsqrt", _expr(value, _floats(kind)))
    if kind not in (Kind.F32, Kind.F64):
        raise UnsupportedOperationError(f"the offline author does not write integer powers of {exponent}")
    return apply("pow", value, number(exponent, kind))


def _unrolled_power(value: Expr, exponent: int) -> Expr:
    """x³ as x·x·x: exact to an ulp a step, and without the hundred instructions of ``pow``."""
    if exponent < 0:
        return apply("/", number(1, value.kind), _unrolled_power(value, -exponent))
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
    return lambda args, _, kind: extremum(name, _expr(args[0], kind), _expr(args[1], kind))


def extremum(name: str, left: Expr, right: Expr) -> Expr:
    """``max`` or ``min``; NaN wins, as in torch."""
    if left.kind is Kind.BOOL:
        return apply("|" if name == "max" else "&", left, right, kind=Kind.BOOL)
    if left.kind in (Kind.I32, Kind.I64):
        chosen = apply(">" if name == "max" else "<", left, right, kind=Kind.BOOL)
        return apply("select", chosen, left, right, kind=left.kind)
    return apply(name, left, right)


def _clamp(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    result = _expr(args[0], kind)
    low = _given(args, kwargs, 1, "min", None)
    high = _given(args, kwargs, 2, "max", None)
    if low is not None:
        result = extremum("max", result, _expr(low, kind))
    return result if high is None else extremum("min", result, _expr(high, kind))


def _clamp_max(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return extremum("min", _expr(args[0], kind), _expr(args[1], kind))


def _where(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return _select(_expr(args[0], Kind.BOOL), _expr(args[1], kind), _expr(args[2], kind))


def _select(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    return apply("select", condition, chosen, other, kind=chosen.kind)


def _masked_fill(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return _select(_expr(args[1], Kind.BOOL), _expr(args[2], kind), _expr(args[0], kind))


def _same(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return _expr(args[0], kind)


def _fill(at: float | None) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        value = _given(args, kwargs, 1, "fill_value", None) if at is None else at
        return _expr(value, kind)

    return rule


def _sigmoid(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return sigmoid(_expr(args[0], _floats(kind)))


def sigmoid(value: Expr) -> Expr:
    """1 / (1 + e⁻ˣ): an overflowing exponential gives the right limit, 0."""
    one = number(1, value.kind)
    return apply("/", one, apply("+", one, apply("exp", apply("neg", value))))


def _relu(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return extremum("max", _expr(args[0], kind), number(0, kind))


def _leaky_relu(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    value = _expr(args[0], kind)
    slope = _expr(_given(args, kwargs, 1, "negative_slope", 0.01), kind)
    return _select(_positive(value), value, apply("*", value, slope))


def _positive(value: Expr) -> Expr:
    return apply(">", value, number(0, value.kind), kind=Kind.BOOL)


def _elu(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    alpha = _scalar(_given(args, kwargs, 1, "alpha", 1.0))
    scale = _scalar(_given(args, kwargs, 2, "scale", 1.0))
    inner = _scalar(_given(args, kwargs, 3, "input_scale", 1.0))
    return _scaled_elu(_expr(args[0], kind), alpha, scale, inner)


def _scaled_elu(value: Expr, alpha: float, scale: float, inner: float) -> Expr:
    kind = value.kind
    negative = apply("expm1", value if inner == 1 else apply("*", value, number(inner, kind)))
    negative = negative if alpha * scale == 1 else apply("*", negative, number(alpha * scale, kind))
    positive = value if scale == 1 else apply("*", value, number(scale, kind))
    return _select(_positive(value), positive, negative)


def _selu(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    # Klambauer et al., 2017, equation 14.
    return _scaled_elu(_expr(args[0], kind), 1.6732632423543772848, 1.0507009873554804934, 1.0)


def _gelu(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    value = _expr(args[0], kind)
    half = apply("*", number(0.5, kind), value)
    if _given(args, kwargs, 1, "approximate", "none") == "tanh":
        cube = _unrolled_power(value, 3)
        inner = apply("+", value, apply("*", number(0.044715, kind), cube))
        curve = apply("tanh", apply("*", number(math.sqrt(2 / math.pi), kind), inner))
    else:
        curve = apply("erf", apply("*", value, number(math.sqrt(0.5), kind)))
    return apply("*", half, apply("+", number(1, kind), curve))


def _silu(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value = _expr(args[0], kind)
    one = number(1, kind)
    return apply("/", value, apply("+", one, apply("exp", apply("neg", value))))


def _hardtanh(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    low = _given(args, kwargs, 1, "min_val", -1.0)
    high = _given(args, kwargs, 2, "max_val", 1.0)
    return _clamp([args[0], low, high], {}, kind)


def _hardsigmoid(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    shifted = _clamp([apply("+", _expr(args[0], kind), number(3, kind)), 0.0, 6.0], {}, kind)
    return apply("/", shifted, number(6, kind))


def _hardswish(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    return apply("*", _expr(args[0], kind), _hardsigmoid(args, kwargs, kind))


def _softplus(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
    beta = _scalar(_given(args, kwargs, 1, "beta", 1))
    threshold = number(_scalar(_given(args, kwargs, 2, "threshold", 20)), kind)
    value = _expr(args[0], kind)
    scaled = value if beta == 1 else apply("*", value, number(beta, kind))
    curve = apply("log1p", apply("exp", scaled))
    curve = curve if beta == 1 else apply("/", curve, number(beta, kind))
    return _select(apply(">", scaled, threshold, kind=Kind.BOOL), value, curve)


def _mish(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    return apply("*", _expr(args[0], kind), apply("tanh", _softplus([args[0]], {}, kind)))


def _log_sigmoid(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    # min(x, 0) − log1p(e^−|x|): no overflow on either side.
    value = _expr(args[0], kind)
    tail = apply("log1p", apply("exp", apply("neg", apply("abs", value))))
    return apply("-", extremum("min", value, number(0, kind)), tail)


def _sign(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value, zero = _expr(args[0], kind), number(0, kind)
    negative = apply("<", value, zero, kind=Kind.BOOL)
    return _select(_positive(value), number(1, kind), _select(negative, number(-1, kind), zero))


def _abs(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value = _expr(args[0], kind)
    if kind in (Kind.F32, Kind.F64):
        return apply("abs", value)
    return _select(apply("<", value, number(0, kind), kind=Kind.BOOL), apply("neg", value), value)


def _isnan(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    return apply("!=", args[0], args[0], kind=Kind.BOOL)  # type: ignore[arg-type]


def _isinf(args: Sequence[object], _: Mapping[str, object], __: Kind) -> Expr:
    value = _expr(args[0], Kind.F32)
    return apply("==", apply("abs", value), number(math.inf, Kind.F32), kind=Kind.BOOL)


def _reciprocal(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    work = _floats(kind)
    return apply("/", number(1, work), _expr(args[0], work))


def _threshold(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    value = _expr(args[0], kind)
    above = apply(">", value, _expr(args[1], kind), kind=Kind.BOOL)
    return _select(above, value, _expr(args[2], kind))


def _addc(op: str) -> Rule:
    def rule(args: Sequence[object], kwargs: Mapping[str, object], kind: Kind) -> Expr:
        term = apply(op, _expr(args[1], kind), _expr(args[2], kind))
        factor = kwargs.get("value", 1)
        term = term if factor == 1 else apply("*", _expr(factor, kind), term)
        return apply("+", _expr(args[0], kind), term)

    return rule


def _lerp(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    start, end, weight = (_expr(arg, kind) for arg in args[:3])
    return apply("+", start, apply("*", weight, apply("-", end, start)))


def _xlogy(args: Sequence[object], _: Mapping[str, object], kind: Kind) -> Expr:
    left, right = _expr(args[0], kind), _expr(args[1], kind)
    nothing = apply("==", left, number(0, kind), kind=Kind.BOOL)
    return _select(nothing, number(0, kind), apply("*", left, apply("log", right)))


_FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "floor", "ceil", "trunc",
)  # fmt: skip

_RULES: dict[str, Rule] = {
    **{name: _function(name) for name in _FUNCTIONS},
    "round": _function("roundeven"),
    "neg": lambda args, _, kind: apply("neg", _expr(args[0], kind)),
    "abs": _abs,
    "sign": _sign,
    "sgn": _sign,
    "isnan": _isnan,
    "isinf": _isinf,
    "reciprocal": _reciprocal,
    "square": lambda args, _, kind: _unrolled_power(_expr(args[0], kind), 2),
    "sigmoid": _sigmoid,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "selu": _selu,
    "gelu": _gelu,
    "silu": _silu,
    "mish": _mish,
    "hardtanh": _hardtanh,
    "relu6": lambda args, _, kind: _clamp([args[0], 0.0, 6.0], {}, kind),
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "log_sigmoid": _log_sigmoid,
    "log_sigmoid_forward": _log_sigmoid,
    "threshold": _threshold,
    "add": _infix("+"),
    "sub": _infix("-"),
    "mul": _infix("*"),
    "rsub": _rsub,
    "div": _div,
    "true_divide": _div,
    "fmod": _fmod,
    "remainder": _remainder,
    "pow": _pow,
    "atan2": lambda args, _, kind: apply("atan2", _expr(args[0], kind), _expr(args[1], kind)),
    "maximum": _maximum("max"),
    "minimum": _maximum("min"),
    "clamp": _clamp,
    "clamp_min": lambda args, _, kind: extremum("max", _expr(args[0], kind), _expr(args[1], kind)),
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
    "logical_xor": _comparison("!="),
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
