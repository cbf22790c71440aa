"""Activation functions of ATen are written with few operations and end where they should."""

import pytest

from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, body
from cutegen_nb.authors.offline.expressions.pointwise import is_pointwise, pointwise

F32 = ValueType.F32


def text(op, *args, **keywords):
    lines, values = body(
        {"y": pointwise(f"aten.{op}.default", [Leaf("x", F32), *args], keywords, F32, "float32")}
    )
    return "\n".join([*lines, values["y"]])


@pytest.mark.parametrize(
    "op",
    [
        "relu",
        "sigmoid",
        "silu",
        "gelu",
        "elu",
        "selu",
        "leaky_relu",
        "softplus",
        "mish",
        "hardtanh",
        "hardswish",
    ],
)
def test_each_activation_has_a_rule(op):
    assert is_pointwise(f"aten.{op}.default")
    assert "x" in text(op)


def test_the_exact_gelu_has_erf_and_its_approximation_tanh():
    assert "erf" in text("gelu")
    assert "tanh" in text("gelu", approximate="tanh")


def test_silu_needs_one_exponential_and_one_division():
    assert (text("silu").count("exp("), text("silu").count("/")) == (1, 1)


def test_a_slope_that_is_given_is_used():
    assert "0.25" in text("leaky_relu", 0.25)
    assert "0.01" in text("leaky_relu")
