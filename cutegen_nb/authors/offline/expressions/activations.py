"""Activation functions of ATen as expressions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cutegen_nb.authors.offline.expressions.arithmetic import (
    Rule,
    clamp,
    extremum,
    floating,
    given,
    operand,
    positive,
    scalar,
    select,
    unrolled_power,
)
from cutegen_nb.authors.offline.expressions.expressions import Expr, ValueType, apply, number


def _sigmoid(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return sigmoid(operand(args[0], floating(kind)))


def sigmoid(value: Expr) -> Expr:
    """Logistic function 1 / (1 + e⁻ˣ): where the exponential overflows, the quotient is its limit 0."""
    one = number(1, value.kind)
    return apply("/", one, apply("+", one, apply("exp", apply("neg", value))))


def _relu(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    return extremum("max", operand(args[0], kind), number(0, kind))


def _leaky_relu(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    value = operand(args[0], kind)
    slope = operand(given(args, kwargs, 1, "negative_slope", 0.01), kind)
    return select(positive(value), value, apply("*", value, slope))


def _elu(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    # ELU (Clevert et al., 2015): x above 0, otherwise α·(eˣ − 1); ATen adds two scale factors.
    alpha = scalar(given(args, kwargs, 1, "alpha", 1.0))
    scale = scalar(given(args, kwargs, 2, "scale", 1.0))
    inner = scalar(given(args, kwargs, 3, "input_scale", 1.0))
    return _scaled_elu(operand(args[0], kind), alpha, scale, inner)


def _scaled_elu(value: Expr, alpha: float, scale: float, inner: float) -> Expr:
    kind = value.kind
    negative = apply("expm1", value if inner == 1 else apply("*", value, number(inner, kind)))
    negative = negative if alpha * scale == 1 else apply("*", negative, number(alpha * scale, kind))
    above = value if scale == 1 else apply("*", value, number(scale, kind))
    return select(positive(value), above, negative)


def _selu(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # Klambauer et al., 2017, equation 14.
    return _scaled_elu(operand(args[0], kind), 1.6732632423543772848, 1.0507009873554804934, 1.0)


def _gelu(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    value = operand(args[0], kind)
    half = apply("*", number(0.5, kind), value)
    # GELU (Hendrycks and Gimpel, 2016): x·Φ(x) with Φ(x) = (1 + erf(x/√2)) / 2, or its tanh approximation.
    if given(args, kwargs, 1, "approximate", "none") == "tanh":
        cube = unrolled_power(value, 3)
        inner = apply("+", value, apply("*", number(0.044715, kind), cube))
        curve = apply("tanh", apply("*", number(math.sqrt(2 / math.pi), kind), inner))
    else:
        curve = apply("erf", apply("*", value, number(math.sqrt(0.5), kind)))
    return apply("*", half, apply("+", number(1, kind), curve))


def _silu(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # x·sigmoid(x) in one division.
    value = operand(args[0], kind)
    one = number(1, kind)
    return apply("/", value, apply("+", one, apply("exp", apply("neg", value))))


def _hardtanh(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    low = given(args, kwargs, 1, "min_val", -1.0)
    high = given(args, kwargs, 2, "max_val", 1.0)
    return clamp([args[0], low, high], {}, kind)


def _hardsigmoid(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # x + 3, clamped to 0…6, over 6.
    shifted = clamp([apply("+", operand(args[0], kind), number(3, kind)), 0.0, 6.0], {}, kind)
    return apply("/", shifted, number(6, kind))


def _hardswish(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    return apply("*", operand(args[0], kind), _hardsigmoid(args, kwargs, kind))


def _softplus(args: Sequence[object], kwargs: Mapping[str, object], kind: ValueType) -> Expr:
    beta = scalar(given(args, kwargs, 1, "beta", 1))
    threshold = number(scalar(given(args, kwargs, 2, "threshold", 20)), kind)
    value = operand(args[0], kind)
    scaled = value if beta == 1 else apply("*", value, number(beta, kind))
    # log(1 + e^(βx)) / β; above the threshold the function equals x to rounding, and e^(βx) might overflow.
    curve = apply("log1p", apply("exp", scaled))
    curve = curve if beta == 1 else apply("/", curve, number(beta, kind))
    return select(apply(">", scaled, threshold, kind=ValueType.BOOL), value, curve)


def _mish(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # Mish: x·tanh(softplus(x)).
    return apply("*", operand(args[0], kind), apply("tanh", _softplus([args[0]], {}, kind)))


def _log_sigmoid(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    # min(x, 0) − log1p(e^−|x|): the exponent is never positive, so nothing overflows.
    value = operand(args[0], kind)
    tail = apply("log1p", apply("exp", apply("neg", apply("abs", value))))
    return apply("-", extremum("min", value, number(0, kind)), tail)


def _threshold(args: Sequence[object], _: Mapping[str, object], kind: ValueType) -> Expr:
    value = operand(args[0], kind)
    above = apply(">", value, operand(args[1], kind), kind=ValueType.BOOL)
    return select(above, value, operand(args[2], kind))


ACTIVATIONS: dict[str, Rule] = {
    "sigmoid": _sigmoid,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "selu": _selu,
    "gelu": _gelu,
    "silu": _silu,
    "mish": _mish,
    "hardtanh": _hardtanh,
    "relu6": lambda args, _, kind: clamp([args[0], 0.0, 6.0], {}, kind),
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "log_sigmoid": _log_sigmoid,
    "log_sigmoid_forward": _log_sigmoid,
    "threshold": _threshold,
}  # fmt: skip
"""Rules by ATen's short name."""
