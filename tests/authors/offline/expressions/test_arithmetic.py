"""Arithmetic of ATen as expressions, evaluated beside PyTorch."""

import math

import pytest
import torch

from cutegen_nb.authors.offline.expressions.arithmetic import (
    UnsupportedOperationError,
    given,
    operand,
    scalar,
)
from cutegen_nb.authors.offline.expressions.expressions import Leaf, ValueType, body, number
from cutegen_nb.authors.offline.expressions.pointwise import pointwise

F32 = ValueType.F32


class Namespace:
    """Names of the DSL that expressions use, on Python's numbers."""

    def __getattr__(self, name):
        return getattr(math, name, None) or (lambda value: value)


def evaluated(op, *values, **keywords):
    names = [Leaf(name, F32) for name, _ in zip("xyz", values, strict=False)]
    lines, texts = body({"result": pointwise(f"aten.{op}.default", names, keywords, F32, "float32")})
    scope = {
        "cutlass": Namespace(),
        "cute": type("Cute", (), {"math": Namespace()}),
        **dict(zip("xyz", values, strict=False)),
    }
    exec("\n".join(lines), scope)
    return eval(texts["result"], scope)


@pytest.mark.parametrize(
    ("op", "function"), [("add", torch.add), ("sub", torch.sub), ("mul", torch.mul), ("div", torch.div)]
)
@pytest.mark.parametrize(("x", "y"), [(3.0, -0.5), (0.0, 2.0)])
def test_two_operands_give_what_pytorch_gives(op, function, x, y):
    assert evaluated(op, x, y) == pytest.approx(float(function(torch.tensor(x), torch.tensor(y))))


@pytest.mark.parametrize(("x", "y"), [(7, 3), (-7, 3), (7, -3), (-7, -3), (-6, 3)])
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_a_quotient_of_integers_is_rounded_as_pytorch_does(x, y, mode):
    names = [Leaf("x", ValueType.I32), Leaf("y", ValueType.I32)]
    operation = pointwise("aten.div.Tensor_mode", names, {"rounding_mode": mode}, ValueType.I32, "int32")
    _, texts = body({"result": operation})
    # Of the DSL's integers // is rounded down, as Python's is; % has the dividend's sign.
    text = texts["result"].replace("x % y", "math.fmod(x, y)")
    expected = torch.div(torch.tensor(x), torch.tensor(y), rounding_mode=mode)
    assert eval(text, {"x": x, "y": y, "math": math, "cutlass": Namespace()}) == int(expected)


@pytest.mark.parametrize("alpha", [1, 2.5])
def test_a_sum_multiplies_its_second_operand_by_alpha(alpha):
    assert evaluated("add", 1.0, 4.0, alpha=alpha) == 1.0 + alpha * 4.0


def test_operands_come_by_position_or_keyword_with_a_default():
    assert given([1, 2], {}, 1, "other", 9) == 2
    assert given([1], {"other": 3}, 1, "other", 9) == 3
    assert given([1, None], {}, 1, "other", 9) == 9


@pytest.mark.parametrize("value", ["mean", None, (1, 2)])
def test_what_is_no_number_and_no_tensor_is_refused(value):
    with pytest.raises(UnsupportedOperationError, match="cannot read"):
        operand(value, F32)
    assert scalar(number(2, F32)) == 2.0
    with pytest.raises(UnsupportedOperationError, match="expected a number"):
        scalar(Leaf("x", F32))
